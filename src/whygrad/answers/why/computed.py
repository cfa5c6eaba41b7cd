"""What each tensor's value was at a moment, and the computation that gave it that value."""

from __future__ import annotations

import msgspec

from whygrad.answers.why.answer import Moment
from whygrad.ledger import Ledger
from whygrad.ledger.events import DataChanged, ModuleCalled, Operation, OptimizerStepped, TensorId
from whygrad.ledger.values import Value


class Computed(msgspec.Struct, frozen=True):
    """A computation that gave a tensor its value: the event, and the value, where it was kept."""

    event: Operation | ModuleCalled
    value: Value | None


class Write(msgspec.Struct, frozen=True):
    """An in-place write: by whom, and the value after it, where it was kept."""

    event: DataChanged | OptimizerStepped
    by: str
    after: Value | None


class Values:
    """The values of tensors up to a moment."""

    def __init__(self, ledger: Ledger, moment: Moment) -> None:
        self._ledger = ledger
        self._computed: dict[TensorId, list[Computed]] = {}
        self._written: dict[TensorId, list[Write]] = {}
        for event in ledger:
            if event.seq > moment.seq:
                break
            match event:
                case Operation():
                    for position, output in enumerate(event.outputs):
                        self._add(output, Computed(event, None if position else event.value))
                case ModuleCalled():
                    for position, shape in enumerate(event.outputs):
                        if shape.tensor is not None:
                            self._add(shape.tensor, Computed(event, None if position else event.value))
                case DataChanged():
                    self._written.setdefault(event.tensor, []).append(Write(event, event.by, event.after))
                case OptimizerStepped():
                    optimizer = ledger.optimizer(event.optimizer)
                    by = f"{optimizer.kind}.step" if optimizer is not None else "an optimizer's step"
                    for update in event.updates:
                        self._written.setdefault(update.tensor, []).append(Write(event, by, update.after))
                case _:
                    pass

    def _add(self, tensor: TensorId, computed: Computed) -> None:
        self._computed.setdefault(tensor, []).append(computed)

    def computed(self, tensor: TensorId, before: int) -> Computed | None:
        """The computation that gave the tensor its value before event `before`: the first, or the last in-place one.

        A module that hands its input on (Dropout in evaluation mode) did not compute it.
        """
        found: Computed | None = None
        for entry in self._computed.get(tensor, ()):
            if entry.event.seq >= before:
                break
            if found is None or (isinstance(entry.event, Operation) and entry.event.in_place):
                found = entry
        return found

    def value(self, tensor: TensorId, before: int) -> Value | None:
        """The tensor's value before event `before`; None where it was not kept."""
        known = self._ledger.tensor(tensor)
        value, since, site = (known.value, known.seq, known.site) if known is not None else (None, 0, None)
        for entry in self._computed.get(tensor, ()):
            if entry.event.seq < before and entry.value is not None:
                value, since, site = entry.value, entry.event.seq, entry.event.site
        for write in self._written.get(tensor, ()):
            if since < write.event.seq < before and (write.after is not None or write.event.site != site):
                value = write.after
        return value

    def given_at(self, event: Operation | ModuleCalled) -> int:
        """The event before which an operation's operands still had the values that it was given.

        A write in place is told of before the operation that wrote.
        """
        if not isinstance(event, Operation) or not event.in_place:
            return event.seq
        writes = [
            write.event.seq
            for output in event.outputs
            for write in self._written.get(output, ())
            if write.event.seq < event.seq and write.event.site == event.site
        ]
        between = max(writes, default=event.seq)
        told = (entry.event.seq for output in event.outputs for entry in self._computed.get(output, ()))
        return between if not any(between < seq < event.seq for seq in told) else event.seq

    def last_write(self, tensor: TensorId, before: int) -> Write | None:
        """The last time that the tensor's data was written in place."""
        writes = [write for write in self._written.get(tensor, ()) if write.event.seq < before]
        return writes[-1] if writes else None
