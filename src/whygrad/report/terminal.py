"""The report for a terminal: what a person wants to know first comes first, one screen for a small program.

`render` makes the text; printing it is the caller's business.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from whygrad.execute.heap import uncollected
from whygrad.ledger import Ledger
from whygrad.report.parts import Report
from whygrad.report.sections.checks import checks, warnings
from whygrad.report.sections.failures import failures, not_finite
from whygrad.report.sections.findings import findings
from whygrad.report.sections.gradients import gradients
from whygrad.report.sections.graph import cuts, frozen, writes
from whygrad.report.sections.header import header
from whygrad.report.sections.modules import grad_modes, modules
from whygrad.report.sections.recording import recording
from whygrad.report.sections.training import optimizers, passes
from whygrad.report.sheet import ASCII, UNICODE, Pen, Section, drawn
from whygrad.report.view import view
from whygrad.rules.diagnose import Diagnosis

if TYPE_CHECKING:
    from whygrad.report.sections.gradients import Derivations

NOTHING_FOUND = Diagnosis(())

NARROWEST = 40
"""Narrower terminals get lines of this width."""


def render(
    ledger: Ledger,
    *,
    verbose: bool = False,
    width: int | None = None,
    color: bool = False,
    unicode: bool = True,
    derivations: Derivations | None = None,
    explanation: Sequence[str] = (),
    diagnosis: Diagnosis = NOTHING_FOUND,
) -> str:
    """The report of a ledger as text.

    `verbose` tells everything, `width` is that of the terminal (None: ask it), `color` adds escape codes, and
    without `unicode` the text is pure ASCII. `derivations` are shown under the history of their tensor,
    `explanation` (why the program failed, a sentence each) under its failure, `diagnosis` (what the rules found) first.
    """
    pen = Pen(glyphs=UNICODE if unicode else ASCII, verbose=verbose)
    width = max(width or shutil.get_terminal_size().columns, NARROWEST)
    with uncollected():
        report = view(ledger)
        text = drawn(
            header(report.run, pen),
            list(sections(report, pen, derivations or {}, explanation, diagnosis)),
            width=width,
            color=color,
        )
    return text if unicode else text.encode("ascii", "backslashreplace").decode("ascii")


def sections(
    report: Report,
    pen: Pen,
    derivations: Derivations,
    explanation: Sequence[str] = (),
    diagnosis: Diagnosis = NOTHING_FOUND,
) -> Iterator[Section]:
    """The sections in reading order; one without anything to say is left out."""
    first = (findings(diagnosis, pen), failures(report, pen, explanation), not_finite(report, pen))
    yield from filter(None, first)
    yield gradients(report, pen, derivations)
    rest = (modules, grad_modes, passes, optimizers, checks, warnings, cuts, frozen, writes, recording)
    for section in rest:
        if (made := section(report, pen)) is not None:
            yield made
