"""WG205: a term of the loss changes its value and no gradient."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.answers.why.flow import Made
from whygrad.ledger.events import TensorId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Evidence, Finding, Severity
from whygrad.rules.lost import BLOCKS, COPIES, STEPS, place_of
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.terms import Term, terms

CUTS = COPIES | STEPS


class TermWithoutGradient(Rule):
    """A term of the loss has no effect on training: the gradient is the same with and without it.

    A penalty that is computed from `argmax`, a comparison, `.item()` or a copy is a number that happens to be added to
    the loss. The printed loss depends on its weight, the gradient does not, whatever the weight.

    **How to see it.** `penalty.requires_grad` is False although it was computed from the model's output.

    **How to put it right.** Compute the term from values that have a derivative: probabilities instead of positions, a
    sigmoid instead of a comparison, the tensor instead of its `.item()`.
    """

    code = "WG205"
    slug = "term-without-gradient"
    severity = Severity.WARNING
    intended = "the term is only to be seen in the printed loss"
    search = (
        "regularisation has no effect", "penalty does not change gradient", "loss weight has no effect",
        "auxiliary loss argmax", "loss term ignored by backward",
    )  # fmt: skip
    explains = ("WG203",)
    wrong = (
        """
        import torch
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randint(3, (8,))
        for _ in range(3):
            logits = model(x)
            loss = torch.nn.functional.cross_entropy(logits, y)
            wrong = (logits.argmax(dim=1) != y).float().mean()  # <- here
            loss = loss + 10.0 * wrong
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        model = torch.nn.Linear(4, 1)
        x = torch.randn(8, 4)
        loss = (model(x) - 1.0).pow(2).mean()
        penalty = torch.tensor(model.weight.abs().sum().item())  # <- here
        loss = loss + 0.1 * penalty
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Linear(4, 3)
        x, y = torch.randn(8, 4), torch.randint(3, (8,))
        logits = model(x)
        log_probs = logits.log_softmax(dim=1)
        loss = -log_probs[torch.arange(8), y].mean() + 0.1 * model.weight.abs().sum()
        loss.backward()
        """,
        """
        import torch
        prior = torch.tensor([0.5, 0.5])
        constant = (prior * prior.log()).sum()
        model = torch.nn.Linear(4, 2)
        log_probs = model(torch.randn(8, 4)).log_softmax(dim=1)
        loss = constant - (prior * log_probs).sum(dim=1).mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        for entry in facts.passes:
            if entry.began.site in seen or not (entry.written or entry.returned):
                continue
            seen.add(entry.began.site)
            for root in entry.began.roots:
                for term in terms(facts, root):
                    if (found := self._lost(facts, entry, term)) is not None:
                        yield found

    def _lost(self, facts: Facts, entry: Pass, term: Term) -> Finding | None:
        joined = any(one.node is not None for one in facts.giving(term.tensor))
        if joined or facts.flow.requires_grad(term.tensor) or term.tensor in entry.began.roots:
            return None
        cut = _cut_behind(facts, term.tensor)
        if cut is None:
            return None
        place = place_of(facts, cut)
        added = facts.place(term.added_by.site)
        value = facts.value(term.tensor) if term.tensor > 0 else None
        worth = f" ({say(value)} in this run)" if value is not None else ""
        return self.finding(
            facts,
            place,
            f"a term of the loss has no gradient: it goes through {cut.cut}",
            [
                f"`{facts.place(cut.site).code}` gave a value without history ({cut.cut}); {added.where} adds what was "
                f"computed from it to the loss{worth}.",
                f"For the backward on {facts.place(entry.began.site).where} that term is a constant: no parameter gets "
                "a gradient from it, whatever its weight.",
            ],
            why="What jumps from value to value, or was copied as a number, has no derivative.",
            fix="Write the term with values that have a derivative (probabilities, a sigmoid, the tensor itself).",
            evidence=[
                Evidence(cut.seq, f"the history ends here ({cut.cut})", place),
                facts.evidence(term.added_by, "the term is added to the loss"),
                facts.evidence(entry.began, "the backward does not go through it"),
            ],
            subjects=[facts.describe(tensor) for tensor in cut.inputs if tensor > 0],
            severity=Severity.NOTE if cut.cut in BLOCKS else None,
        )


def _cut_behind(facts: Facts, tensor: TensorId) -> Made | None:
    """The cut that took the history of a term that was computed from something trained; None where nothing took it."""
    flow = facts.flow
    for current, made in flow.upstream(tensor):
        if flow.loses_history(made, current):
            return made if made.cut in CUTS or made.cut in BLOCKS else None
    return None
