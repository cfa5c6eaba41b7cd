"""The HTML report: one self-contained page, the source beside what happened to each gradient. No network, no build.

    page = render(ledger)

The page reads well without scripts: events and lines are tied by real links. Its size is bounded whatever the run.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from whygrad.ledger import Ledger
from whygrad.report.page.anchors import Anchors, changes, places
from whygrad.report.page.filters import FILTERS, PEN, TESTS
from whygrad.report.page.fit import Fit, Limits, fit, module_rows
from whygrad.report.page.listing import Listing, set_files
from whygrad.report.page.visible import visible
from whygrad.report.parts import Failure, NonFinite, Part, Run
from whygrad.report.sections.header import ENDINGS, header
from whygrad.report.view import view
from whygrad.rules.diagnose import Diagnosis

if TYPE_CHECKING:
    from whygrad.report.sections.gradients import Derivations

PAGE_BYTES = 1_900_000
"""A page is never larger. Only a ledger made for it comes near: then everything gets half of the room."""

NOTHING_FOUND = Diagnosis(())

MOST_NOTICES = 50
"""Passes that are named for gradients that were not finite."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}'"
"""The page may load nothing, and run nothing but its own script."""

TITLES = {
    "modules": "Modules and modes",
    "passes": "Backward passes",
    "optimizers": "Optimizer steps",
    "checks": "Checks",
    "exceptions": "Expected failures",
    "warnings": "Warnings",
    "history": "History cut, data overwritten",
    "remarks": "Not fully recorded",
}
"""The sections beside the gradients."""


class Table(Part, frozen=True):
    """The rows of a section, and how many more there were."""

    rows: tuple[Part, ...]
    left_out: int


def render(
    ledger: Ledger,
    *,
    derivations: Derivations | None = None,
    explanation: Sequence[str] = (),
    diagnosis: Diagnosis = NOTHING_FOUND,
) -> str:
    """The page of a recorded run. `derivations` are shown with the history of their tensor,
    `explanation` (why the program failed, a sentence each) with its failure, `diagnosis` (what the rules found) first.
    """
    report = view(ledger)
    limits = Limits()
    page = _page(ledger, fit(report, limits), limits, derivations or {}, explanation, diagnosis)
    while len(page.encode()) > PAGE_BYTES and limits.rows:
        limits = limits.halved()
        page = _page(ledger, fit(report, limits), limits, derivations or {}, explanation, diagnosis)
    return page


def _page(
    ledger: Ledger,
    fitted: Fit,
    limits: Limits,
    derivations: Derivations,
    explanation: Sequence[str],
    diagnosis: Diagnosis,
) -> str:
    report = fitted.report
    main = ledger.main_path()
    listings = set_files(report.sources, places(report), main, shown=limits.shown, folded=limits.folded)
    anchors = Anchors(report, listings)
    script = _asset("page.js")
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            fitted=fitted,
            anchors=anchors,
            listings=listings,
            notices=tuple(_notices(fitted, anchors)),
            diagnosis=diagnosis,
            links=lambda one: _line_id(listings, one.place.path, one.place.line),
            explanation=[visible(sentence) for sentence in explanation],
            tables=tuple(_tables(fitted)),
            name=os.path.basename(report.run.program) or report.run.program,
            command=" ".join((report.run.program, *report.run.argv[1:])),
            ending=_ending(report.run),
            setting=[line.plain for line in header(report.run, PEN)[1:]],
            derivations={tensor: _lines(found) for tensor, found in derivations.items()},
            titles=TITLES,
            most=limits,
            policy=POLICY.format(_digest(script)),
            style=Markup(_asset("page.css")),
            script=Markup(script),
        )
    )


def _line_id(listings: Sequence[Listing], path: str, line: int) -> str:
    """The id of a line of the source that the page shows; empty where it does not."""
    for listing in listings:
        if listing.path == path and f"{listing.id}L{line}" in set(listing.anchors()):
            return f"{listing.id}L{line}"
    return ""


def _lines(derivations: Any) -> list[str]:
    """What is said under a buffer's life; of one derivation or of several."""
    several = [derivations] if hasattr(derivations, "lines") else derivations
    return [line for derivation in several for line in derivation.lines()]


class Notice(Part, frozen=True):
    """Something to look at before all else. `struck` counts further buffers that the same event struck."""

    part: Failure | NonFinite
    struck: int = 0
    change: str = ""


def _notices(fitted: Fit, anchors: Anchors) -> Iterator[Notice]:
    """Exceptions that nothing caught, and where gradients stopped being finite."""
    yield from (Notice(part=failure) for failure in fitted.report.failures if failure.caught is None)
    by_event = {
        change.seq: anchors.change(buffer, change)
        for buffer in fitted.report.buffers
        for change in changes(buffer.entries)
    }
    struck: dict[tuple[str, int], list[NonFinite]] = {}
    for one in fitted.report.nonfinite:
        struck.setdefault((one.cause, one.step), []).append(one)
    for group in islice(struck.values(), MOST_NOTICES):
        yield Notice(part=group[0], struck=len(group) - 1, change=by_event.get(group[0].seq, ""))


def _tables(fitted: Fit) -> Iterator[tuple[str, Table]]:
    """The sections beside the gradients, in reading order; those without anything to say are left out."""
    report, left_out = fitted.report, fitted.left_out
    history = (*report.cuts, *report.writes, *report.switched)
    for name, rows, kinds in (
        ("modules", module_rows(report), ("modules", "grad_modes")),
        ("passes", sorted((*report.passes, *report.loops), key=_seq), ("passes", "loops")),
        ("optimizers", report.optimizing, ("optimizing",)),
        ("checks", report.assertions, ("assertions",)),
        ("exceptions", [failure for failure in report.failures if failure.caught], ("failures",)),
        ("warnings", report.warnings, ("warnings",)),
        ("history", sorted(history, key=_seq), ("cuts", "writes", "switched")),
        ("remarks", report.remarks, ("remarks",)),
    ):
        if rows:
            yield name, Table(rows=tuple(rows), left_out=sum(left_out[kind] for kind in kinds))


def _seq(part: Part) -> int:
    return int(getattr(part, "seq", 0))


def _ending(run: Run) -> str:
    if not run.how:
        return "The ledger breaks off before the program ended."
    code = f", exit code {run.exit_code}" if run.exit_code is not None else ""
    return f"{ENDINGS.get(run.how, run.how)}{code}".capitalize()


def _asset(name: str) -> str:
    return files("whygrad.report.page").joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(FILTERS)
    environment.tests.update(TESTS)
    return environment
