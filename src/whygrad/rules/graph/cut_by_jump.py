"""WG203: an integer, a position or a comparison stands between the parameter and the loss."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.lost import STEPS, Lost, evidence, happened, lost_by, names_of, place_of, severity_of
from whygrad.rules.rule import Rule

INSTEAD = {
    "comparison": "Use something smooth in place of the comparison, such as a sigmoid of the difference.",
    "integer dtype": "Interpolate between the neighbouring entries with weights that depend on the value.",
}


class CutByJump(Rule):
    """A parameter used as an index, in a comparison or through argmax has no gradient.

    `argmax`, `>`, `==`, `.long()`, `.int()` and indexing by a value give something that jumps: a small change of the
    parameter changes nothing, so there is no derivative and autograd records none. Indexing has a gradient for the
    indexed values, never for the index. The parameter keeps `.grad` None while the rest trains.

    **How to see it.** The result has an integer or bool dtype and `requires_grad` is False.

    **How to put it right.** Use a smooth version: softmax probabilities for argmax, a sigmoid for a threshold, linear
    interpolation between neighbours for an index, or a straight-through estimator.
    """

    code = "WG203"
    slug = "cut-by-jump"
    intended = "the value only selects, and is trained by another loss"
    search = (
        "argmax not differentiable", "learnable index no gradient", "threshold parameter grad None",
        "long() breaks graph",
        "comparison gradient", "element 0 of tensors does not require grad",
    )  # fmt: skip
    wrong = (
        """
        import torch
        signal = torch.linspace(0, 1, 9).sin()
        position = torch.nn.Parameter(torch.tensor(3.3))
        gain = torch.nn.Parameter(torch.tensor(0.5))
        optimizer = torch.optim.SGD([position, gain], lr=0.1)
        for _ in range(3):
            index = position.clamp(0, 8).long()  # <- here
            loss = (gain * signal[index] - 1.0).pow(2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        threshold = torch.nn.Parameter(torch.tensor(0.2))
        weight = torch.nn.Parameter(torch.ones(6))
        optimizer = torch.optim.SGD([threshold, weight], lr=0.1)
        x = torch.randn(6)
        for _ in range(3):
            mask = (x > threshold).float()  # <- here
            loss = (weight * mask - 1.0).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        signal = torch.linspace(0, 1, 9).sin()
        position = torch.nn.Parameter(torch.tensor(3.3))
        optimizer = torch.optim.SGD([position], lr=0.1)
        for _ in range(3):
            index = position.detach().clamp(0, 7).long()
            share = position - index
            loss = ((1 - share) * signal[index] + share * signal[index + 1] - 1.0).pow(2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randint(3, (8,))
        for _ in range(3):
            logits = model(x)
            loss = torch.nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct = (logits.argmax(1) == y).float().mean().item()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for one in lost_by(facts, STEPS):
            yield self._found(facts, one)

    def _found(self, facts: Facts, one: Lost) -> Finding:
        names = names_of(facts, one.leaves)
        by = {"comparison": "a comparison", "integer dtype": "an integer"}.get(one.cut.cut, one.cut.cut)
        return self.finding(
            facts,
            place_of(facts, one.cut),
            f"{names} gets no gradient: {by} stands between it and the loss",
            happened(facts, one),
            why="The result jumps from one value to the next; between the jumps its derivative is 0, so none is kept.",
            fix=INSTEAD.get(one.cut.cut, "Compute the loss from probabilities (softmax), not from positions."),
            evidence=evidence(facts, one),
            subjects=[facts.describe(leaf) for leaf in one.leaves],
            severity=severity_of(one, self.severity),
        )
