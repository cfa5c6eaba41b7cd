"""What a person wants to know first: what stopped the program, broken contracts, gradients that are no numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.text import Text

from whygrad.report.parts import Assertion, Failure, NonFinite, Pass, Report
from whygrad.report.sections.words import in_code, on, place_cell, through
from whygrad.report.sheet import BAD, NOTICE, Paragraph, Pen, Rows, Section, styled
from whygrad.report.wording import say_first_sentence, say_norm, say_plural

LEAVING = frozenset({"SystemExit", "KeyboardInterrupt"})
"""How a program leaves on purpose, or at a person's wish: the header says it."""


def failures(report: Report, pen: Pen, explanation: Sequence[str] = ()) -> Section | None:
    """Exceptions that nothing caught, and why the last of them came about, a sentence a paragraph."""
    uncaught = [one for one in report.failures if one.caught is None and one.kind not in LEAVING]
    if not uncaught:
        return None
    if explanation:  # it says what stopped the backward, and more
        uncaught = [msgspec.structs.replace(one, stopped=None) for one in uncaught]
    rows = [(place_cell(one.place), _with_code(one, pen)) for one in uncaught]
    return Section("Failed", Text(), [Rows(rows), *(Paragraph(Text(sentence), indent=2) for sentence in explanation)])


def _with_code(failure: Failure, pen: Pen) -> Text:
    """The expression that failed, and why; a check's own text is already in what is told."""
    if failure.place is None or failure.assertion is not None:
        return told(failure, pen)
    return Text("\n").join([in_code(failure.place.code, pen, most=70), told(failure, pen)])


def told(failure: Failure, pen: Pen) -> Text:
    """An exception with what the ledger knows of its cause."""
    lines = [_headline(failure, pen)]
    if failure.broken:
        path = f"{failure.module}: " if failure.module else ""
        lines.append(styled(path, (failure.broken, NOTICE)))
    if failure.stopped is not None:
        lines.extend(_stopped(failure.stopped, pen))
    return Text("\n").join(lines)


def not_finite(report: Report, pen: Pen) -> Section | None:
    """Where NaN or infinity first came into each buffer; buffers struck by the same pass are told once."""
    if not report.nonfinite:
        return None
    by_cause: dict[tuple[str, int], list[NonFinite]] = {}
    for one in report.nonfinite:
        by_cause.setdefault((one.cause, one.step), []).append(one)
    rows = []
    for struck in by_cause.values():
        first = struck[0]
        others = f" and {say_plural(len(struck) - 1, 'more buffer')}" if len(struck) > 1 else ""
        text = styled(first.cause, f": {first.title}", others, ": ", (say_norm(first.value), BAD))
        if first.term is not None:
            text.append_text(styled(", ", through(first.term, pen)))
        rows.append((place_cell(first.place), text))
    return Section("Gradients that are not finite", Text(), [Rows(rows if pen.verbose else rows[:4])])


def _headline(failure: Failure, pen: Pen) -> Text:
    if failure.assertion is not None:
        sides = " and ".join(f"{text} was {value}" for text, value in telling(failure.assertion))
        headline = styled((f"{failure.kind}: ", BAD), in_code(failure.assertion.code, pen, most=70))
        return headline + Text(f"{', but ' if sides else ''}{sides}{': ' if failure.text else ''}{failure.text}")
    text = failure.text.strip() if pen.verbose else pen.clipped(say_first_sentence(failure.text), most=200)
    times = f"  {pen.times(failure.times)}" if failure.times > 1 else ""
    return styled((f"{failure.kind}: " if text else failure.kind, BAD), text, times)


def telling(assertion: Assertion) -> Iterator[tuple[str, str]]:
    """The sides of a check whose value is not already their text, and not the check's own."""
    for text, value in assertion.sides:
        if value not in (text, f"{text}.0") and text != assertion.code:
            yield text, value


def _stopped(stopped: Pass, pen: Pen) -> Iterator[Text]:
    node = stopped.blamed_name
    if stopped.blamed is not None:
        made = in_code(stopped.blamed.code, pen)
        yield styled(f"backward #{stopped.last} stopped at ", made, f" ({on(stopped.blamed)}, {node})")
    if stopped.freed_by is not None:
        yield styled(
            (f"its saved tensors were freed by backward #{stopped.freed_by}{on(stopped.freed_at, ', ')}", NOTICE)
        )
    if stopped.written_at is not None or stopped.written:
        what = stopped.written or "a tensor that it had saved"
        by = styled(" by ", in_code(stopped.written_at.code, pen)) if stopped.written_at is not None else Text()
        yield styled(
            (f"{what} was written in place", NOTICE), by, f"{on(stopped.written_at, ', ')}, after it had been saved"
        )
