"""The calls that are running while the events go by: which function each event belongs to, and who called it.

A ledger tells of lines and not of calls. A function was entered where its lines begin to tell, and left where those
of its caller go on; the text says who calls whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from whygrad.answers.why.units import MODULE, Body, Called, Position, Unit
from whygrad.ledger.events import (
    AnyEvent,
    BackwardBegan,
    BackwardEnded,
    BackwardId,
    Check,
    GradModeChanged,
    ModeChanged,
    ModuleCalled,
    Operation,
    OptimizerStepped,
    Site,
    SiteId,
)

Place: TypeAlias = tuple[str, str]
"""A file and a function in it."""

NOWHERE: Position = (0, 0)

RUNS = (Operation, ModuleCalled, BackwardBegan, OptimizerStepped, Check, ModeChanged)
"""Events of which a second one at the same site means that the site ran again."""


class Frame:
    """A call that is running.

    `at` is the statement that it has come to (None: its beginning, or not known), `told_to` the end of what is done
    of it, and `began` the event before the call. `called_by` is the end of the call in its caller's statement.
    A `silent` frame is only concluded: of a function that told nothing, and called one that does.
    """

    def __init__(self, place: Place, body: Body | None, began: int, *, silent: bool = False) -> None:
        self.silent = silent
        self.place = place
        self.body = body
        self.began = began
        self.at: int | None = None
        self.told_to = NOWHERE
        self.told_itself = False
        self.is_broken = False
        self.reach = began
        self.called_by = NOWHERE
        self._keys: set[object] = set()

    def unit_of(self, site: Site, event: AnyEvent) -> int | None:
        """The statement that an event of this function belongs to; None for the end of a with block."""
        unit = self.body.unit_of((site.line, site.column)) if self.body is not None else None
        if unit is None or self.body is None:
            return None
        if isinstance(event, GradModeChanged) and not event.entered and self.body.units[unit].opens:
            return None
        return unit

    def is_again(self, unit: int, event: AnyEvent) -> bool:
        """Whether the statement that it stands at runs once more."""
        if self.body is None or unit != self.at or self.body.units[unit].repeats:
            return False
        return isinstance(event, RUNS) and _key(event) in self._keys

    def is_anew(self, unit: int, *, again: bool) -> bool:
        """Whether only another call of the function can have come (back) to `unit`."""
        if self.body is None or self.at is None or not (unit < self.at or again) or self.body.function == MODULE:
            return False
        return self.body.loop_around(unit, self.at) is None

    def come_to(self, unit: int | None, *, again: bool = False) -> None:
        if unit != self.at or again:
            self.told_to = NOWHERE
            self.told_itself = False
            self._keys.clear()
        self.at = unit

    def tell(self, site: Site, event: AnyEvent) -> None:
        """An event of the statement itself."""
        self.told_itself = True
        self.told_to = max(self.told_to, (site.end_line, site.end_column))
        self._keys.add(_key(event))

    def is_calling(self) -> bool:
        """Whether the statement that it stands at has a call that is not known to be over."""
        if self.body is None or self.at is None:
            return False
        return any(call.end > self.told_to for call in self.body.units[self.at].calls)

    def next_caller(self, names: frozenset[str]) -> tuple[int, Called] | None:
        """The next statement that calls one of `names`, and the call.

        While a loop may go on, it is looked for in the loop; whether it does cannot be told from the call alone.
        """
        if self.body is None:
            return None
        units = self.body.units
        for index in self._ahead():
            done = self.told_to if index == self.at and not units[index].repeats else NOWHERE
            if (call := _call_after(units[index], names, done)) is not None:
                return index, call
        if self.at is None or self.body.loop_around(self.at, self.at) is None:
            return None
        call = _call_after(units[self.at], names, NOWHERE)
        return (self.at, call) if call is not None else None

    def _ahead(self) -> list[int]:
        """The statements from here on: the rest of the loop, its next turn, what follows it."""
        assert self.body is not None
        units = range(len(self.body.units))
        if self.at is None:
            return list(units)
        loop = self.body.loop_around(self.at, self.at)
        inside = [index for index in units if loop is not None and loop in self.body.units[index].taking_part]
        rest = [index for index in inside if index >= self.at]
        turn = [index for index in inside if index < self.at]
        return [*rest, *turn, *(index for index in units if index >= self.at and index not in rest)]


class Running(msgspec.Struct, frozen=True):
    """A backward pass that is running: the frames above it are those of its hooks."""

    id: BackwardId
    site: SiteId | None


Stack: TypeAlias = "list[Frame | Running]"


class Callers:
    """Who calls whom, by the names in the program's text; also through functions that tell nothing themselves."""

    def __init__(self, bodies: Mapping[Place, Body]) -> None:
        self.bodies = bodies
        self._calls: dict[str, set[str]] = {}
        self._places: dict[str, Place] = {}
        for place, body in bodies.items():
            outer, _, name = place[1].rpartition(".")
            self._places[name] = place
            self._calls.setdefault(name, set()).update(body.names_called)
            if name == "__init__":
                self._calls.setdefault(outer.rpartition(".")[2], set()).add(name)
        self._leading: dict[str, frozenset[str]] = {}

    def leading_to(self, name: str) -> frozenset[str]:
        """`name`, and the functions through which it may be called."""
        if name not in self._leading:
            found = {name}
            while more := {each for each, calls in self._calls.items() if each not in found and calls & found}:
                found |= more
            self._leading[name] = frozenset(found)
        return self._leading[name]

    def place_of(self, name: str) -> Place | None:
        """The function that a call by this name means."""
        return self._places.get(name)

    def may_call(self, place: Place, name: str) -> bool:
        body = self.bodies.get(place)
        return body is not None and bool(body.names_called & self.leading_to(name))


def depth_of(stack: Sequence[Frame | Running], place: Place, site: SiteId) -> int | None:
    """Where the frame of a place stands; a running pass hides what is below it, except for its own call."""
    for index in reversed(range(len(stack))):
        frame = stack[index]
        if isinstance(frame, Running):
            if frame.site != site:
                return None
        elif frame.place == place:
            return index
    return None


def depth_of_pass(stack: Sequence[Frame | Running], event: BackwardEnded) -> int | None:
    for index in reversed(range(len(stack))):
        frame = stack[index]
        if isinstance(frame, Running) and frame.id == event.id:
            return index
    return None


def left_for(stack: Sequence[Frame | Running], callers: Callers, place: Place) -> int:
    """How many frames are left when a new function begins: those above its caller have returned."""
    if place[1] == MODULE and place[0].endswith("]"):  # the next cell of a notebook
        return 0
    name = place[1].rpartition(".")[2]
    for index in reversed(range(len(stack))):
        frame = stack[index]
        if isinstance(frame, Running):
            break
        if callers.may_call(frame.place, name):
            return index + 1
    return len(stack)


def _key(event: AnyEvent) -> object:
    return type(event), event.site, getattr(event, "function", ""), getattr(event, "module", 0)


def _call_after(unit: Unit, names: frozenset[str], done: Position) -> Called | None:
    """The first call of one of `names` that is not done."""
    return next((call for call in unit.calls if call.name in names and call.end > done), None)
