"""Which moment of the run a question is about: the end, or just after a line ran for the last time."""

from __future__ import annotations

import os

from whygrad.answers.why.answer import Moment
from whygrad.answers.why.calls import Place
from whygrad.answers.why.course import Course, Passage
from whygrad.answers.why.units import MODULE, Body, bodies_of, body_at
from whygrad.answers.why.words import counted, joined
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import Ended, Node, Raised, Site, Source, StepsFolded

NEAREST = 3
"""How many recorded lines are named when the one that was asked about was not recorded."""


def end_of(ledger: Ledger) -> Moment:
    """The moment after the last event."""
    ended = next(ledger.of(Ended), None)
    seq = ended.seq if ended is not None else max((event.seq for event in ledger), default=0)
    text = "the end"
    if ended is None:
        text = "the last recorded event"
    elif ended.how == "exception":
        raised = next((event for event in ledger.of(Raised) if event.caught is None and event.site is not None), None)
        text += f", where {ledger.where(raised.site)} failed" if raised is not None else ", where it failed"
    elif ended.how in ("interrupted", "terminated"):
        text += f", where it was {ended.how}"
    return Moment(seq=seq, text=text)


def after_line(ledger: Ledger, path: str, line: int) -> Moment:
    """The moment just after `line` ran (for the last time).

    A line that records nothing of its own, such as `n = 3` or a print of None, is found by its neighbours: it ran
    between what the lines before and after it recorded. Raises `BadInput` for a line that the program cannot
    have passed.
    """
    path = known_path(ledger, path)
    source = ledger.source(path) or ""
    length = len(source.splitlines())
    if length and not 1 <= line <= length:
        raise BadInput(f"line {line}: {os.path.basename(path)} has {counted(length, 'line')}.")
    text = f"line {line}" if path == ledger.main_path() else f"{os.path.basename(path)}:{line}"
    bodies = bodies_of(source)
    at = body_at(bodies, line)
    passage = None
    function = at[0].function if at is not None else MODULE
    if at is not None:
        course = Course((path, function), at[1], {**_bodies(ledger), (path, function): at[0]})
        for event in ledger:
            course.see(event)
        passage = course.passage
    if passage is None:
        function, passage = _told_there(ledger, path, line, function)
    if passage is None:
        passage, before = _after_the_last_before(ledger, path, line, at)
        text += f" (nothing was recorded there; this is the state after line {before})"
    if passage.told and passage.times and any(fold.seq > passage.seq for fold in ledger.of(StepsFolded)):
        text += f" (the last of {counted(passage.times, 'run')} recorded in full)"
    elif passage.times > 1:
        text += f" (the last of {passage.times} runs)" if passage.told else " (its last run)"
    return Moment(
        seq=passage.seq, text=text, path=path, line=line, function=function, began=passage.began, ended=passage.ended
    )


def known_path(ledger: Ledger, path: str) -> str:
    """The ledger's spelling of a path: itself, or the only recorded file that it can mean."""
    if not path:
        return ledger.main_path()
    known = ledger.sources()
    wanted = os.path.normpath(path)
    for candidates in (
        [source for source in known if source == path],
        [source for source in known if os.path.abspath(source) == os.path.abspath(path)],
        [source for source in known if source.endswith(os.sep + wanted) or wanted.endswith(os.sep + source)],
        [source for source in known if os.path.basename(source) == os.path.basename(path)],
    ):
        if len(candidates) == 1:
            return candidates[0]
    names = joined([os.path.basename(source) for source in known]) or "none"
    raise BadInput(f"{path}: the ledger holds no such file; the recorded files are: {names}.")


def _bodies(ledger: Ledger) -> dict[Place, Body]:
    """Every function of the program's files; of several with one name, the last."""
    return {(path, body.function): body for path in ledger.sources() for body in bodies_of(ledger.source(path) or "")}


def _told_there(ledger: Ledger, path: str, line: int, function: str) -> tuple[str, Passage | None]:
    """The last event that names the line, for code that stands in no statement of its own (a lambda's)."""
    found = None
    for event in ledger.at(path, line):
        if not isinstance(event, Node | Source | StepsFolded):
            found = event
    if found is None:
        return function, None
    site = ledger.site(found.site)
    return site.function if site is not None else function, Passage(found.seq)


def _after_the_last_before(ledger: Ledger, path: str, line: int, at: tuple[Body, int] | None) -> tuple[Passage, int]:
    """The last event of the nearest line above in the same block; raises where nothing tells of the line."""
    stopped = next((event for event in ledger.of(Raised) if event.caught is None), None)
    stop = ledger.site(stopped.site) if stopped is not None else None
    if stopped is not None and stop is not None and stop.path == path and line > stop.end_line:
        raise BadInput(f"line {line} never ran: the {stopped.kind} at line {stop.line} ended the program.")
    last: dict[int, int] = {}
    sites: dict[int, Site] = {}
    for event in ledger:
        if isinstance(event, Site):
            if event.path == path:
                sites[event.id] = event
        elif event.site in sites and not isinstance(event, Node | StepsFolded):
            last[sites[event.site].end_line] = event.seq
    before = max((known for known in last if known < line and _leads_to(at, known)), default=None)
    if before is not None:
        return Passage(last[before], times=0), before
    nearest = sorted(sorted(last, key=lambda known: abs(known - line))[:NEAREST])
    hint = f" The nearest recorded {'lines are' if len(nearest) > 1 else 'line is'} {joined(map(str, nearest))}."
    raise BadInput(f"line {line} never ran, or did nothing that is recorded.{hint if nearest else ''}")


def _leads_to(at: tuple[Body, int] | None, line: int) -> bool:
    """Whether a line is in the block of the statement that is asked about, or in one inside it."""
    if at is None:
        return True
    body, target = at
    unit = body.unit_at(line)
    return unit is not None and body.is_inside(unit, target)
