"""Collects what happened around the gradients: cuts, writes into data, frozen tensors, optimizer steps."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from whygrad.ledger import Ledger, events
from whygrad.ledger.events import Operand, TensorId
from whygrad.ledger.values import Value, as_float
from whygrad.report.buffers import Buffers
from whygrad.report.parts import BORN, Cut, DataWrite, Moved, Optimizing, Switched
from whygrad.report.places import Places

OUT_OF_TORCH = frozenset({"item", "numpy", "tolist"})

KEPT_TITLES = 4
"""Names that are given of many tensors treated alike at one place."""


class Traces:
    """Follows tensors' data and the optimizers through the stream of events; alike events are folded."""

    def __init__(self, ledger: Ledger, places: Places, buffers: Buffers) -> None:
        self._ledger = ledger
        self._places = places
        self._buffers = buffers
        self._cuts: dict[Hashable, Cut] = {}
        self._writes: dict[Hashable, DataWrite] = {}
        self._switched: dict[Hashable, Switched] = {}
        self._optimizing: dict[Hashable, _Steps] = {}

    def operation(self, event: events.Operation) -> None:
        if not event.cut:
            return
        key = (event.site, event.cut)
        known = self._cuts.get(key)
        if known is not None:
            self._cuts[key] = replace(known, times=known.times + 1)
            return
        self._cuts[key] = Cut(
            seq=event.seq,
            by=event.cut,
            of=self._of(event.inputs),
            result=self._ledger.name(event.outputs[0]) if event.outputs else "",
            place=self._places.at(event.site),
            leaves_torch=event.cut in OUT_OF_TORCH,
        )

    def data_changed(self, event: events.DataChanged) -> None:
        title = self._ledger.describe(event.tensor)
        key = (event.site, event.by, title)
        known = self._writes.get(key)
        if known is not None:
            self._writes[key] = replace(
                known,
                times=known.times + 1,
                version=event.version,
                hidden=known.hidden or event.hidden,
                after=event.after,
            )
            return
        self._writes[key] = DataWrite(
            seq=event.seq,
            title=title,
            by=event.by,
            place=self._places.at(event.site),
            version_before=event.version_before,
            version=event.version,
            hidden=event.hidden,
            after=event.after,
        )

    def parameter(self, event: events.Tensor) -> None:
        """A parameter that did not require grad when it was first seen is frozen like one that is switched off."""
        if event.origin == "parameter" and not event.requires_grad:
            self._switch(event.id, event, to=False, by=BORN)

    def requires_grad(self, event: events.RequiresGradChanged) -> None:
        self._switch(event.tensor, event, to=event.to, by=event.by)

    def _switch(self, tensor: TensorId, event: events.Event, *, to: bool, by: str) -> None:
        key = (event.site, to, by)
        title = self._ledger.describe(tensor)
        known = self._switched.get(key)
        if known is None:
            self._switched[key] = Switched(
                seq=event.seq, to=to, by=by, titles=(title,), place=self._places.at(event.site)
            )
            return
        more = (title,) if len(known.titles) < KEPT_TITLES and title not in known.titles else ()
        self._switched[key] = replace(known, titles=known.titles + more, times=known.times + 1)

    def stepped(self, event: events.OptimizerStepped) -> None:
        known = self._ledger.optimizer(event.optimizer)
        name, kind = (known.name, known.kind) if known is not None else ("", "an optimizer")
        key = (name or event.optimizer, kind, event.site)
        steps = self._optimizing.get(key)
        if steps is None:
            steps = self._optimizing[key] = _Steps(name, kind, event)
        steps.count += 1
        steps.lr_last = event.lr
        for update in event.updates:
            parameter = self._parameter(steps, update.tensor)
            if update.change is None or update.size is None:
                steps.moved[update.tensor] = replace(parameter, steps=parameter.steps + 1)
                continue
            change, size = as_float(update.change), as_float(update.size)
            steps.moved[update.tensor] = replace(
                parameter,
                steps=parameter.steps + 1,
                first_change=change if parameter.first_change is None else parameter.first_change,
                last_change=change,
                first_size=size if parameter.first_size is None else parameter.first_size,
                last_size=size,
                after=update.after,
                unmoved=parameter.unmoved + (not update.changed),
                zero_grad=parameter.zero_grad + (not update.changed and _is_zero(update.grad)),
            )
        for tensor in event.skipped:
            parameter = self._parameter(steps, tensor)
            why = parameter.why or self._buffers.why_none(tensor)
            steps.moved[tensor] = replace(parameter, skipped=parameter.skipped + 1, why=why)

    def cuts(self) -> tuple[Cut, ...]:
        return tuple(self._cuts.values())

    def writes(self) -> tuple[DataWrite, ...]:
        return tuple(self._writes.values())

    def switched(self) -> tuple[Switched, ...]:
        return tuple(self._switched.values())

    def optimizing(self) -> tuple[Optimizing, ...]:
        return tuple(
            Optimizing(
                seq=steps.first.seq,
                name=steps.name,
                kind=steps.kind,
                place=self._places.at(steps.first.site),
                steps=steps.count,
                lr_first=steps.first.lr,
                lr_last=steps.lr_last,
                moved=tuple(steps.moved.values()),
            )
            for steps in self._optimizing.values()
        )

    def _parameter(self, steps: _Steps, tensor: TensorId) -> Moved:
        known = steps.moved.get(tensor)
        if known is not None:
            return known
        return Moved(
            tensor=tensor,
            title=self._ledger.describe(tensor),
            steps=0,
            first_change=None,
            last_change=None,
            first_size=None,
            last_size=None,
            after=None,
            unmoved=0,
            zero_grad=0,
            skipped=0,
            why="",
        )

    def _of(self, operands: tuple[Operand, ...]) -> str:
        """The tensor that the history was taken from: the first of the operands, as it was written."""
        for operand in operands:
            if operand.tensor is not None:
                return self._ledger.name(operand.tensor) or operand.code or self._ledger.describe(operand.tensor)
            if operand.items and (inner := self._of(operand.items)):
                return inner
        return ""


def _is_zero(grad: Value | None) -> bool:
    return grad is not None and grad.magnitude == 0


class _Steps:
    """The steps of one optimizer at one place, while they are counted."""

    def __init__(self, name: str, kind: str, first: events.OptimizerStepped) -> None:
        self.name = name
        self.kind = kind
        self.first = first
        self.count = 0
        self.lr_last = first.lr
        self.moved: dict[TensorId, Moved] = {}
