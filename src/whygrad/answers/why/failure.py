"""An exception and what the ledger recorded around it: the backward pass that stopped, the module call that broke."""

from __future__ import annotations

import msgspec

from whygrad.answers.why.answer import Moment
from whygrad.answers.why.words import joined
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    BackwardEnded,
    Check,
    ModuleCalled,
    Raised,
    SiteId,
)

LONG = 160
"""Characters of a message; of a longer one only the first sentence is quoted."""


class Failure(msgspec.Struct, frozen=True):
    """An error: its type and text, its place, whether it was caught, and the events that belong to it."""

    kind: str
    text: str
    site: SiteId | None
    seq: int
    caught: SiteId | None = None
    ended: BackwardEnded | None = None
    call: ModuleCalled | None = None
    check: Check | None = None

    @property
    def first_line(self) -> str:
        line = next(iter(self.text.strip().splitlines()), "")
        end = line.find(". ")
        return line[: end + 1] if len(line) > LONG and end > 0 else line


def find_failure(ledger: Ledger, moment: Moment) -> Failure:
    """The error at the moment's line, or else the one that ended the program, or else the last one."""
    failures = [failure for failure in _failures(ledger) if failure.seq <= moment.seq]
    if moment.line:
        here = [failure for failure in failures if _covers(ledger, failure.site, moment)]
        if here:
            return here[-1]
        lines = sorted({site.line for failure in _failures(ledger) if (site := ledger.site(failure.site)) is not None})
        known = "No error was recorded at all."
        if lines:
            known = f"Errors were recorded at {'line' if len(lines) == 1 else 'lines'} {joined(map(str, lines))}."
        raise BadInput(f"error: nothing failed at line {moment.line}. {known}")
    if not failures:
        raise BadInput("error: no error was recorded in this run.")
    uncaught = [failure for failure in failures if failure.caught is None]
    return (uncaught or failures)[-1]


def _failures(ledger: Ledger) -> list[Failure]:
    """Every exception with its companions, in order."""
    failures: list[Failure] = []
    ended: BackwardEnded | None = None
    call: ModuleCalled | None = None
    check: Check | None = None
    for event in ledger:
        match event:
            case BackwardEnded() if event.error:
                ended = event
            case ModuleCalled() if event.error:
                call = call if call is not None and call.error == event.error and call.broken else event
            case Check():
                check = event
            case Raised():
                failures.append(_failure(event, ended, call, check))
                ended = call = check = None
            case _:
                pass
    if ended is not None:
        kind, _, text = ended.error.partition(": ")
        failures.append(Failure(kind=kind, text=text, site=ended.site, seq=ended.seq, ended=ended))
    return failures


def _failure(raised: Raised, ended: BackwardEnded | None, call: ModuleCalled | None, check: Check | None) -> Failure:
    error = f"{raised.kind}: {raised.text}"
    return Failure(
        kind=raised.kind,
        text=raised.text,
        site=raised.site if raised.site is not None else (ended or call or raised).site,
        seq=raised.seq,
        caught=raised.caught,
        ended=ended if ended is not None and _same(ended.error, error) else None,
        call=call if call is not None and _same(call.error, error) else None,
        check=check if check is not None and not check.held and raised.kind == "AssertionError" else None,
    )


def _same(a: str, b: str) -> bool:
    """Whether two texts are of one error, of which either may have been cut short."""
    return a[:80] == b[:80]


def _covers(ledger: Ledger, site: SiteId | None, moment: Moment) -> bool:
    known = ledger.site(site)
    return known is not None and known.path == moment.path and known.line <= moment.line <= known.end_line


def headline(ledger: Ledger, failure: Failure, clause: str) -> str:
    """`Line 4 raised RuntimeError: ...`, with the note that the program caught it."""
    where = ledger.where(failure.site)
    caught = f" (caught at {ledger.where(failure.caught)})" if failure.caught is not None else ""
    return f"{where[0].upper()}{where[1:]} raised {failure.kind}{caught}: {clause}"
