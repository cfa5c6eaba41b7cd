"""Collects module calls, mode switches and grad modes, alike ones folded into one with a count."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from whygrad.ledger import Ledger, events
from whygrad.ledger.events import ModuleId
from whygrad.report.parts import Call, GradMode, ModeSwitch, ModuleEntry, Size
from whygrad.report.places import Places


class Calls:
    """Follows the modules through the stream of events."""

    def __init__(self, ledger: Ledger, places: Places) -> None:
        self._ledger = ledger
        self._places = places
        self._entries: dict[Hashable, ModuleEntry] = {}
        self._grad_modes: dict[Hashable, GradMode] = {}

    def called(self, event: events.ModuleCalled) -> None:
        path, kind, config = self._who(event.module)
        shapes = (_ranks(event.inputs), _ranks(event.outputs))
        key = ("call", path, kind, event.site, event.training, event.grad_mode, shapes, bool(event.error), event.broken)
        known = self._entries.get(key)
        if isinstance(known, Call):
            self._entries[key] = replace(
                known,
                times=known.times + 1,
                last=event.value,
                inputs=_widened(known.inputs, event.inputs),
                outputs=_widened(known.outputs, event.outputs),
            )
            return
        self._entries[key] = Call(
            seq=event.seq,
            module=path,
            kind=kind,
            config=config,
            place=self._places.at(event.site),
            training=event.training,
            grad_mode=event.grad_mode,
            inputs=tuple(_size(shape) for shape in event.inputs),
            outputs=tuple(_size(shape) for shape in event.outputs),
            first=event.value,
            last=event.value,
            depth=event.depth,
            error=event.error,
            broken=event.broken,
        )

    def mode_changed(self, event: events.ModeChanged) -> None:
        path = self._who(event.module)[0]
        key = ("mode", path, event.site, event.call, event.training)
        known = self._entries.get(key)
        changed = tuple(name for name, _ in event.changed)
        if isinstance(known, ModeSwitch):
            self._entries[key] = replace(
                known,
                times=known.times + 1,
                changed=known.changed or changed,
                effective=known.effective + bool(changed),
            )
            return
        self._entries[key] = ModeSwitch(
            seq=event.seq,
            module=path,
            call=event.call,
            training=event.training,
            place=self._places.at(event.site),
            changed=changed,
            effective=int(bool(changed)),
        )

    def grad_mode_changed(self, event: events.GradModeChanged) -> None:
        if not event.entered:
            return
        key = (event.site, event.by, event.mode)
        known = self._grad_modes.get(key)
        if known is not None:
            self._grad_modes[key] = replace(known, times=known.times + 1)
            return
        self._grad_modes[key] = GradMode(seq=event.seq, by=event.by, mode=event.mode, place=self._places.at(event.site))

    def entries(self) -> tuple[ModuleEntry, ...]:
        """Calls and mode switches, in the order in which each first happened."""
        return tuple(self._entries.values())

    def grad_modes(self) -> tuple[GradMode, ...]:
        return tuple(self._grad_modes.values())

    def _who(self, module: ModuleId) -> tuple[str, str, str]:
        known = self._ledger.module(module)
        return (known.path, known.kind, known.config) if known else ("a module", "", "")


def _ranks(shapes: tuple[events.Shape, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((len(shape.shape), shape.dtype) for shape in shapes)


def _size(shape: events.Shape) -> Size:
    return Size(low=shape.shape, high=shape.shape, dtype=shape.dtype)


def _widened(sizes: tuple[Size, ...], shapes: tuple[events.Shape, ...]) -> tuple[Size, ...]:
    if all(size.low == size.high == shape.shape for size, shape in zip(sizes, shapes, strict=True)):
        return sizes
    return tuple(
        Size(
            low=tuple(map(min, size.low, shape.shape)),
            high=tuple(map(max, size.high, shape.shape)),
            dtype=size.dtype,
        )
        for size, shape in zip(sizes, shapes, strict=True)
    )
