"""Collects backward passes, and the steps that were recorded lightly."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from whygrad.ledger import Ledger, events
from whygrad.ledger.events import BackwardId, SiteId
from whygrad.ledger.values import Value, as_float
from whygrad.report.parts import Loop, Pass, Spread
from whygrad.report.places import Places


class Passes:
    """Follows the backward passes through the stream of events; alike ones are folded."""

    def __init__(self, ledger: Ledger, places: Places) -> None:
        self._ledger = ledger
        self._places = places
        self._running: dict[BackwardId, events.BackwardBegan] = {}
        self._passes: dict[Hashable, Pass] = {}
        self._loops: list[Loop] = []
        self._newest_stopped: Pass | None = None
        self._named: dict[SiteId | None, str] = {}

    def began(self, event: events.BackwardBegan) -> None:
        self._running[event.id] = event

    def ended(self, event: events.BackwardEnded) -> None:
        began = self._running.pop(event.id, None)
        if began is not None:
            self._note(began, event)

    def folded(self, event: events.StepsFolded) -> None:
        kinds = event.passes or (None,)
        for kind in kinds:
            self._loops.append(
                Loop(
                    seq=event.seq,
                    place=self._places.at(kind.site) if kind is not None else None,
                    first_step=event.first,
                    last_step=event.last,
                    backwards=event.backwards if kind is None else kind.backwards,
                    optimizer_steps=event.optimizer_steps if len(kinds) == 1 else 0,
                    loss=_losses(event if kind is None else kind),
                )
            )

    def stopped_with(self, text: str) -> Pass | None:
        """The pass that was stopped most recently, if it was by an exception of this text."""
        stopped = self._newest_stopped
        return stopped if stopped is not None and text in stopped.error else None

    def passes(self) -> tuple[Pass, ...]:
        """Passes that were begun and never ended (the process was killed) come last."""
        for began in tuple(self._running.values()):
            self._note(began, None)
        self._running.clear()
        return tuple(self._passes.values())

    def loops(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self._loops if loop.backwards or loop.optimizer_steps)

    def _note(self, began: events.BackwardBegan, ended: events.BackwardEnded | None) -> None:
        error = ended.error if ended is not None else "the ledger ends before the pass does"
        root = self._ledger.name(began.roots[0]) if began.roots else ""
        root = self._named[began.site] = root or self._named.get(began.site, "")
        key = (began.site, began.call, root, len(began.roots), began.retain_graph, began.create_graph, error)
        known = self._passes.get(key)
        if known is None:
            made = self._first(began, ended, error)
        else:
            made = replace(known, last=began.id, times=known.times + 1, root_last=began.root_value)
            made = replace(made, not_finite=made.not_finite + _not_finite(began.root_value))
        self._passes[key] = made
        if error:
            self._newest_stopped = made

    def _first(self, began: events.BackwardBegan, ended: events.BackwardEnded | None, error: str) -> Pass:
        blamed = self._ledger.node(ended.blamed) if ended is not None else None
        freed_by = ended.freed_by if ended is not None else None
        return Pass(
            seq=began.seq,
            first=began.id,
            last=began.id,
            times=1,
            call=began.call,
            place=self._places.at(began.site),
            root=self._roots(began),
            roots=len(began.roots),
            root_first=began.root_value,
            root_last=began.root_value,
            gradient=began.gradient,
            retain_graph=began.retain_graph,
            create_graph=began.create_graph,
            nodes=began.nodes,
            leaves=len(began.leaves),
            not_finite=_not_finite(began.root_value),
            error=error,
            blamed=self._places.at(blamed.site) if blamed is not None else None,
            blamed_name=blamed.name if blamed is not None else "",
            freed_by=freed_by,
            freed_at=self._places.at(self._site_of(freed_by)),
            written=self._ledger.describe(ended.written) if ended is not None and ended.written is not None else "",
            written_at=self._places.at(ended.written_by) if ended is not None else None,
        )

    def _roots(self, began: events.BackwardBegan) -> str:
        if not began.roots:
            return ""
        return self._ledger.describe(began.roots[0])

    def _site_of(self, backward: BackwardId | None) -> SiteId | None:
        """Where an earlier pass was begun; looked up only when a pass was stopped."""
        if backward is None:
            return None
        return next((event.site for event in self._ledger.of(events.BackwardBegan) if event.id == backward), None)


def _losses(fold: events.StepsFolded | events.PassFold) -> Spread:
    return Spread(
        first=_float(fold.loss_first),
        last=_float(fold.loss_last),
        low=_float(fold.loss_low),
        high=_float(fold.loss_high),
    )


def _not_finite(value: Value | None) -> int:
    return int(value is not None and bool(value.nan or value.inf))


def _float(spelled: float | str | None) -> float | None:
    return None if spelled is None else as_float(spelled)
