"""Sets the user's files as listings: lines, the expressions in them that events point at, and folds.

Short files are shown whole. Of long ones, the lines that did something and a few around each; the others wait in
folds, as far as the page has room for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from markupsafe import escape

from whygrad.report.page.tints import Tint, tints
from whygrad.report.page.visible import visible
from whygrad.report.parts import Part, Place, SourceText

WHOLE_LIMIT = 120
"""A file of at most this many lines is shown without folds, if it did anything."""

CONTEXT = 3
"""Lines shown before and after one that did something."""

STATEMENT_LIMIT = 30
"""Of an expression over many lines, this many count as lines that did something."""

WIDTH_LIMIT = 600
"""Characters shown of one line."""

LINE_BYTES = 110
MARK_BYTES = 60
STRETCH_BYTES = 400
"""What a line, an expression in it, and lines in one piece take on the page beside their text."""


DEEPEST = 30
"""Expressions inside expressions that get an id of their own; events of deeper ones point at their line."""


class Text(Part, frozen=True):
    """Characters of one line. `tint` is `comment`, `keyword` or empty."""

    text: str
    tint: str = ""


class Marked(Part, frozen=True):
    """The part of a line that is an expression which events point at; `first` where the expression begins here."""

    anchor: str
    first: bool
    inner: tuple[Piece, ...]


Piece: TypeAlias = Text | Marked


class Line(Part, frozen=True):
    """One line; `left_out` counts the characters at its end that are not shown."""

    number: int
    pieces: tuple[Piece, ...]
    left_out: int = 0


class Stretch(Part, frozen=True):
    """Lines that follow each other, shown or folded away; without lines where the page has no room for them."""

    first: int
    last: int
    folded: bool
    lines: tuple[Line, ...]


class Listing(Part, frozen=True):
    """A file of the user's code on the page."""

    id: str
    path: str
    title: str
    stretches: tuple[Stretch, ...]

    def anchors(self) -> Iterator[str]:
        """Every id that an event may point at."""
        for stretch in self.stretches:
            for line in stretch.lines:
                yield f"{self.id}L{line.number}"
                yield from _anchors(line.pieces)


def set_files(
    sources: Iterable[SourceText],
    pointed_at: Iterable[Place],
    main: str,
    *,
    shown: int = 400_000,
    folded: int = 200_000,
) -> tuple[Listing, ...]:
    """The listings of all files, the program's own (`main`) first. `pointed_at` are the places that events speak of.

    `shown` and `folded` are about the bytes that open and folded lines may take on the page.
    """
    by_path: dict[str, dict[Place, None]] = {}
    for place in pointed_at:
        by_path.setdefault(place.path, {})[place] = None
    ordered = sorted(sources, key=lambda source: (source.path != main, source.path not in by_path))
    open_room, fold_room = _Room(shown), _Room(folded)
    return tuple(
        _set_file(
            f"f{number}", source, tuple(by_path.get(source.path, ())), _title(source.path, main), open_room, fold_room
        )
        for number, source in enumerate(ordered, start=1)
    )


def span_id(file: str, place: Place) -> str:
    """The id of an expression."""
    return f"{file}L{place.line}c{place.column}-{place.end_line}c{place.end_column}"


def split_lines(text: str) -> list[str]:
    """The lines as Python counts them: form feeds and Unicode separators do not end one."""
    lines = re.split(r"\r\n|\r|\n", text)
    return lines[:-1] if not lines[-1] else lines


def stretches(count: int, active: Collection[int]) -> Iterator[tuple[int, int, bool]]:
    """First line, last line and whether they are folded away, for a file of `count` lines.

    >>> list(stretches(500, {200, 204}))
    [(1, 196, True), (197, 207, False), (208, 500, True)]
    """
    if count <= WHOLE_LIMIT:
        shown = set(range(1, count + 1)) if active else set()
    else:
        shown = {near for line in active for near in range(line - CONTEXT, line + CONTEXT + 1)}
    start = 1
    while start <= count:
        end = start
        while end < count and ((end + 1) in shown) == (start in shown):
            end += 1
        yield start, end, start not in shown
        start = end + 1


def set_line(file: str, number: int, text: str, places: Iterable[Place] = (), tinted: Sequence[Tint] = ()) -> Line:
    """A line cut into pieces. `places` are the expressions that lie on it, at least in part."""
    width = min(len(text), WIDTH_LIMIT)
    reaches = []
    for place in places:
        start = place.column if place.line == number else len(text) - len(text.lstrip())
        end = min(place.end_column if place.end_line == number else len(text), width)
        if 0 <= start < end:
            reaches.append(_Reach(start=start, end=end, anchor=span_id(file, place), first=place.line == number))
    return Line(number=number, pieces=tuple(_pieces(text, 0, width, reaches, tinted)), left_out=len(text) - width)


