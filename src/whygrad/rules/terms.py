"""The terms that a loss is a sum of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import Operand, Operation, TensorId
from whygrad.rules.facts import Facts

SUMS = frozenset({"add", "sub", "add_", "sub_", "torch.add", "torch.sub"})
SCALES = frozenset(
    {"mul", "div", "neg", "mul_", "div_", "sum", "mean", "torch.sum", "torch.mean", "torch.neg", "torch.mul"}
)
STACKS = frozenset({"torch.stack", "stack", "sum", "torch.cat"})


class Term(msgspec.Struct, frozen=True):
    """What was added into a loss by an operation: a tensor, or (below 0) a number that was taken out of one."""

    tensor: TensorId
    added_by: Operation


def terms(facts: Facts, root: TensorId) -> Iterator[Term]:
    """What the root is a sum of, down to what is no sum; scaled terms too."""
    by_output: dict[TensorId, list[Operation]] = {}
    for operation in facts.of(Operation):
        for output in operation.outputs:
            by_output.setdefault(output, []).append(operation)
    seen: set[TensorId] = set()
    queue: list[tuple[TensorId, Operation | None]] = [(root, None)]
    for tensor, parent in queue:
        if tensor in seen:
            continue
        seen.add(tensor)
        sums = [one for one in by_output.get(tensor, ()) if one.function in SUMS or _of_several(one)]
        if not sums and parent is not None:
            yield Term(tensor, parent)
        for operation in sums:
            queue += [(given, operation) for given in given_to(facts, operation) if given != tensor]
            for made in facts.flow.makers.get(tensor, ()):
                if made.seq == operation.seq:
                    yield from (Term(given, operation) for given in made.inputs if given < 0)
        if not sums:
            scales = [one for one in by_output.get(tensor, ()) if one.function in SCALES and not one.in_place]
            for operation in scales[:1]:
                given = [one for one in tensors_of(operation.inputs) if facts.flow.requires_grad(one)]
                if len(given) == 1:
                    queue.append((given[0], parent or operation))


def _of_several(operation: Operation) -> bool:
    """Whether an operation puts a list of terms together."""
    return operation.function in STACKS and any(operand.items for operand in operation.inputs)


def given_to(facts: Facts, operation: Operation) -> list[TensorId]:
    """The tensors that an operation took; for `total += expression`, what the expression gave too."""
    given = tensors_of(operation.inputs)
    place = facts.place(operation.site)
    statement = facts.source(place.path).statement(place.line) if place.path else None
    if not isinstance(statement, ast.AugAssign) or operation.function.rstrip("_") not in ("add", "sub"):
        return given
    text = facts.source(place.path).segment(statement.value)
    made = [
        one.outputs[0]
        for one in facts.of(Operation)
        if one.seq < operation.seq
        and one.outputs
        and (at := facts.place(one.site)).line == place.line
        and at.code == text
    ]
    return [*given, *(one for one in made[-1:] if one not in given)]


def tensors_of(operands: tuple[Operand, ...]) -> list[TensorId]:
    """The tensors among operands, those in lists too."""
    found: list[TensorId] = []
    for operand in operands:
        if operand.tensor is not None:
            found.append(operand.tensor)
        if operand.items:
            found += tensors_of(operand.items)
    return found
