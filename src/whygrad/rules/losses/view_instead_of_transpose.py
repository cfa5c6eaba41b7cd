"""WG408: view or reshape where dimensions were to be exchanged."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from whygrad.ledger.events import Operation
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.losscalls import plain, shape_of
from whygrad.rules.rule import Rule

RESHAPING = frozenset({"view", "reshape", "view_as", "reshape_as"})


class ViewInsteadOfTranspose(Rule):
    """view (or reshape) mixes the samples: it was used where two dimensions were to be exchanged.

    `view` and `reshape` read the elements in order and cut them anew; they move nothing. `x.view(B, T, F)` of a tensor
    of shape (T, B, F) gives a tensor of the wanted shape in which a "sample" holds pieces of several samples. The shape
    is right, so nothing raises. The same happens to attention heads, `x.view(B, heads, T, dim)` of (B, T, heads * dim),
    to `h_n.view(B, -1)` of (layers, B, features), and to `(B, heads, T, dim)` put together without a transpose.

    **How to see it.** The new shape has the sizes of the old one in another order; a row of the result takes its
    elements from several rows.

    **How to put it right.** `x.transpose(0, 1)` or `x.permute(...)`, then `reshape`.
    """

    code = "WG408"
    slug = "view-instead-of-transpose"
    severity = Severity.WARNING
    intended = "the elements really lie in that order in memory"
    search = (
        "view vs transpose vs permute",
        "reshape mixes batch",
        "multi-head attention view wrong",
        "h_n.view(batch_size, -1)",
        "view(batch, heads, seq, dim)",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        sequence_first = torch.randn(5, 8, 3)
        x = sequence_first.view(8, 5, 3)  # <- here
        model(x).sum(dim=1).pow(2).mean().backward()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        gru, head = nn.GRU(3, 4, bidirectional=True, batch_first=True), nn.Linear(8, 1)
        _, state = gru(torch.randn(6, 5, 3))
        head(state.view(6, -1)).pow(2).mean().backward()  # <- here
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        gru, head = nn.GRU(3, 4, bidirectional=True, batch_first=True), nn.Linear(8, 1)
        _, state = gru(torch.randn(6, 5, 3))
        head(state.transpose(0, 1).reshape(6, -1)).pow(2).mean().backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        project = torch.nn.Linear(8, 8)
        x = project(torch.randn(3, 5, 8))
        heads = x.view(3, 5, 2, 4).transpose(1, 2)
        joined = heads.transpose(1, 2).reshape(3, 5, 8)
        image = torch.randn(3, 4, 6, 6, requires_grad=True)
        (joined.sum() + image.view(3, 2, 2, 6, 6).sum() + image.flatten(2).sum()).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for event in facts.of(Operation):
            if plain(event.function) not in RESHAPING or not event.inputs or not event.outputs:
                continue
            before, after = shape_of(facts, event.inputs[0].tensor), shape_of(facts, event.outputs[0])
            if before is None or after is None or before == after or _flat(facts, event):
                continue
            known = facts.tensors.get(event.inputs[0].tensor) if event.inputs[0].tensor is not None else None
            if event.node is None and known is not None and known.origin == "created" and len(before) == 1:
                continue
            mixed = _mixed(before, after)
            if mixed is not None:
                yield self._found(facts, event, before, after, mixed)

    def _found(
        self,
        facts: Facts,
        event: Operation,
        before: tuple[int, ...],
        after: tuple[int, ...],
        mixed: tuple[int, int, str],
    ) -> Finding:
        name = plain(event.function)
        first, second, wanted = mixed
        return self.finding(
            facts,
            event.site if event.site is not None else facts.place(None),
            f"{name} from {before} to {after} mixes dimensions {first} and {second}",
            [
                f"{name} keeps the order of the elements and only cuts them anew: {_example(before, after)}. To give "
                f"{after} with the dimensions in another order, the elements have to move."
            ],
            why="view and reshape never move an element; transpose and permute exchange dimensions.",
            fix=f"Exchange the dimensions first: {wanted}.",
            evidence=[facts.evidence(event, f"{before} became {after}")],
            subjects=[facts.describe(event.outputs[0])],
            edits=_edits(facts, event, before, after),
        )


def _mixed(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, int, str] | None:
    """The two dimensions that a reshape mixes, and what was wanted."""
    if len(before) == len(after) >= 2:
        exchanged = [i for i in range(len(before)) if before[i] != after[i]]
        if sorted(before) == sorted(after) and len(exchanged) >= 2 and min(before[i] for i in exchanged) > 1:
            if len(exchanged) == 2:
                return exchanged[0], exchanged[1], f"x.transpose({exchanged[0]}, {exchanged[1]})"
            order = _order(before, after)
            return exchanged[0], exchanged[1], f"x.permute({', '.join(map(str, order))})"
    if len(before) == 3 and len(after) == 4 and before[0] == after[0]:  # (B, T, H * D) -> (B, H, T, D)
        _, time, width = before
        heads = after[1]
        if after[2] == time != heads and heads > 1 and time > 1 and heads * after[3] == width:
            return 1, 2, f"x.view({after[0]}, {time}, {heads}, {after[3]}).transpose(1, 2)"
    if len(before) == 4 and len(after) == 3 and before[0] == after[0]:  # (B, H, T, D) -> (B, T, H * D)
        _, heads, time, width = before
        if after[1] == time != heads and after[2] == heads * width and heads > 1 and time > 1 and heads % time:
            return 1, 2, "x.transpose(1, 2).reshape(...)"
        grouped = heads % width == 0 or heads * time % width == 0  # of channels, which lie together
        if after[1] == width != heads and after[2] == heads * time and heads > 1 and width > 1 and not grouped:
            return 1, 3, "x.permute(0, 3, 1, 2).reshape(...)"
    if len(before) == 3 and len(after) == 2:  # (L, B, F) -> (B, L * F)
        layers, batch, width = before
        if after == (batch, layers * width) and layers != batch and min(layers, batch) > 1 and layers % batch:
            return 0, 1, f"x.transpose(0, 1).reshape({batch}, -1)"
    return None


def _order(before: tuple[int, ...], after: tuple[int, ...]) -> list[int]:
    left = list(range(len(before)))
    order = []
    for size in after:
        index = next(i for i in left if before[i] == size)
        left.remove(index)
        order.append(index)
    return order


def _flat(facts: Facts, event: Operation) -> bool:
    """Whether the operand was itself cut out of something flat, so that the order of its elements is free."""
    tensor = event.inputs[0].tensor
    maker = facts.makers.get(tensor) if tensor is not None else None
    if not isinstance(maker, Operation):
        return False
    return plain(maker.function) in ("arange", "linspace", *RESHAPING) and maker.node is None


def _example(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """Which rows of the operand the first row (of the first dimension that changes) of the result holds."""
    axis = next((i for i in range(min(len(before), len(after))) if before[i] != after[i]), 0)
    old, new = math.prod(before[axis + 1 :]), math.prod(after[axis + 1 :])
    if new > old:
        last = (new - 1) // old
        return f"index 0 of dimension {axis} of the result holds indices 0 to {last} of the operand"
    return f"index 1 of dimension {axis} of the result begins inside index {new // old} of the operand"


def _edits(facts: Facts, event: Operation, before: tuple[int, ...], after: tuple[int, ...]) -> list[Edit]:
    """The permutation instead of the view, where the shape is the same but for the order."""
    site = facts.site(event.site)
    source = facts.source_of(event.site)
    node = source.expression(site) if site is not None else None
    if len(before) != len(after) or len(set(before)) != len(before) or not isinstance(node, ast.Call):
        return []
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in RESHAPING:
        return []
    owner = node.func.value
    if owner.end_lineno is None or owner.end_col_offset is None or node.end_lineno is None:
        return []
    if event.inputs[0].tensor is None or (isinstance(owner, ast.Name) and owner.id == "torch"):
        return []
    text = f".permute({', '.join(map(str, _order(before, after)))})"
    start = owner.end_lineno, owner.end_col_offset
    return [Edit(source.path, *start, node.end_lineno, node.end_col_offset or 0, text)]
