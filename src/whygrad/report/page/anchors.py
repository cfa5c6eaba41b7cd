"""Gives what the page shows its ids, so that events and source lines can point at each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from whygrad.ledger.events import TensorId
from whygrad.report.page.listing import Listing, span_id
from whygrad.report.parts import Buffer, Change, Entry, Part, Place, Repeat, Report

ROWS = (
    "modules", "grad_modes", "passes", "loops", "optimizing", "assertions", "failures", "warnings",
    "cuts", "writes", "switched", "remarks",
)  # fmt: skip
"""The parts of a report that stand on the page as one row each."""

MOST_SITES = 32
"""Places that one event lights up."""


class Anchors:
    """The ids of places in the source, of buffers and of events, and which events speak of which line.

    A line is `f1L8`, a place in it `f1L8c11-8c18`, a buffer `g1`, an event of it `g1-57`, any other event `e57`.
    """

    def __init__(self, report: Report, listings: Iterable[Listing]) -> None:
        self._files = {listing.path: listing.id for listing in listings}
        self._there = {anchor for listing in listings for anchor in listing.anchors()}
        self._events: dict[str, dict[str, None]] = {}
        for event, part in _happenings(report):
            for place in places(part):
                file = self._files.get(place.path)
                for line in range(place.line, place.end_line + 1) if file is not None else ():
                    self._events.setdefault(f"{file}L{line}", {})[event] = None

    def place(self, place: Place | None) -> str:
        """The id of an expression, or of its line where its columns do not fit; empty where the page has neither."""
        file = self._files.get(place.path) if place is not None else None
        if place is None or file is None:
            return ""
        return next((anchor for anchor in (span_id(file, place), f"{file}L{place.line}") if anchor in self._there), "")

    def buffer(self, buffer: Buffer) -> str:
        return f"g{buffer.tensor}"

    def change(self, buffer: Buffer, change: Change) -> str:
        return _of_buffer(buffer.tensor, change)

    def part(self, part: Part) -> str:
        """The id of an event that is a row of its own."""
        return _of_row(part)

    def events(self, line: str) -> tuple[str, ...]:
        """The ids of the events that speak of a line, in reading order."""
        return tuple(self._events.get(line, ()))

    def sites(self, part: Part) -> str:
        """The ids of the places that a part speaks of, as the text of one attribute."""
        found = dict.fromkeys(anchor for place in places(part) if (anchor := self.place(place)))
        return " ".join(list(found)[:MOST_SITES])


def changes(entries: Iterable[Entry]) -> Iterator[Change]:
    """The changes that are told one by one, those in the first and last turns of loops among them."""
    for entry in entries:
        if isinstance(entry, Change):
            yield entry
        elif isinstance(entry, Repeat):
            yield from changes(entry.first)
            yield from changes(entry.last)


def places(part: object) -> Iterator[Place]:
    """Every place in a part, however deep."""
    if isinstance(part, Place):
        yield part
    elif isinstance(part, Part):
        for field in part.__struct_fields__:
            yield from places(getattr(part, field))
    elif isinstance(part, tuple):
        for item in part:
            yield from places(item)


def _happenings(report: Report) -> Iterator[tuple[str, Part]]:
    """Every event that the page shows, with its id."""
    for buffer in report.buffers:
        if buffer.made is not None:
            yield f"g{buffer.tensor}", buffer.made
        for change in changes(buffer.entries):
            yield _of_buffer(buffer.tensor, change), change
    for name in ROWS:
        for part in getattr(report, name):
            yield _of_row(part), part


def _of_buffer(tensor: TensorId, change: Change) -> str:
    return f"g{tensor}-{change.seq}"


def _of_row(part: Part) -> str:
    return f"e{getattr(part, 'seq', 0)}"
