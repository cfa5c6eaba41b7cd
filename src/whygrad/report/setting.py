"""Collects what the program ran on, how it ended, and what the ledger does not hold."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from whygrad.ledger import Ledger, events
from whygrad.report.parts import Remark, Run, Seed
from whygrad.report.places import Places

SETTINGS = ("threads", "deterministic", "default_dtype", "device")
"""Of the environment, what a program may change while it runs."""


class Setting:
    """Follows the run itself through the stream of events."""

    def __init__(self, ledger: Ledger, places: Places) -> None:
        self._ledger = ledger
        self._places = places
        self._environment: events.Environment | None = None
        self._changed: dict[str, str] = {}
        self._seeds: dict[str, Seed] = {}
        self._ended: events.Ended | None = None
        self._remarks: dict[Hashable, Remark] = {}

    def environment(self, event: events.Environment) -> None:
        before = self._environment
        self._environment = event
        if before is None:
            return
        for setting in SETTINGS:
            was, now = getattr(before, setting), getattr(event, setting)
            if was != now:
                self._changed[setting] = f"{setting} {was} -> {now}"

    def seeded(self, event: events.Seeded) -> None:
        known = self._seeds.get(event.generator)
        self._seeds[event.generator] = Seed(
            generator=event.generator,
            seed=event.seed,
            place=self._places.at(event.site),
            times=1 if known is None else known.times + 1,
        )

    def ended(self, event: events.Ended) -> None:
        self._ended = event

    def noted(self, event: events.Noted) -> None:
        self._remark("noted", event.text, event)

    def lost(self, event: events.Lost) -> None:
        self._remark("lost", f"{event.what}: {event.why}", event)

    def depth_changed(self, event: events.DepthChanged) -> None:
        self._remark("depth", f"{event.depth}: {event.why}" if event.why else event.depth, event)

    def run(self) -> Run:
        header, environment, ended = self._ledger.header, self._environment, self._ended
        return Run(
            program=header.program,
            argv=header.argv,
            kind=header.kind,
            how=ended.how if ended is not None else "",
            exit_code=ended.exit_code if ended is not None else None,
            whygrad=header.whygrad,
            python=header.python,
            platform=header.platform,
            engine=environment.engine if environment is not None else header.engine,
            engine_version=environment.version if environment is not None else "",
            numpy=environment.numpy if environment is not None else "",
            threads=environment.threads if environment is not None else None,
            deterministic=environment.deterministic if environment is not None else None,
            default_dtype=environment.default_dtype if environment is not None else "",
            device=environment.device if environment is not None else "",
            seeds=tuple(self._seeds.values()),
            settings_changed=tuple(self._changed.values()),
            depth=header.depth,
            torn=self._ledger.torn,
            broken=self._ledger.broken,
        )

    def remarks(self) -> tuple[Remark, ...]:
        """What is said about the recording, each thing once."""
        for kind, count in self._ledger.skipped.items():
            text = f"{count} events of the kind {kind!r}, which this version of whygrad does not know"
            self._remarks[("skipped", kind)] = Remark(seq=0, kind="lost", text=text, place=None)
        return tuple(self._remarks.values())

    def _remark(self, kind: str, text: str, event: events.Event) -> None:
        key = (kind, text)
        known = self._remarks.get(key)
        if known is not None:
            self._remarks[key] = replace(known, times=known.times + 1)
            return
        self._remarks[key] = Remark(
            seq=event.seq, kind=kind, text=text, place=self._places.at(event.site), step=event.step
        )
