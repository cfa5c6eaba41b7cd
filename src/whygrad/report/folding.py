"""Folds the life of a grad buffer while it streams by: a loop's turns become one `Repeat` with a count.

Two changes are alike when they are of the same kind, at the same place, by the same cause and through the same
terms. Whatever the number of steps, what is kept is bounded: lives that never settle into a repetition lose
their middle to one `Omitted`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from msgspec.structs import replace

from whygrad.report.parts import Change, Entry, Light, Omitted, Part, Place, Repeat, Spread

LONGEST_TURN = 24
"""A turn of a loop is recognised up to this many entries (loops inside it count as one)."""

KEPT_AT_EACH_END = 100
"""Entries kept at the beginning and at the end of a life that does not repeat itself."""


class Life:
    """The entries of one buffer, folded as they come.

    `add` takes every change in order; `entries` tells what is known by then.
    """

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._omitted: _Tally | None = None

    def add(self, entry: Change | Light) -> None:
        """The next thing that happened to the buffer."""
        items = self._items
        if isinstance(entry, Light) and items and isinstance(last := items[-1].entry, Light):
            items[-1] = _Item(key=items[-1].key, entry=joined(last, entry))
            return
        item = _Item(key=_key(entry), entry=entry)
        _fold(items, following=item.key)
        items.append(item)
        if len(items) > 2 * KEPT_AT_EACH_END:
            self._omitted = self._omitted or _Tally()
            self._omitted.add(items.pop(KEPT_AT_EACH_END))

    def entries(self) -> tuple[Entry, ...]:
        """What is known now; more may be added afterwards."""
        items = list(self._items)
        if self._omitted is None:
            _fold(items, following=None, over=True)
            return tuple(item.part() for item in items)
        head, tail = items[:KEPT_AT_EACH_END], items[KEPT_AT_EACH_END:]
        return (*(item.part() for item in head), self._omitted.part(), *(item.part() for item in tail))


class _Item(Part, frozen=True):
    """An entry, or a loop of items, with the key that tells which others are alike."""

    key: Hashable
    entry: Change | Light | _Turns

    def part(self) -> Entry:
        return self.entry.part() if isinstance(self.entry, _Turns) else self.entry

    @property
    def line(self) -> int:
        """Where it stands, in the order of the source; 0 if that is not known."""
        if isinstance(self.entry, _Turns):
            return self.entry.first[0].line
        return self.entry.place.line if isinstance(self.entry, Change) and self.entry.place is not None else 0

    @property
    def changes(self) -> int:
        if isinstance(self.entry, Light):
            return self.entry.writes + self.entry.resets
        return self.entry.changes if isinstance(self.entry, _Turns) else 1

    @property
    def writes(self) -> int:
        if isinstance(self.entry, Change):
            return int(self.entry.kind in ("set", "added"))
        return self.entry.writes

    @property
    def norms(self) -> Spread:
        """The norm that a backward left in the buffer."""
        if not isinstance(self.entry, Change):
            return self.entry.norms
        if not self.writes or self.entry.after is None or (norm := self.entry.after.magnitude) is None:
            return Spread()
        return Spread(first=norm, last=norm, low=norm, high=norm)


class _Turns(Part, frozen=True):
    """A loop: its first and last turn, how many there were, and in how many it ran per turn of an outer loop."""

    first: tuple[_Item, ...]
    last: tuple[_Item, ...]
    times: int
    least: int
    most: int
    changes: int
    writes: int
    norms: Spread

    def part(self) -> Repeat:
        return Repeat(
            first=tuple(item.part() for item in self.first),
            last=tuple(item.part() for item in self.last),
            times=self.times,
            least=self.least,
            most=self.most,
            changes=self.changes,
            norms=self.norms,
        )

    def and_then(self, turn: tuple[_Item, ...]) -> _Turns:
        """The loop with one more turn."""
        return _Turns(
            first=self.first,
            last=tuple(_widened(before, now) for before, now in zip(self.last, turn, strict=True)),
            times=self.times + 1,
            least=self.times + 1,
            most=self.times + 1,
            changes=self.changes + sum(item.changes for item in turn),
            writes=self.writes + sum(item.writes for item in turn),
            norms=spread((self.norms, _left_by(turn))),
        )


def _one_turn(turn: tuple[_Item, ...]) -> _Turns:
    return _Turns(
        first=turn,
        last=turn,
        times=1,
        least=1,
        most=1,
        changes=sum(item.changes for item in turn),
        writes=sum(item.writes for item in turn),
        norms=_left_by(turn),
    )


def _fold(items: list[_Item], following: Hashable, over: bool = False) -> None:
    """Fold the end of `items` where it repeats itself; `following` is the key of what comes next."""
    while items:
        if _may_go_on(items[-1], following) or not (_absorb(items) or _begin(items, over)):
            return


def _may_go_on(last: _Item, following: Hashable) -> bool:
    """A loop whose next turn seems to begin is left open: only then is it compared as a whole."""
    return isinstance(last.entry, _Turns) and last.entry.first[0].key == following


def _absorb(items: list[_Item]) -> bool:
    """One more turn of the loop that stands before it."""
    for length in range(1, min(LONGEST_TURN, len(items) - 1) + 1):
        loop = items[-1 - length].entry
        if not isinstance(loop, _Turns):
            continue
        if len(loop.first) == length and all(a.key == b.key for a, b in zip(loop.first, items[-length:], strict=True)):
            turn = tuple(items[-length:])
            items[-1 - length :] = [_Item(key=items[-1 - length].key, entry=loop.and_then(turn))]
            return True
    return False


def _begin(items: list[_Item], over: bool) -> bool:
    """Two turns side by side are a loop; while more may come, only if the turn begins where the loop's body does."""
    newest = items[-1].key
    for length in range(1, min(LONGEST_TURN, len(items) // 2) + 1):
        if items[-1 - length].key != newest:
            continue
        turn, before = tuple(items[-length:]), tuple(items[-2 * length : -length])
        if all(a.key == b.key for a, b in zip(turn, before, strict=True)) and (over or _begins_a_body(turn)):
            key = ("loop", tuple(item.key for item in turn))
            items[-2 * length :] = [_Item(key=key, entry=_one_turn(before).and_then(turn))]
            return True
    return False


def _begins_a_body(turn: tuple[_Item, ...]) -> bool:
    """Whether no line of the turn stands above its first one: `zero_grad, backward`, not `backward, zero_grad`."""
    lines = [item.line for item in turn]
    return lines[0] == min(lines)


def _widened(before: _Item, now: _Item) -> _Item:
    """`now`, remembering how often an inner loop ran in the turns before."""
    if isinstance(before.entry, _Turns) and isinstance(now.entry, _Turns):
        least = min(before.entry.least, now.entry.least)
        most = max(before.entry.most, now.entry.most)
        return _Item(key=now.key, entry=replace(now.entry, least=least, most=most))
    return now


def _left_by(turn: tuple[_Item, ...]) -> Spread:
    """The norm that a turn's last backward left in the buffer."""
    return next((item.norms for item in reversed(turn) if item.norms.last is not None), Spread())


class _Tally:
    """Counts what `Omitted` stands for."""

    def __init__(self) -> None:
        self.changes = 0
        self.writes = 0
        self.norms = Spread()

    def add(self, item: _Item) -> None:
        self.changes += item.changes
        self.writes += item.writes
        self.norms = spread((self.norms, item.norms))

    def part(self) -> Omitted:
        return Omitted(changes=self.changes, writes=self.writes, norms=self.norms)


def spread(parts: Iterable[Spread]) -> Spread:
    """One spread over several, in order. The two ends are taken over what is a number."""
    known = list(parts)
    return Spread(
        first=next((part.first for part in known if part.first is not None), None),
        last=next((part.last for part in reversed(known) if part.last is not None), None),
        low=min((part.low for part in known if part.low is not None and part.low == part.low), default=None),
        high=max((part.high for part in known if part.high is not None and part.high == part.high), default=None),
    )


def joined(before: Light, now: Light) -> Light:
    """One part for two stretches of lightly recorded steps."""
    return Light(
        seq=before.seq,
        first_step=before.first_step,
        last_step=now.last_step,
        writes=before.writes + now.writes,
        resets=before.resets + now.resets,
        sampled=before.sampled + now.sampled,
        norms=spread((before.norms, now.norms)),
    )


def _key(entry: Change | Light) -> Hashable:
    if isinstance(entry, Light):
        return "light"
    terms = tuple((term.operation, _spot(term.place), term.times > 1) for term in entry.terms)
    cause = "" if entry.backward is not None else entry.cause
    return (entry.kind, cause, _spot(entry.place), terms, entry.thread)


def _spot(place: Place | None) -> Hashable:
    return None if place is None else (place.path, place.line, place.column, place.end_line, place.end_column)
