"""WG209: an indexed assignment with repeated indices keeps one value and drops the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Node, Operation, SiteId, TensorId
from whygrad.ledger.values import Number
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.terms import tensors_of


class DuplicateIndexWrite(Rule):
    """out[index] += values loses values where an index occurs twice.

    `out[index] += values` reads `out[index]`, adds, and writes back: for an index that occurs more than once only one
    of the writes survives. Autograd gives every duplicate the gradient of the slot all the same, so the gradient is
    neither that of the sum that was meant nor that of what was computed. Nothing raises.

    **How to see it.** The index has repeated entries, and the result holds less than the sum of the values.

    **How to put it right.** `out = out.index_add(0, index, values)`, `scatter_add`, or
    `index_put_(..., accumulate=True)`: they add up.
    """

    code = "WG209"
    slug = "duplicate-index-write"
    intended = "the last value of each index is wanted"
    search = (
        "index += duplicates", "scatter add", "fancy indexing in place sum", "message passing loses messages",
        "index_put_ accumulate", "histogram with repeated indices",
    )  # fmt: skip
    wrong = (
        """
        import torch
        index = torch.tensor([2, 2, 0])
        weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        out = torch.zeros(4)
        out[index] += weight * 2  # <- here
        out.pow(2).sum().backward()
        """,
        """
        import torch
        rows, columns = torch.tensor([0, 1, 1]), torch.tensor([2, 0, 0])
        weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        out = torch.zeros(2, 3)
        out[rows, columns] = out[rows, columns] + weight  # <- here
        out.sum().backward()
        """,
    )
    right = (
        """
        import torch
        index = torch.tensor([2, 2, 0])
        weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        out = torch.zeros(4).index_add(0, index, weight * 2)
        out.pow(2).sum().backward()
        """,
        """
        import torch
        index = torch.tensor([2, 1, 0])
        weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        out = torch.zeros(4)
        out[index] += weight * 2
        out[torch.tensor([1, 1])] = 0.0
        out.pow(2).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen: set[SiteId | None] = set()
        for operation in facts.of(Operation):
            if operation.site in seen:
                continue
            if (repeated := _overwrites(facts, operation)) and operation.site is not None:
                seen.add(operation.site)
                yield self._overwritten(facts, operation, repeated)
                continue
            if not operation.in_place:
                continue
            place = facts.place(operation.site)
            source = facts.source(place.path)
            statement = source.statement(place.line)
            target = _added_into(source, statement)
            if target is None or not operation.outputs:
                continue
            indices = _indices(facts, source, operation, target, place.line)
            repeated = _repeated(facts, indices, operation.seq)
            if repeated:
                seen.add(operation.site)
                yield self._found(facts, operation, target, statement, repeated)

    def _overwritten(self, facts: Facts, operation: Operation, repeated: dict[tuple[Number, ...], int]) -> Finding:
        """`scatter` or `index_put` without adding."""
        index, times = next(iter(repeated.items()))
        place = facts.place(operation.site)
        lost = sum(count - 1 for count in repeated.values())
        return self.finding(
            facts,
            place,
            f"values are lost: {operation.function} writes one value over the other where an index occurs twice",
            [
                f"The index of `{place.code}` holds {index[0] if len(index) == 1 else index} {times} times; "
                f"of the values for one index a single one stays: {lost} of them are lost."
            ],
            why="Without adding, the last value written for an index is the one that stays, and which is last is open.",
            fix="Use scatter_add, index_add, or index_put with accumulate=True.",
            evidence=[facts.evidence(operation, f"{operation.function} with repeated indices")],
            subjects=[facts.describe(operation.outputs[0])],
            severity=Severity.WARNING,
        )

    def _found(
        self,
        facts: Facts,
        operation: Operation,
        target: ast.Subscript,
        statement: ast.stmt | None,
        repeated: dict[tuple[Number, ...], int],
    ) -> Finding:
        place = facts.place(operation.site)
        source = facts.source(place.path)
        index, times = next(iter(repeated.items()))
        shown = index[0] if len(index) == 1 else index
        lost = sum(count - 1 for count in repeated.values())
        kept = facts.describe(operation.outputs[0])
        return self.finding(
            facts,
            place,
            f"values are lost: the index {source.segment(target.slice)} has repeated entries",
            [
                f"`{source.segment(target)}` was read, added to, and written back, with an index in which {shown} "
                f"occurs {times} times; of the values for one index a single one stays: {lost} of them are lost.",
                *(
                    [f"Each of the lost values still gets the gradient of its slot in {kept}."]
                    if operation.node
                    else []
                ),
            ],
            why="An indexed += reads all entries first and writes them back one by one; it does not add up duplicates.",
            fix="Use index_add (or scatter_add, or index_put_ with accumulate=True), which adds duplicates up.",
            evidence=[facts.evidence(operation, f"`{place.code or source.line(place.line).strip()}` wrote in place")],
            subjects=[kept],
            edits=_index_added(facts, source, target, statement),
        )


