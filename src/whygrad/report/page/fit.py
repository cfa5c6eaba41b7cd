"""Cuts a report down to what one page has room for, and counts what is left out, so that the page can say it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from msgspec.structs import replace

from whygrad.report.page.anchors import ROWS, changes
from whygrad.report.parts import Buffer, Call, Change, GradMode, ModeSwitch, Part, Report
from whygrad.report.sections.failures import LEAVING

BUFFER_BYTES = 900
CHANGE_BYTES = 700
TERM_BYTES = 400
"""About what a buffer, an event of it and a term of that event take on the page."""

TOGETHER = 4
"""So many buffers with like lives are told once in the open, the others in a fold."""

OPEN = 6
"""The loops in the first lives are unfolded."""


class Limits(Part, frozen=True):
    """What one page has room for.

    `lives`, `shown` and `folded` are about the bytes for the lives of buffers, for open source lines and for
    folded ones; the others count the terms of one gradient, the rows of a table, the parameters of an
    optimizer, the buffers in brief, and those alike that are listed without a fold around them.
    """

    lives: int = 500_000
    shown: int = 400_000
    folded: int = 200_000
    terms: int = 24
    rows: int = 100
    moved: int = 100
    brief: int = 500
    alike: int = 12

    def halved(self) -> Limits:
        return Limits(**{name: getattr(self, name) // 2 for name in self.__struct_fields__})


class Lives(Part, frozen=True):
    """Buffers that lived alike: those told in the open, and those in a fold. `open`: their loops are unfolded."""

    shown: tuple[Buffer, ...]
    folded: tuple[Buffer, ...]
    open: bool


class CallTree(Part, frozen=True):
    """A module call with the calls inside it; `told_inside` where one of them tells why it raised."""

    call: Call
    inner: tuple[CallTree, ...]
    told_inside: bool


class Fit(Part, frozen=True):
    """A report that fits a page. `brief`: buffers without room for their lives; `left_out` counts rows by section."""

    report: Report
    lives: tuple[Lives, ...]
    brief: tuple[Buffer, ...]
    left_out: dict[str, int]


def fit(report: Report, limits: Limits) -> Fit:
    """What the page shows of a report."""
    told, brief = _told(report.buffers, limits)
    rows = {name: getattr(report, name) for name in ROWS}
    rows["failures"] = tuple(one for one in report.failures if one.caught or one.kind not in LEAVING)
    short = {name: parts[: limits.rows] for name, parts in rows.items()}
    return Fit(
        report=replace(report, buffers=told, **short),
        lives=tuple(_lives(told)),
        brief=brief,
        left_out={name: len(parts) - len(short[name]) for name, parts in rows.items()},
    )


def module_rows(report: Report) -> tuple[CallTree | ModeSwitch | GradMode, ...]:
    """Module calls, mode switches and grad modes in order, the calls that a call made itself inside it."""
    rows: list[CallTree | ModeSwitch | GradMode] = []
    for entry in sorted((*report.modules, *report.grad_modes), key=lambda entry: entry.seq):
        if not isinstance(entry, Call):
            rows.append(entry)
            continue
        at = len(rows)
        while at and isinstance(before := rows[at - 1], CallTree) and before.call.depth > entry.depth:
            at -= 1
        inner = tuple(row for row in rows[at:] if isinstance(row, CallTree))
        told_inside = bool(entry.error) and any(one.call.error for one in inner)
        rows[at:] = [CallTree(call=entry, inner=inner, told_inside=told_inside)]
    return tuple(rows)


def _told(buffers: Sequence[Buffer], limits: Limits) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """The buffers whose lives find room, and the others."""
    left = limits.lives
    for count, buffer in enumerate(buffers):
        left -= BUFFER_BYTES + sum(_bytes(change, limits.terms) for change in changes(buffer.entries))
        if left < 0:
            return tuple(buffers[:count]), tuple(buffers[count:])
    return tuple(buffers), ()


def _bytes(change: Change, most_terms: int) -> int:
    return CHANGE_BYTES + TERM_BYTES * min(len(change.terms), most_terms)


def _lives(buffers: Sequence[Buffer]) -> list[Lives]:
    lives: list[Lives] = []
    told = 0
    for group in _alike(buffers):
        together = len(group) >= TOGETHER
        shown = tuple(group[:1] if together else group)
        lives.append(Lives(shown=shown, folded=tuple(group[len(shown) :]), open=told < OPEN))
        told += len(shown)
    return lives


def _alike(buffers: Sequence[Buffer]) -> Iterator[list[Buffer]]:
    """Buffers to which the same things happened, at the same places, equally often."""
    groups: dict[Hashable, list[Buffer]] = {}
    for buffer in buffers:
        tallies = tuple((tally.kind, tally.cause, tally.place, tally.times) for tally in buffer.tallies)
        groups.setdefault((tallies, buffer.writes, buffer.resets, buffer.silent), []).append(buffer)
    yield from groups.values()
