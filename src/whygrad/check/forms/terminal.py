"""What was checked, for a terminal or a pipe: one paragraph a defect, then what was found, run and skipped."""

from __future__ import annotations

import textwrap

from whygrad.check.defect import Checked, Defect

WIDEST = 110


def render(checked: Checked, width: int) -> str:
    """The report. Nothing in it rests on colour."""
    width = max(min(width, WIDEST), 40)
    lines: list[str] = []
    for defect in checked.defects:
        lines += [*_defect(defect, width), ""]
    lines += summary(checked)
    return "\n".join(lines) + "\n"


def _defect(defect: Defect, width: int) -> list[str]:
    lines = [f"{defect.path}:{defect.line}: {defect.name.value}"]
    for label, text in (("published", defect.published), ("the run shows", defect.observed), ("why", defect.evidence)):
        if text:
            lead = f"  {label + ':':<15}"
            plain = " ".join(text.split()) or "nothing"
            lines += textwrap.wrap(plain, width, initial_indent=lead, subsequent_indent=" " * len(lead))
    return lines


def summary(checked: Checked) -> list[str]:
    """How much was found, run and skipped, and why."""
    files = len(checked.paths)
    lines = [
        f"found {checked.found} in {files} file{'' if files == 1 else 's'}, ran {checked.ran}, "
        f"skipped {len(checked.skipped)}"
    ]
    lines += [f"  skipped {one.path}:{one.line}: {one.why}" for one in checked.skipped]
    counts: dict[str, int] = {}
    for defect in checked.defects:
        counts[defect.name.value] = counts.get(defect.name.value, 0) + 1
    if counts:
        total = len(checked.defects)
        said = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
        lines.append(f"{total} defect{'' if total == 1 else 's'}: {said}")
    else:
        lines.append("no defect: every answer and every output is what a run shows")
    return lines
