"""WG524: every batch holds samples of one class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import SiteId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Place, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import argument, calls, ran, replace
from whygrad.rules.targets import LossCall, loss_calls

CALLS = 4
BATCH = 4


class BatchesInClassOrder(Rule):
    """The data is sorted by class and not shuffled: each batch has one class only.

    A batch of one class has a gradient that says "always answer this class". The model swings from class to class,
    accuracy looks perfect on each batch and is poor on all, and BatchNorm learns statistics of single classes.

    **How to put it right.** `DataLoader(..., shuffle=True)`, or a permutation of the samples.
    """

    code = "WG524"
    slug = "batches-in-class-order"
    severity = Severity.WARNING
    search = (
        "DataLoader shuffle False training",
        "model predicts one class",
        "batches sorted by class",
        "loss oscillates per class",
    )
    wrong = (
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        torch.manual_seed(0)
        x, y = torch.randn(24, 4), torch.arange(3).repeat_interleave(8)
        loader = DataLoader(TensorDataset(x, y), batch_size=4)  # <- here
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        torch.manual_seed(0)
        x, y = torch.randn(24, 4), torch.arange(3).repeat_interleave(8)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        by_site: dict[SiteId | None, list[LossCall]] = {}
        for call in loss_calls(facts):
            if call.differentiable and call.targets is not None and len(call.targets) >= BATCH:
                by_site.setdefault(call.event.site, []).append(call)
        for made in by_site.values():
            single = [call for call in made if len(call.classes) == 1]
            classes = {min(call.classes) for call in single}
            if len(made) < CALLS or len(single) != len(made) or len(classes) < 2:
                continue
            place, edits = _loader(facts, made[0])
            order = ", ".join(str(min(call.classes)) for call in single[:6])
            yield self.finding(
                facts,
                place,
                "every batch holds one class only",
                [
                    f"In all {len(made)} recorded batches of {len(made[0].targets or ())} samples every target was the "
                    f"same: classes {order} in turn.",
                ],
                why="A batch of one class only pushes towards that class.",
                fix="Shuffle the samples: shuffle=True, or a random permutation.",
                evidence=[
                    facts.evidence(call.event, f"all targets were class {min(call.classes)}") for call in single[:4]
                ],
                edits=edits,
            )


def _loader(facts: Facts, call: LossCall) -> tuple[Place, list[Edit]]:
    """The only data loader that does not shuffle; else the loss."""
    for path in facts.ledger.sources():
        source = facts.source(path)
        made = [
            one
            for one in calls(source.tree, "DataLoader")
            if ran(facts, source, one) and _off(argument(one, "shuffle", 2)) and argument(one, "sampler") is None
        ]
        if made:
            given = argument(made[0], "shuffle")
            edits = [replace(source, given, "True")] if given is not None else []
            if not edits:
                text = source.segment(made[0])
                edits = [replace(source, made[0], f"{text[:-1].rstrip().rstrip(',')}, shuffle=True)")]
            return facts.line(path, made[0].lineno), edits
    return facts.place(call.event.site), []


def _off(given: ast.expr | None) -> bool:
    return given is None or (isinstance(given, ast.Constant) and given.value is False)
