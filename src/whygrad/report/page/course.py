"""The states that a buffer went through, each with the event that brought it about: `None -> 20 -> 40`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from whygrad.ledger.values import Value
from whygrad.report.parts import Buffer, Change, Entry, Gap, Light, Omitted, Part, Repeat

MOST = 24
"""States that a page spells out; of more, the middle is left out."""


class State(Part, frozen=True):
    """A state of a buffer, or a gap between states; `change` is what led to it, if that is on the page."""

    value: Value | Gap | None
    change: Change | None = None


def course(buffer: Buffer) -> list[State]:
    """The states of `buffer.states()`, first to last."""
    states: list[State] = []
    for step in _steps(buffer.entries):
        if isinstance(step, Gap):
            before = states.pop().value if states and isinstance(states[-1].value, Gap) else None
            states.append(State(value=Gap(states=step.states + (before.states if isinstance(before, Gap) else 0))))
        elif step.kind == "held":
            states.append(State(value=step.after, change=step))
        else:
            if not states:
                states.append(State(value=step.before))
            if step.after is not None or states[-1].value is not None:
                states.append(State(value=step.after, change=step))
    return states


def shortened(states: list[State]) -> list[State]:
    """The two ends of a long course."""
    if len(states) <= MOST:
        return states
    half = MOST // 2
    return [*states[:half], State(value=Gap(states=len(states) - 2 * half)), *states[-half:]]


def _steps(entries: Iterable[Entry]) -> Iterator[Change | Gap]:
    for entry in entries:
        if isinstance(entry, Change):
            if entry.kind != "returned":
                yield entry
        elif isinstance(entry, Light):
            yield Gap(states=entry.writes + entry.resets)
        elif isinstance(entry, Omitted):
            yield Gap(states=entry.changes)
        else:
            yield from _steps(entry.first)
            between = entry.changes - _count(entry.first) - _count(entry.last)
            if between > 0:
                yield Gap(states=between)
            yield from _steps(entry.last)


def _count(entries: Iterable[Entry]) -> int:
    return sum(entry.changes if isinstance(entry, Repeat | Omitted) else 1 for entry in entries)
