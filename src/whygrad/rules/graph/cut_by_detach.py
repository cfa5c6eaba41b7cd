"""WG202: the history was taken off by name: detach, .data, no_grad, inference mode."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.lost import (
    BLOCKS,
    Lost,
    evidence,
    happened,
    lost_by,
    names_of,
    place_of,
    severity_of,
    without_suffix,
)
from whygrad.rules.rule import Rule


class CutByDetach(Rule):
    """Part of the model never trains: its output is detached, or it runs under no_grad.

    `.detach()` and `.data` give a tensor without history, and nothing that runs under `torch.no_grad()`,
    `torch.inference_mode()` or after `torch.set_grad_enabled(False)` is recorded. The loss is right, the layers
    after the cut train, and those before it keep `.grad` None, although they are in the optimizer.

    **How to see it.** `[name for name, p in model.named_parameters() if p.grad is None]` after a backward.

    **How to put it right.** Leave the detach out, narrow the `with` block, take the decorator off. Where the part is
    meant to be frozen, say so: `part.requires_grad_(False)`, and keep it out of the optimizer.
    """

    code = "WG202"
    slug = "cut-by-detach"
    severity = Severity.WARNING
    intended = "the part before the cut is meant to be frozen; then keep it out of the optimizer"
    search = (
        "grad is None", "detach in forward", "no_grad training", "element 0 of tensors does not require grad",
        "does not have a grad_fn", "encoder does not train", "set_grad_enabled",
    )  # fmt: skip
    wrong = (
        """
        import torch
        encoder, decoder = torch.nn.Linear(4, 3), torch.nn.Linear(3, 4)
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
        x = torch.randn(8, 4)
        for _ in range(3):
            code = encoder(x).detach()  # <- here
            loss = (decoder(code) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        encoder, decoder = torch.nn.Linear(4, 3), torch.nn.Linear(3, 4)
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
        x = torch.randn(8, 4)
        for _ in range(3):
            with torch.no_grad():  # <- here
                code = encoder(x)
            loss = (decoder(code) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        backbone, head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        x = torch.randn(8, 4)
        for _ in range(3):
            with torch.no_grad():
                features = backbone(x)
            loss = head(features).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        critic, target = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
        target.load_state_dict(critic.state_dict())
        optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
        x = torch.randn(8, 4)
        for _ in range(3):
            loss = (critic(x) - (1 + 0.9 * target(x).detach())).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for one in lost_by(facts, BLOCKS):
            yield self._found(facts, one)

    def _found(self, facts: Facts, one: Lost) -> Finding:
        names = names_of(facts, one.leaves)
        by = {"data": ".data", "no_grad": "no_grad", "inference_mode": "inference mode"}.get(one.cut.cut, "detach()")
        return self.finding(
            facts,
            place_of(facts, one.cut),
            f"{names} gets no gradient: {by} takes the history away",
            happened(facts, one),
            why="Autograd has no record of what was computed before that point, so backward stops there.",
            fix="Let the value keep its history there; or freeze that part openly and leave it out of the optimizer.",
            evidence=evidence(facts, one),
            subjects=[facts.describe(leaf) for leaf in one.leaves],
            severity=severity_of(one, self.severity),
            edits=without_suffix(facts, None if one.cut.line else one.cut.site, ("detach", "data")),
        )
