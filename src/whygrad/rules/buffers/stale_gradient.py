"""WG106: a step uses a gradient that an earlier step has used already."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from whygrad.ledger.events import BackwardBegan, GradChanged, OptimizerStepped, SiteId, Update
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import history_between


class StaleGradient(Rule):
    """A parameter is stepped with the gradient of an earlier batch.

    If a branch, head or expert is not used in a step, nothing writes its gradient. Where nothing resets it either,
    the old one is still there, and the optimizer applies it again: the part that was *not* used drifts along an
    outdated direction.

    **How to put it right.** Call `optimizer.zero_grad()` in every step: a gradient of None is skipped.
    """

    code = "WG106"
    slug = "stale-gradient"
    severity = Severity.WARNING
    search = ("parameter updated although not used", "stale gradient", "same gradient applied twice")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
        optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for step in range(4):
            heads[step % 2].zero_grad()
            loss = (heads[step % 2](x) - y).square().mean()
            loss.backward()
            optimizer.step()  # <- here
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
        optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for step in range(4):
            optimizer.zero_grad()
            loss = (heads[step % 2](x) - y).square().mean()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        for optimizer in facts.optimizers:
            for earlier, later in pairwise(facts.steps_of(optimizer)):
                if later.site in told or not any(True for _ in facts.between(BackwardBegan, earlier.seq, later.seq)):
                    continue
                before = {update.tensor: update for update in earlier.updates if _moved(update)}
                stale = [
                    update
                    for update in later.updates
                    if update.tensor in before and _moved(update) and not _touched(facts, update, earlier, later)
                ]
                fresh = [update for update in later.updates if update not in stale and update.grad is not None]
                if stale and fresh:
                    told.add(later.site)
                    yield self._finding(facts, earlier, later, stale)

    def _finding(
        self, facts: Facts, earlier: OptimizerStepped, later: OptimizerStepped, stale: list[Update]
    ) -> Finding:
        names = [facts.describe(update.tensor) for update in stale]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return self.finding(
            facts,
            later.site if later.site is not None else facts.place(None),
            f"{names[0]}{more}: the step uses an old gradient again",
            [
                f"{names[0]}.grad = {say(stale[0].grad)} was used by step {earlier.step}; no backward "
                "wrote it and nothing "
                f"reset it before step {later.step}, which used it again.",
            ],
            why="A gradient stays in its buffer until it is reset; an optimizer skips only None.",
            fix="Call optimizer.zero_grad() in every step, for all parameters that the optimizer holds.",
            evidence=[
                facts.evidence(earlier, f"step {earlier.step} used {say(stale[0].grad)}"),
                facts.evidence(later, f"step {later.step} used the same again"),
            ],
            subjects=names,
        )


def _moved(update: Update) -> bool:
    return update.grad is not None and bool(update.grad.magnitude) and update.changed


def _touched(facts: Facts, update: Update, earlier: OptimizerStepped, later: OptimizerStepped) -> bool:
    """Whether anything happened to the buffer between the steps; a clip alone does not make a gradient new."""
    return any(
        not isinstance(event, GradChanged) for event in history_between(facts, update.tensor, earlier.seq, later.seq)
    )
