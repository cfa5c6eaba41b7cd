"""Which moment of the run a question is about: the end, or just after a line ran for the last time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable

from whygrad.answers.why.answer import Moment
from whygrad.answers.why.blocks import Block, Crossing, block_of
from whygrad.answers.why.words import counted, joined
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    AnyEvent,
    BackwardBegan,
    Check,
    Ended,
    ModeChanged,
    ModuleCalled,
    Operation,
    OptimizerStepped,
    Raised,
    Site,
    SiteId,
    StepsFolded,
)

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
    block = block_of(source, line)
    crossing = Crossing(path, block)
    passages = _passages(ledger, path, crossing)
    covering = [passage for passage in passages if passage.site.line <= line <= passage.site.end_line]
    last = max(covering, key=lambda passage: passage.last, default=None)
    text = f"line {line}" if path == ledger.main_path() else f"{os.path.basename(path)}:{line}"
    if last is None and crossing.last is None:
        known = _line_before(ledger, path, block, passages)
        last = max(
            (passage for passage in passages if passage.site.end_line == known), key=lambda passage: passage.last
        )
        text += f" (nothing was recorded there; this is the state after line {known})"
    times = max((passage.times for passage in covering), default=0)
    seq = max(last.last if last is not None else 0, crossing.last or 0)
    if covering and any(fold.seq > seq for fold in ledger.of(StepsFolded)):
        text += f" (the last of {counted(times, 'time')} recorded in full)"
    elif times > 1:
        text += f" (the last of {times} times)"
    function = last.site.function if last is not None else block.function
    return Moment(seq=seq, text=text, path=path, line=line, function=function)


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


class _Passage:
    """A site and what ran there: its last event, and how often."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.last = 0
        self.counts: Counter[Hashable] = Counter()

    def add(self, event: AnyEvent) -> None:
        self.last = event.seq
        match event:
            case Operation():
                self.counts[event.function] += 1
            case ModuleCalled():
                self.counts[event.module] += 1
            case BackwardBegan() | OptimizerStepped() | Check() | ModeChanged():
                self.counts[type(event)] += 1
            case _:
                pass

    @property
    def times(self) -> int:
        return min(self.counts.values(), default=0)


def _passages(ledger: Ledger, path: str, crossing: Crossing) -> list[_Passage]:
    """The sites of a file at which something happened; `crossing` sees every event."""
    sites: dict[SiteId, _Passage] = {}
    for event in ledger:
        crossing.see(event)
        if isinstance(event, Site):
            if event.path == path:
                sites[event.id] = _Passage(event)
        elif event.site in sites and not isinstance(event, StepsFolded):
            sites[event.site].add(event)
    return [passage for passage in sites.values() if passage.last]


def _line_before(ledger: Ledger, path: str, block: Block, passages: list[_Passage]) -> int:
    """The last recorded line before the line in its block; raises where the line was never passed."""
    line = block.line
    stopped = next((event for event in ledger.of(Raised) if event.caught is None), None)
    stop = ledger.site(stopped.site) if stopped is not None else None
    if stopped is not None and stop is not None and stop.path == path and line > stop.end_line:
        raise BadInput(f"line {line} never ran: the {stopped.kind} at line {stop.line} ended the program.")
    recorded = sorted({passage.site.end_line for passage in passages})
    before = [known for known in recorded if block.first <= known < line]
    if not before and any(block.first <= known <= block.last for known in recorded):
        before = [known for known in recorded if known < line]
    if before:
        return before[-1]
    nearest = sorted(sorted(recorded, key=lambda known: abs(known - line))[:NEAREST])
    hint = f" The nearest recorded {'lines are' if len(nearest) > 1 else 'line is'} {joined(map(str, nearest))}."
    raise BadInput(f"line {line} never ran, or did nothing that is recorded.{hint if nearest else ''}")
