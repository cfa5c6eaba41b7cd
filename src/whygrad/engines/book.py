"""Where an engine writes what happens: numbers the events, writes a site before its first use, never raises.

The engine's own failures end here too: they become `recording lost` events, once for each kind.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import threading
from threading import get_ident
from typing import Any, Protocol

from whygrad.ledger.events import Event, Lost, Site, SiteId, Source


class Sink(Protocol):
    """What takes the events: a ledger's writer, or a list."""

    def write(self, event: Event) -> None: ...


class PlaceLike(Protocol):
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    code: str


class FileLike(Protocol):
    text: str


class Places(Protocol):
    """The sites that the instrumentation knows (`whygrad.execute.sites.SiteTable`)."""

    places: list[Any]
    files: dict[str, Any]

    def statement(self, path: str, line: int) -> int: ...


class Book:
    """Writes events in order. `step` is the training step that they belong to."""

    def __init__(self, sink: Sink, places: Places) -> None:
        self.places = places
        self.step = 0
        self.written = 0
        self._sink = sink
        self._open = True
        self._next = itertools.count(1).__next__
        self._lock = threading.RLock()
        self._main = threading.main_thread().ident
        self._threads: dict[int, int] = {}
        self._sites: set[int] = set()
        self._sources: set[str] = set()
        self._lost: set[tuple[str, str]] = set()

    def write(self, kind: type[Event], site: int | None = None, /, **fields: Any) -> None:
        """Write one event. `site` is an index of the places, not yet a `SiteId`."""
        if not self._open:
            return
        ident = get_ident()
        thread = 0 if ident == self._main else self._threads.setdefault(ident, len(self._threads) + 1)
        with self._lock:
            if site is not None:
                if site not in self._sites:
                    self._introduce(site)
                site += 1
            self._put(kind(seq=self._next(), site=site, step=self.step, thread=thread, **fields))  # type: ignore[arg-type]

    def site(self, site: int) -> SiteId:
        """The ledger's id of a place that another event's field refers to."""
        with self._lock:
            if site not in self._sites:
                self._introduce(site)
        return SiteId(site + 1)

    def lost(self, what: str, error: BaseException | str) -> None:
        """Say that something was not recorded; the same loss is said once."""
        why = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        if isinstance(error, BaseException) and os.environ.get("WHYGRAD_DEBUG"):
            import traceback

            traceback.print_exception(error, file=sys.__stderr__)
        key = (what, why[:80])
        if key not in self._lost and len(self._lost) < 100:
            self._lost.add(key)
            self.write(Lost, what=what, why=why)

    def close(self) -> None:
        """Nothing is written from here on: the run is over, or this is a forked child."""
        self._open = False

    @property
    def is_open(self) -> bool:
        return self._open

    def _introduce(self, site: int) -> None:
        if not self._open:
            return
        self._sites.add(site)
        place = self.places.places[site]
        if place.path not in self._sources:
            self._sources.add(place.path)
            file = self.places.files.get(place.path)
            if file is not None:
                digest = hashlib.sha256(file.text.encode("utf-8", "surrogatepass")).hexdigest()
                self._put(Source(seq=self._next(), path=place.path, sha256=digest, text=file.text))
        self._put(
            Site(
                seq=self._next(),
                id=SiteId(site + 1),
                path=place.path,
                line=place.line,
                column=place.column,
                end_line=place.end_line,
                end_column=place.end_column,
                function=place.function,
                code=place.code,
            )
        )

    def _put(self, event: Event) -> None:
        self.written += 1
        try:
            self._sink.write(event)
        except Exception as error:  # a full disk, or a value that JSON cannot hold
            if not isinstance(event, Lost):
                self.lost(f"an event ({event.__struct_config__.tag})", error)
