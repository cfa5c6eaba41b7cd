"""Checks that held, and failures that the program expected: it caught them itself. Warnings, too."""

from __future__ import annotations

from rich.text import Text

from whygrad.report.parts import Assertion, Report
from whygrad.report.sections.failures import told
from whygrad.report.sections.words import as_recorded, in_code, place_cell
from whygrad.report.sheet import BAD, GOOD, NOTICE, Paragraph, Pen, Rows, Section, styled
from whygrad.report.wording import say_plural

ROWS = 6


def checks(report: Report, pen: Pen) -> Section | None:
    """One line for what held; a row for each failure that was caught."""
    held = sum(one.held for one in report.assertions)
    caught = [one for one in report.failures if one.caught is not None]
    failed = sum(one.failed for one in report.assertions)
    expected = sum(one.times for one in caught)
    failed -= sum(one.times for one in caught if one.assertion is not None)
    if not held and not expected:
        return None
    parts = [(f"{held:,} held", GOOD)] if report.assertions else []
    if failed > 0:
        parts.append((f"{failed:,} failed", BAD))
    if expected:
        parts.append((f"{say_plural(expected, 'expected failure')} (caught by the program)", NOTICE))
    summary = Text("; ").join([*(styled(part) for part in parts), *([noted] if (noted := as_recorded(report)) else [])])
    blocks: list[Paragraph | Rows] = []
    shown = caught if pen.verbose else caught[:ROWS]
    if shown:
        blocks.append(
            Rows(
                [
                    (
                        place_cell(one.place),
                        told(one, pen),
                    )
                    for one in shown
                ]
            )
        )
    if len(shown) < len(caught):
        blocks.append(Paragraph(Text(f"and {len(caught) - len(shown)} more places")))
    if pen.verbose and held:
        blocks.append(Rows([_held(one, pen) for one in report.assertions if one.held]))
    return Section("Checks", summary, blocks)


def warnings(report: Report, pen: Pen) -> Section | None:
    """Python warnings that the program was shown."""
    if not report.warnings:
        return None
    rows = []
    for one in report.warnings if pen.verbose else report.warnings[:ROWS]:
        times = f"  {pen.times(one.times)}" if one.times > 1 else ""
        rows.append((place_cell(one.place), styled((f"{one.kind}: ", NOTICE), " ".join(one.text.split()), times)))
    hidden = len(report.warnings) - len(rows)
    more = [Paragraph(Text(f"and {say_plural(hidden, 'more warning')}"))] if hidden else []
    return Section("Warnings", Text(), [Rows(rows), *more])


def _held(one: Assertion, pen: Pen) -> tuple[Text, ...]:
    times = f"  {pen.times(one.held)}" if one.held > 1 else ""
    return place_cell(one.place), in_code(one.code, pen) + styled(times), styled(("held", GOOD))
