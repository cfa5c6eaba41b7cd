"""WG413: squeeze() takes the batch dimension away when the batch has one sample."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Operation
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.losscalls import plain, shape_of
from whygrad.rules.rule import Rule


class SqueezedBatch(Rule):
    """squeeze() without a dimension drops the batch dimension when the batch has one sample.

    `x.squeeze()` removes every dimension of size 1. For a batch of 8 and one output it gives (8,), as meant; for the
    last batch of an epoch, with one sample, it gives (): a shape error in the loss, a silent broadcast, or a batch
    whose features are taken for samples.

    **How to see it.** The same line gives tensors of different numbers of dimensions in one run.

    **How to put it right.** Say the dimension: `x.squeeze(1)` or `x.squeeze(-1)`; or `drop_last=True`.
    """

    code = "WG413"
    slug = "squeezed-batch"
    severity = Severity.WARNING
    search = (
        "squeeze removes batch dimension",
        "batch size 1 shape error",
        "last batch of the epoch fails",
        "zero-dimensional tensor cannot be concatenated",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        for batch in torch.randn(9, 4).split(4):
            prediction = model(batch).squeeze()  # <- here
            (prediction - torch.ones(len(batch))).pow(2).mean().backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        for batch in torch.randn(9, 4).split(4):
            prediction = model(batch).squeeze(1)
            (prediction - torch.ones(len(batch))).pow(2).mean().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        by_site: dict[int, list[Operation]] = {}
        for event in facts.of(Operation):
            if plain(event.function) == "squeeze" and len(event.inputs) == 1 and event.site is not None:
                by_site.setdefault(event.site, []).append(event)
        for events in by_site.values():
            shapes = [(event, shape_of(facts, event.inputs[0].tensor)) for event in events]
            usual = next(((event, shape) for event, shape in shapes if shape and shape[0] > 1), None)
            alone = next(((event, shape) for event, shape in shapes if shape and shape[0] == 1), None)
            if usual is None or alone is None or len(usual[1]) != len(alone[1]) or usual[1][1:] != alone[1][1:]:
                continue
            yield self._found(facts, usual[0], usual[1], alone[0], alone[1])

    def _found(
        self,
        facts: Facts,
        usual: Operation,
        usual_shape: tuple[int, ...],
        alone: Operation,
        alone_shape: tuple[int, ...],
    ) -> Finding:
        given, lost = shape_of(facts, usual.outputs[0]), shape_of(facts, alone.outputs[0])
        return self.finding(
            facts,
            alone.site if alone.site is not None else facts.place(None),
            "squeeze() dropped the batch dimension of a batch of one",
            [f"From {usual_shape} it made {given}; from {alone_shape} it made {lost}: the batch dimension is gone."],
            why="squeeze() without an argument removes every dimension of size 1.",
            fix="Say which dimension: squeeze(-1).",
            evidence=[
                facts.evidence(usual, f"{usual_shape} became {given}"),
                facts.evidence(alone, f"{alone_shape} became {lost}"),
            ],
            subjects=[facts.describe(alone.outputs[0])],
            edits=_edits(facts, alone, usual_shape),
        )


def _edits(facts: Facts, event: Operation, shape: tuple[int, ...]) -> list[Edit]:
    ones = [i for i, size in enumerate(shape) if size == 1]
    site = facts.site(event.site)
    source = facts.source_of(event.site)
    node = source.expression(site) if site is not None else None
    if len(ones) != 1 or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return []
    if node.args or node.keywords or node.end_lineno is None or node.end_col_offset is None:
        return []
    at = node.end_lineno, node.end_col_offset - 1
    return [Edit(source.path, *at, *at, str(ones[0]))]
