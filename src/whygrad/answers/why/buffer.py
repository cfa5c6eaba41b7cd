"""What a grad buffer holds at a moment, and what brought it there since it was last empty."""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from whygrad.answers.why.answer import Moment
from whygrad.answers.why.words import is_zero
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    BufferFold,
    GradChanged,
    GradReset,
    GradWritten,
    StepsFolded,
    TensorId,
)
from whygrad.ledger.values import WHOLE_LIMIT, Value

Step: TypeAlias = "GradWritten | GradChanged | Light"


class Light(msgspec.Struct, frozen=True):
    """Writes that were counted and not recorded one by one."""

    event: StepsFolded
    fold: BufferFold

    @property
    def seq(self) -> int:
        return self.event.seq


class Buffer(msgspec.Struct, frozen=True):
    """A buffer at a moment.

    `steps` are the writes and changes since it was last empty, in order. `reset` is what emptied it before
    them, if anything did. `ever` says whether it ever held a gradient. `found` is what it held before the first of
    `steps`, where nothing that was recorded had put it there.
    """

    value: Value | None
    steps: tuple[Step, ...] = ()
    reset: GradReset | None = None
    ever: bool = False
    found: Value | None = None

    @property
    def writes(self) -> tuple[GradWritten, ...]:
        return tuple(step for step in self.steps if isinstance(step, GradWritten))

    @property
    def changes(self) -> tuple[GradChanged, ...]:
        return tuple(step for step in self.steps if isinstance(step, GradChanged))

    @property
    def light(self) -> tuple[Light, ...]:
        return tuple(step for step in self.steps if isinstance(step, Light))


def buffer_at(ledger: Ledger, tensor: TensorId, moment: Moment) -> Buffer:
    """The buffer of `tensor` at `moment`."""
    value: Value | None = None
    steps: list[Step] = []
    reset: GradReset | None = None
    ever = False
    found: Value | None = None
    for event in _life(ledger, tensor):
        if event.seq > moment.seq:
            break
        match event:
            case GradReset():
                reset, steps, found = event, [], None
                value = None if event.to == "none" else _zeros(event.before or _like(ledger, tensor))
            case GradWritten():
                if event.before is None:
                    steps, found = [], None
                elif value is None and not steps and not is_zero(event.before):
                    found = event.before
                steps.append(event)
                value, ever = event.after, True
            case GradChanged():
                if event.by == "assignment" or event.before is None:
                    steps, found = [], None
                steps.append(event)
                value, ever = event.after, True
            case Light(fold=BufferFold(writes=0)):
                if event.fold.resets:
                    steps, value = [], None
            case Light():
                if event.fold.resets:
                    steps = []
                steps.append(event)
                value = None
                ever = ever or event.fold.writes > 0
    return Buffer(value=value, steps=tuple(steps), reset=reset, ever=ever, found=found)


def _life(ledger: Ledger, tensor: TensorId) -> list[GradWritten | GradReset | GradChanged | Light]:
    """Everything that happened to the buffer, with folded steps in their place."""
    folded = [Light(event, fold) for event in ledger.of(StepsFolded) for fold in event.buffers if fold.tensor == tensor]
    life: list[GradWritten | GradReset | GradChanged | Light] = [*ledger.history(tensor), *folded]
    return sorted(life, key=lambda event: event.seq)


def _like(ledger: Ledger, tensor: TensorId) -> Value | None:
    """A value of the tensor's shape: a buffer has the shape of its tensor."""
    known = ledger.tensor(tensor)
    if known is None:
        return None
    count = math.prod(known.shape)
    return Value(shape=known.shape, dtype=known.dtype, items=(0.0,) * count if count <= WHOLE_LIMIT else None)


def _zeros(like: Value | None) -> Value | None:
    if like is None:
        return None
    if like.items is None:
        return Value(shape=like.shape, dtype=like.dtype, norm=0.0, low=0.0, high=0.0)
    return Value(shape=like.shape, dtype=like.dtype, items=(0.0,) * len(like.items))