class _Room:
    """Bytes that are left on the page."""

    def __init__(self, size: int) -> None:
        self._left = size

    def fits(self, need: int) -> bool:
        """Whether there is room for so many bytes; if so, they are taken. After the first that find none, none do."""
        self._left = self._left - need if need <= self._left else 0
        return self._left > 0


def _size(text: str) -> int:
    """Bytes of a text on the page, keywords and comments marked."""
    return len(escape(visible(text)).encode()) * 5 // 4


def _set_file(
    file: str, source: SourceText, places: tuple[Place, ...], title: str, shown: _Room, folded: _Room
) -> Listing:
    lines = split_lines(source.text)
    on_line = _by_line(places, len(lines))
    tinted = tints(source.text)
    parts: list[Stretch] = []
    for first, last, away in stretches(len(lines), on_line):
        room = folded if away else shown
        made: list[Line] = []
        for number in range(first, last + 1):
            here = on_line.get(number, ())
            line, need = lines[number - 1], LINE_BYTES + MARK_BYTES * len(here) + STRETCH_BYTES * (number == first)
            if not room.fits(need + _size(line[:WIDTH_LIMIT])):
                break
            made.append(set_line(file, number, line, here, tinted.get(number, ())))
        if made:
            parts.append(Stretch(first=first, last=made[-1].number, folded=away, lines=tuple(made)))
        if len(made) <= last - first:
            missing = first + len(made)
            if parts and not parts[-1].lines:
                missing = parts.pop().first
            parts.append(Stretch(first=missing, last=last, folded=away, lines=()))
    return Listing(id=file, path=source.path, title=title, stretches=tuple(parts))


def _by_line(places: Iterable[Place], count: int) -> Mapping[int, list[Place]]:
    """The places on each line of a file of `count` lines."""
    found: dict[int, list[Place]] = {}
    for place in places:
        for line in range(max(place.line, 1), min(place.end_line, place.line + STATEMENT_LIMIT, count) + 1):
            found.setdefault(line, []).append(place)
    return found


def _title(path: str, main: str) -> str:
    """The path as seen from the program's folder, where it lies in it."""
    folder = os.path.join(os.path.dirname(os.path.normpath(main)), "")
    return os.path.normpath(path).removeprefix(folder)


class _Reach(Part, frozen=True):
    """The columns of one line that an expression covers."""

    start: int
    end: int
    anchor: str
    first: bool


def _pieces(
    text: str, at: int, end: int, reaches: Iterable[_Reach], tinted: Sequence[Tint], depth: int = 0
) -> Iterator[Piece]:
    """The pieces between two columns. Expressions nest; one that sticks out of another is cut at its end."""
    rest = sorted(reaches, key=lambda reach: (reach.start, -reach.end)) if depth < DEEPEST else []
    while rest:
        outer, others = rest[0], rest[1:]
        yield from _texts(text, at, outer.start, tinted)
        inside, rest = [], []
        for reach in others:
            if reach.start < outer.end:
                inside.append(_cut(reach, reach.start, min(reach.end, outer.end)))
            if reach.end > outer.end:
                rest.append(_cut(reach, max(reach.start, outer.end), reach.end))
        rest.sort(key=lambda reach: (reach.start, -reach.end))
        inner = tuple(_pieces(text, outer.start, outer.end, inside, tinted, depth + 1))
        yield Marked(anchor=outer.anchor, first=outer.first, inner=inner)
        at = outer.end
    yield from _texts(text, at, end, tinted)


def _cut(reach: _Reach, start: int, end: int) -> _Reach:
    return _Reach(start=start, end=end, anchor=reach.anchor, first=reach.first and start == reach.start)


def _texts(text: str, at: int, end: int, tinted: Iterable[Tint]) -> Iterator[Text]:
    for tint in tinted:
        first, last = max(tint.start, at), min(tint.end, end)
        if first < last:
            if at < first:
                yield Text(text=text[at:first])
            yield Text(text=text[first:last], tint=tint.kind)
            at = last
    if at < end:
        yield Text(text=text[at:end])


def _anchors(pieces: Iterable[Piece]) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, Marked):
            if piece.first:
                yield piece.anchor
            yield from _anchors(piece.inner)
