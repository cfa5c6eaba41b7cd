"""What used a grad buffer: steps of optimizers, and updates that the program writes by hand."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice

import msgspec

from whygrad.ledger.events import (
    DataChanged,
    GradChanged,
    GradReset,
    GradWritten,
    OptimizerId,
    OptimizerStepped,
    SiteId,
    TensorId,
)
from whygrad.ledger.values import Value, as_float
from whygrad.rules.facts import Facts
from whygrad.rules.memo import once


class Use(msgspec.Struct, frozen=True):
    """One tensor was moved with the gradient in its buffer: by an optimizer, or by hand (`optimizer` is None)."""

    seq: int
    tensor: TensorId
    site: SiteId | None
    step: int
    grad: Value | None
    optimizer: OptimizerId | None
    moved: bool


@once
def uses(facts: Facts) -> dict[TensorId, list[Use]]:
    """Every use of each tensor's buffer, in order."""
    found: dict[TensorId, list[Use]] = {}
    for event in facts.events:
        if isinstance(event, OptimizerStepped):
            for update in event.updates:
                if update.grad is not None:
                    use = Use(
                        event.seq, update.tensor, event.site, event.step, update.grad, event.optimizer, update.changed
                    )
                    found.setdefault(update.tensor, []).append(use)
        elif isinstance(event, DataChanged) and by_hand(facts, event):
            use = Use(event.seq, event.tensor, event.site, event.step, None, None, True)
            found.setdefault(event.tensor, []).append(use)
    return found


def by_hand(facts: Facts, change: DataChanged) -> bool:
    """Whether a write into a tensor is an update that the program wrote: its lines read the tensor's `.grad`."""
    place = facts.place(change.site)
    if not place.path or change.by.endswith(".step"):
        return False
    source = facts.source(place.path)
    statement = source.statement(place.line)
    if statement is None:
        return False
    if ".grad" in source.segment(statement).replace(".grad_", ""):
        return True
    loop = source.loop_at(place.line)
    return loop is not None and ".grad" in source.segment(loop).replace(".grad_", "")


Buffer = GradWritten | GradReset | GradChanged


def history_between(facts: Facts, tensor: TensorId, after: int, before: int) -> Iterator[Buffer]:
    """What happened to a buffer between two events."""
    events = histories(facts).get(tensor, [])
    start = bisect_right(events, after, key=_seq)
    for event in islice(events, start, None):
        if event.seq >= before:
            return
        yield event


def back_from(facts: Facts, tensor: TensorId, before: int) -> Iterator[Buffer]:
    """What happened to a buffer before an event, the latest first."""
    events = histories(facts).get(tensor, [])
    for index in range(bisect_left(events, before, key=_seq) - 1, -1, -1):
        yield events[index]


@once
def histories(facts: Facts) -> dict[TensorId, list[Buffer]]:
    """What happened to each buffer, in order."""
    found: dict[TensorId, list[Buffer]] = {}
    for event in facts.events:
        if isinstance(event, (GradWritten, GradReset, GradChanged)):
            found.setdefault(event.tensor, []).append(event)
    return found


def _seq(event: Buffer) -> int:
    return event.seq


def is_zero(value: Value | None) -> bool:
    """Whether every element is exactly zero."""
    return value is not None and value.magnitude == 0


def items(value: Value | None) -> list[float] | None:
    """The elements of a value that was kept whole, as floats."""
    if value is None or value.items is None:
        return None
    try:
        return [as_float(item) for item in value.items]
    except ValueError:
        return None


def real(number: float | str | None) -> float | None:
    """A norm or a loss as a float, where it is one."""
    try:
        return None if number is None else as_float(number)
    except ValueError:
        return None


def finite(number: float | None) -> bool:
    return number is not None and math.isfinite(number)
