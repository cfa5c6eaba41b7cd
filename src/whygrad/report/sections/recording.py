"""What the ledger does not hold: lost, recorded only at its boundary, or recorded lightly."""

from __future__ import annotations

from rich.text import Text

from whygrad.report.parts import Remark, Report
from whygrad.report.sections.words import place_cell
from whygrad.report.sheet import NOTICE, Pen, Rows, Section, styled
from whygrad.report.wording import say_plural


def recording(report: Report, pen: Pen) -> Section | None:
    """One row for each thing that was not, or not fully, recorded."""
    rows = [_row(one, pen) for one in report.remarks if pen.verbose or one.kind != "depth"]
    if not pen.verbose and (light := [one for one in report.remarks if one.text.startswith("light")]):
        rows.append((Text(), Text("light"), Text(_lightly(report, light[0]))))
    return Section("Not fully recorded", Text(), [Rows(rows)]) if rows else None


def _lightly(report: Report, remark: Remark) -> str:
    """Which steps were recorded by counts and samples only, and why."""
    why = remark.text.partition(": ")[2]
    because = f", since {why}" if why else ""
    if not report.loops:
        return f"from step {remark.step:,} on{because}"
    first, last = report.loops[0].first_step, report.loops[-1].last_step
    steps = f" in steps {first:,} to {last:,}" if first else ""
    passes = say_plural(sum(one.backwards for one in report.loops), "backward pass", "backward passes")
    return f"{passes}{steps} by counts and samples only{because}"


def _row(one: Remark, pen: Pen) -> tuple[Text, ...]:
    times = f"  {pen.times(one.times)}" if one.times > 1 else ""
    kind = styled((one.kind, NOTICE)) if one.kind == "lost" else Text(one.kind)
    step = f" (from step {one.step:,})" if one.kind == "depth" else ""
    return place_cell(one.place), kind, Text(f"{one.text}{step}{times}")
