"""Collects checks, exceptions and warnings, and ties an exception to what the ledger knows of its cause."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from whygrad.ledger import Ledger, events
from whygrad.report.parts import Assertion, Failure, ShownWarning
from whygrad.report.passes import Passes
from whygrad.report.places import Places


class Outcome:
    """Follows what held, what failed and what was said through the stream of events."""

    def __init__(self, ledger: Ledger, places: Places, passes: Passes) -> None:
        self._ledger = ledger
        self._places = places
        self._passes = passes
        self._assertions: dict[Hashable, Assertion] = {}
        self._failures: dict[Hashable, Failure] = {}
        self._warnings: dict[Hashable, ShownWarning] = {}
        self._failed: dict[int, Assertion] = {}
        self._broken: dict[int, events.ModuleCalled] = {}

    def checked(self, event: events.Check) -> None:
        known = self._assertions.get(event.site)
        if known is None:
            made = Assertion(
                seq=event.seq,
                code=event.code,
                place=self._places.at(event.site),
                held=int(event.held),
                failed=int(not event.held),
                sides=event.sides,
            )
        else:
            made = replace(
                known,
                held=known.held + event.held,
                failed=known.failed + (not event.held),
                sides=known.sides if event.held and known.failed else event.sides,
            )
        self._assertions[event.site] = made
        if not event.held:
            self._failed[event.thread] = made

    def called(self, event: events.ModuleCalled) -> None:
        if event.error and (event.broken or event.thread not in self._broken):
            self._broken[event.thread] = event

    def raised(self, event: events.Raised) -> None:
        key = (event.site, event.kind, event.caught)
        assertion = self._failed.pop(event.thread, None) if event.kind == "AssertionError" else None
        call = self._broken.pop(event.thread, None)
        if call is not None and event.text not in call.error:
            call = None
        known = self._failures.get(key)
        if known is not None:
            self._failures[key] = replace(known, times=known.times + 1)
            return
        module = self._ledger.module(call.module) if call is not None else None
        self._failures[key] = Failure(
            seq=event.seq,
            kind=event.kind,
            text=event.text,
            place=self._places.at(event.site),
            caught=self._places.at(event.caught),
            assertion=assertion,
            module=module.path if module is not None else "",
            broken=call.broken if call is not None else "",
            stopped=self._passes.stopped_with(event.text) if event.text else None,
        )

    def warned(self, event: events.Warned) -> None:
        key = (event.site, event.kind, event.text)
        known = self._warnings.get(key)
        if known is not None:
            self._warnings[key] = replace(known, times=known.times + 1)
            return
        self._warnings[key] = ShownWarning(
            seq=event.seq, kind=event.kind, text=event.text, place=self._places.at(event.site)
        )

    def assertions(self) -> tuple[Assertion, ...]:
        return tuple(self._assertions.values())

    def failures(self) -> tuple[Failure, ...]:
        """What nothing caught comes first."""
        return tuple(sorted(self._failures.values(), key=lambda failure: failure.caught is not None))

    def warnings(self) -> tuple[ShownWarning, ...]:
        return tuple(self._warnings.values())
