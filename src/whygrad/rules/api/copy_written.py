"""WG907: an in-place operation writes into a copy that nothing keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Operand, Operation, SiteId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import callee

COPIES = frozenset(
    {"clone", "deepcopy", "index_select", "masked_select", "gather", "take", "contiguous", "repeat", "flip", "roll"}
)


class CopyWritten(Rule):
    """`w[mask].zero_()` and `nn.init.normal_(w.clone())` change nothing.

    Indexing with a mask or with a list of positions *copies* the elements, and so does `clone()`. An in-place method on
    such a copy changes the copy, which is gone at the end of the line. (A slice, `w[2:5]`, is a view: there it works.)

    **How to put it right.** Assign through the index, `w[mask] = 0`, or write into the tensor itself.
    """

    code = "WG907"
    slug = "copy-written"
    severity = Severity.WARNING
    search = (
        "tensor[mask].zero_() does not work",
        "in-place on indexed tensor no effect",
        "nn.init on clone",
        "masked fill_ ignored",
    )
    wrong = (
        """
        import torch
        weight = torch.randn(3, 4)
        prune = weight.abs() < 0.5
        weight[prune].zero_()  # <- here
        print((weight == 0).sum())
        """,
    )
    right = (
        """
        import torch
        weight = torch.randn(3, 4)
        weight[weight.abs() < 0.5] = 0
        weight[1:].mul_(2)
        weight[0].zero_()
        other = weight.clone().mul_(2)
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        for event in facts.of(Operation):
            site = facts.site(event.site)
            if not event.in_place or not event.outputs or event.site in told or site is None:
                continue
            source = facts.source(site.path)
            node = source.expression(site)
            parent = source.parents.get(node) if node is not None else None
            if not isinstance(parent, ast.Expr) or not isinstance(node, ast.Call) or not callee(node).endswith("_"):
                continue
            made = facts.makers.get(event.outputs[0])
            if isinstance(made, Operation) and _is_copy(facts, made) and _within(source, node, facts, made):
                told.add(event.site)
                yield self._finding(facts, event, made, source, node)

    def _finding(self, facts: Facts, event: Operation, made: Operation, source: Source, node: ast.Call) -> Finding:
        original: TensorId | None = made.inputs[0].tensor if made.inputs else None
        name = facts.describe(original) if original is not None else "the tensor"
        return self.finding(
            facts,
            facts.place(event.site),
            f"{callee(node)}() writes into a copy, and {name} stays as it is",
            [
                f"`{facts.place(made.site).code}` gave a copy; `{source.segment(node)}` changed that copy "
                f"({say(event.value)}), and nothing keeps it.",
            ],
            why="Indexing with a mask or a list, and clone(), copy the elements; only slices are views.",
            fix="Assign through the index (w[mask] = ...), or write into the tensor itself.",
            evidence=[
                facts.evidence(made, "a copy was made"),
                facts.evidence(event, "the copy was written into, and dropped"),
            ],
            subjects=[name],
        )


def _is_copy(facts: Facts, made: Operation) -> bool:
    name = made.function.rpartition(".")[2]
    return name in COPIES or (name == "getitem" and any(_advanced(facts, each) for each in made.inputs[1:]))


def _advanced(facts: Facts, operand: Operand) -> bool:
    """Whether an index selects by a mask or by listed positions."""
    if operand.tensor is not None:
        known = facts.tensors.get(operand.tensor)
        return known is not None and (known.dtype == "bool" or len(known.shape) > 0)
    return operand.items is not None and any(_advanced(facts, each) for each in operand.items)


def _within(source: Source, node: ast.Call, facts: Facts, made: Operation) -> bool:
    """Whether the copy is made inside the very expression that writes into it."""
    place = facts.place(made.site)
    return any(
        source.segment(each) == place.code for each in ast.walk(node) if isinstance(each, ast.expr) and each is not node
    )
