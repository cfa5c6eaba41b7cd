"""Follows a run through one function: when each of its statements was passed, also those that recorded nothing.

A ledger has no event for `n += 1`. It ran between what the statements before and after it recorded, and the calls
that it made come in between: `step()` recorded what the lines of `step` did. Where two calls could have made the
same events (the next turn of a loop, or a line after it), the loop is taken to go on.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from whygrad.answers.why.calls import (
    NOWHERE,
    Callers,
    Frame,
    Place,
    Running,
    Stack,
    depth_of,
    depth_of_pass,
    left_for,
)
from whygrad.answers.why.units import Body
from whygrad.ledger.events import (
    AnyEvent,
    BackwardBegan,
    BackwardEnded,
    Ended,
    Node,
    Raised,
    Site,
    SiteId,
    Source,
    StepsFolded,
)


class Passage(msgspec.Struct, frozen=True):
    """The last time that a statement ran: the last event of it (or before it), how often it ran, its call's bounds.

    `began` and `ended` are the events around the call of the function that it ran in (`ended` 0: not known). `told`
    says whether the statement itself recorded something.
    """

    seq: int
    times: int = 1
    began: int = 0
    ended: int = 0
    told: bool = True


class Course:
    """Watches the events go by for the passages of one statement: unit `target` of the function at `place`."""

    def __init__(self, place: Place, target: int, bodies: Mapping[Place, Body]) -> None:
        self.passage: Passage | None = None
        self._place = place
        self._body = bodies[place]
        self._target = target
        self._callers = Callers(bodies)
        self._sites: dict[SiteId, Site] = {}
        self._stacks: dict[int, Stack] = {}
        self._previous = 0

    def see(self, event: AnyEvent) -> None:
        """Take the next event."""
        if isinstance(event, Site):
            self._sites[event.id] = event
            return
        if isinstance(event, Node | Source | StepsFolded):  # written later than what they tell of
            return
        stack = self._stacks.setdefault(event.thread, [])
        if isinstance(event, Ended):
            if event.how == "returned":
                self._leave(stack, 0)
        elif (site := self._sites.get(event.site) if event.site is not None else None) is not None:
            self._run(stack, site, event)
        if isinstance(event, BackwardBegan):
            stack.append(Running(event.id, event.site))
        elif isinstance(event, BackwardEnded) and (depth := depth_of_pass(stack, event)) is not None:
            self._leave(stack, depth)
        self._previous = event.seq

    # --- which call runs ----------------------------------------------------------------------------

    def _run(self, stack: Stack, site: Site, event: AnyEvent) -> None:
        """Something happened at a place: find or make its frame, and move on in it and in its callers."""
        place = (site.path, site.function)
        depth = depth_of(stack, place, site.id)
        if depth is None:
            self._leave(stack, left_for(stack, self._callers, place))
            depth = self._enter(stack, place)
        else:
            above = depth + 1
            while above < len(stack) and isinstance(stack[above], Running):
                above += 1
            self._leave(stack, above)
        frame = stack[depth]
        assert isinstance(frame, Frame)
        unit = frame.unit_of(site, event)
        again = unit is not None and frame.is_again(unit, event)
        if unit is not None and frame.is_anew(unit, again=again):
            self._leave(stack, depth)
            depth = self._enter(stack, place)
            frame = stack[depth]
            assert isinstance(frame, Frame)
            again = False
        for caller in _frames(stack[:depth]):
            if caller.place == self._place:
                self._inside_call(caller, event)
        if unit is None:
            return
        if place == self._place:
            self._move(frame, unit, site, event, again=again)
        else:
            frame.come_to(unit, again=again)
            frame.tell(site, event)

    def _enter(self, stack: Stack, place: Place) -> int:
        """A function was called: by the statement of its caller that makes such a call, or by way of silent ones."""
        name = place[1].rpartition(".")[2]
        names = self._callers.leading_to(name)
        end = NOWHERE
        while isinstance(caller := stack[-1] if stack else None, Frame):
            found = caller.next_caller(names)
            if found is None and caller.silent:
                self._leave(stack, len(stack) - 1)
                continue
            if found is None:
                break
            unit, call = found
            again = unit == caller.at and call.end <= caller.told_to
            if caller.place == self._place:
                self._go(caller, unit, again=again)
            else:
                caller.come_to(unit, again=again)
            end = call.end
            between = self._callers.place_of(call.name)
            if call.name == name or between is None or any(frame.place == between for frame in _frames(stack)):
                break
            silent = Frame(between, self._callers.bodies.get(between), self._previous, silent=True)
            silent.called_by = end
            stack.append(silent)
        frame = Frame(place, self._callers.bodies.get(place), self._previous)
        frame.called_by = end
        stack.append(frame)
        return len(stack) - 1

    def _leave(self, stack: Stack, depth: int) -> None:
        """The frames above have returned."""
        while len(stack) > depth:
            frame = stack.pop()
            if not isinstance(frame, Frame):
                continue
            if frame.place == self._place:
                self._return(frame)
            caller = stack[-1] if stack else None
            if isinstance(caller, Frame):
                caller.told_to = max(caller.told_to, frame.called_by)

    # --- where our function stands --------------------------------------------------------------------

    def _move(self, frame: Frame, unit: int, site: Site, event: AnyEvent, *, again: bool) -> None:
        """An event of one of the function's own statements."""
        self._go(frame, unit, again=again)
        if unit == self._target:
            self._ran(frame, event.seq, new=not frame.told_itself, told=True)
        frame.tell(site, event)
        if isinstance(event, Raised):
            self._break(frame, event)
        elif unit <= self._target:
            frame.reach = event.seq

    def _inside_call(self, frame: Frame, event: AnyEvent) -> None:
        """An event of a call that the function made."""
        if isinstance(event, Raised):
            if frame.at == self._target:
                self._ran(frame, event.seq, new=not frame.told_itself, told=True)
            self._break(frame, event)
        elif frame.at is None or frame.at <= self._target:
            frame.reach = event.seq
            if frame.at == self._target and frame.told_itself and frame.is_calling():
                self._ran(frame, event.seq, new=False, told=True)

    def _go(self, frame: Frame, unit: int, *, again: bool = False) -> None:
        """The function has come to `unit`."""
        before = frame.at
        if before is not None and (unit < before or again):
            loop = self._body.loop_around(unit, before)
            if loop in self._body.units[self._target].taking_part:
                self._pass_over(frame, before, None)
                before = None
            elif unit > self._target:
                before = unit
            frame.reach = self._previous
        if unit > self._target:
            self._pass_over(frame, before, unit)
        frame.come_to(unit, again=again)
        frame.is_broken = False

    def _pass_over(self, frame: Frame, before: int | None, after: int | None) -> None:
        """The function went from one unit to another (None: its end, or the next turn): was the target between them?"""
        target = self._target
        if before is not None and (before > target or (before == target and frame.told_itself)):
            return
        if after is None or not self._body.is_inside(after, target):
            if before is None or frame.is_broken or not self._body.is_inside(before, target):
                return
            if self._body.may_leave(before, target):
                return
        self._ran(frame, frame.reach, new=True, told=False)

    def _return(self, frame: Frame) -> None:
        self._pass_over(frame, frame.at, None)
        if self.passage is not None and self.passage.began == frame.began:
            self.passage = msgspec.structs.replace(self.passage, ended=self._previous)

    def _break(self, frame: Frame, event: AnyEvent) -> None:
        """An exception passed through: what follows in the block did not run."""
        frame.is_broken = True
        frame.reach = event.seq

    def _ran(self, frame: Frame, seq: int, *, new: bool, told: bool) -> None:
        known = self.passage
        times = (known.times if known is not None else 0) + new
        self.passage = Passage(seq, times, began=frame.began, told=told or (known is not None and known.told))


def _frames(stack: Stack) -> list[Frame]:
    return [frame for frame in stack if isinstance(frame, Frame)]