def _added_into(source: Source, statement: ast.stmt | None) -> ast.Subscript | None:
    """The target of `out[i] += v`, or of `out[i] = out[i] + v`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add | ast.Sub):
        return statement.target if isinstance(statement.target, ast.Subscript) else None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(statement.value, ast.BinOp):
            text = source.segment(target)
            sides = (statement.value.left, statement.value.right)
            if isinstance(statement.value.op, ast.Add) and any(source.segment(side) == text for side in sides):
                return target
    return None


def _indices(facts: Facts, source: Source, operation: Operation, target: ast.Subscript, line: int) -> list[TensorId]:
    """The index tensors: as autograd saved them, or by their names."""
    node: Node | None = facts.nodes.get(operation.node) if operation.node is not None else None
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if len(parts) == 1 and node is not None:
        saved = [one.tensor for one in node.saved if one.slot == "indices" and one.tensor is not None]
        if len(saved) == 1:
            return saved
    found = []
    for part in parts:
        known: tuple[TensorId, ...] = ()
        if isinstance(part, ast.Name):
            known = facts.ledger.find(source.segment(part), line, source.path)
        elif not isinstance(part, ast.Slice | ast.Constant):
            known = _at(facts, source, part, line, operation.seq)
        ints = [one for one in known if facts.tensors[one].dtype.startswith("int")]
        if not ints:
            return []
        found.append(ints[0])
    return found


def _overwrites(facts: Facts, operation: Operation) -> dict[tuple[Number, ...], int]:
    """The repeated entries of the index of a `scatter`, `index_put` or `index_copy` of values with a history."""
    plain = operation.function.rpartition(".")[2].rstrip("_")
    words = {one.keyword: one for one in operation.inputs if one.keyword}
    if plain not in ("scatter", "index_put", "index_copy") or words.keys() & {"reduce", "accumulate"}:
        return {}
    if plain == "index_put" and any(
        one.known and one.constant is True for one in operation.inputs if one.tensor is None
    ):
        return {}
    given = tensors_of(operation.inputs)
    indices = [one for one in given if facts.tensors[one].dtype.startswith("int")]
    if not indices or not facts.flow.requires_grad(given[-1]) or given[-1] in indices or len(given) < 3:
        return {}
    return _repeated(facts, indices, operation.seq) if len(facts.tensors[indices[0]].shape) == 1 else {}


def _at(facts: Facts, source: Source, part: ast.expr, line: int, before: int) -> tuple[TensorId, ...]:
    """What an expression inside the index last gave."""
    text = source.segment(part)
    made = [
        one.outputs[0]
        for one in facts.of(Operation)
        if one.seq < before and one.outputs and (place := facts.place(one.site)).line == line and place.code == text
    ]
    return tuple(made[-1:])


def _repeated(facts: Facts, indices: list[TensorId], before: int) -> dict[tuple[Number, ...], int]:
    """The index entries that occur more than once, with how often."""
    columns = []
    for tensor in indices:
        value = facts.value(tensor, before)
        if value is None or value.items is None or not value.dtype.startswith("int"):
            return {}
        columns.append(value.items)
    if not columns or len({len(column) for column in columns}) != 1:
        return {}
    counts: dict[tuple[Number, ...], int] = {}
    for entry in zip(*columns, strict=True):
        counts[entry] = counts.get(entry, 0) + 1
    return {entry: count for entry, count in counts.items() if count > 1}


def _index_added(facts: Facts, source: Source, target: ast.Subscript, statement: ast.stmt | None) -> tuple[Edit, ...]:
    """`out[i] += v` as `out = out.index_add(0, i, v)`, where v has one entry for each index."""
    simple = isinstance(target.value, ast.Name) and isinstance(target.slice, ast.Name)
    if not simple or not isinstance(statement, ast.AugAssign) or not isinstance(statement.value, ast.Name):
        return ()
    given = facts.ledger.find(source.segment(statement.value), statement.lineno, source.path)
    index = facts.ledger.find(source.segment(target.slice), statement.lineno, source.path)
    if not given or not index:
        return ()
    values, indices = facts.tensors[given[0]], facts.tensors[index[0]]
    if len(indices.shape) != 1 or values.shape[:1] != indices.shape:
        return ()
    out, name, value = (source.segment(node) for node in (target.value, target.slice, statement.value))
    minus = ", alpha=-1" if isinstance(statement.op, ast.Sub) else ""
    text = f"{out} = {out}.index_add(0, {name}, {value}{minus})"
    line = source.line(statement.lineno)
    start = len(line) - len(line.lstrip())
    end = len(source.line(statement.end_lineno or statement.lineno).encode()[: statement.end_col_offset].decode())
    return (Edit(source.path, statement.lineno, start, statement.end_lineno or statement.lineno, end, text),)
