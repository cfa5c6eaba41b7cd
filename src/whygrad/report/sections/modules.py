"""Module calls and modes, in the order in which they happened, alike ones with a count."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from whygrad.report.parts import Call, GradMode, ModeSwitch, ModuleEntry, Place, Report
from whygrad.report.sections.words import as_recorded, in_code, place_cell
from whygrad.report.sheet import BAD, NOTICE, Paragraph, Pen, Rows, Section, styled
from whygrad.report.wording import say_first_sentence, say_modules, say_names, say_plural, say_sizes, say_whole

ROWS = 14
"""Rows of module calls and modes in the short report."""


def modules(report: Report, pen: Pen) -> Section | None:
    """Calls from the program's own code and mode switches; calls inside modules too when everything is told."""
    entries = [entry for entry in report.modules if pen.verbose or isinstance(entry, ModeSwitch) or not entry.depth]
    broken = {entry.place: entry for entry in report.modules if isinstance(entry, Call) and entry.broken}
    if not entries:
        return None
    shown = entries if pen.verbose else entries[:ROWS]
    blocks: list[Paragraph | Rows] = [Rows([_row(entry, broken, pen) for entry in shown])]
    if hidden := len(entries) - len(shown):
        blocks.append(Paragraph(Text(f"and {say_plural(hidden, 'more row')}")))
    return Section("Modules", as_recorded(report), blocks)


def grad_modes(report: Report, pen: Pen) -> Section | None:
    """Where recording of the graph was switched off or on; the module calls say it for themselves."""
    if not report.grad_modes or not pen.verbose:
        return None
    rows = [
        (place_cell(one.place), in_code(one.by, pen), Text(f"grad {one.mode}{_count(one, pen)}"))
        for one in report.grad_modes
    ]
    return Section("Grad modes", as_recorded(report), [Rows(rows)])


def _row(entry: ModuleEntry, broken: Mapping[Place | None, Call], pen: Pen) -> tuple[Text, ...]:
    """Where, what, in which mode, with what result."""
    where = place_cell(entry.place)
    if isinstance(entry, ModeSwitch):
        code = f"{entry.module}.{entry.call}(){_count(entry, pen)}"
        if not entry.changed:
            return where, Text(code), Text("no change"), Text()
        was, now = ("eval", "train") if entry.training else ("train", "eval")
        names = say_names(entry.changed, 400) if pen.verbose else say_modules(entry.changed)
        idle = entry.times - entry.effective
        if idle:
            names += f"; {idle:,} of the {entry.times:,} calls changed nothing"
        return where, Text(code), Text(pen.arrow(was, now)), Text(names)
    name = styled("  " * entry.depth, entry.module, _count(entry, pen))
    grad = f"grad {entry.grad_mode}"
    mode = styled("train" if entry.training else "eval", ", ", (grad, "" if entry.grad_mode == "on" else NOTICE))
    return where, name, mode, _result(entry, broken, pen)


def _result(entry: Call, broken: Mapping[Place | None, Call], pen: Pen) -> Text:
    sizes = say_sizes(entry.inputs)
    if not (entry.broken or entry.error):
        return Text(pen.arrow(sizes or "nothing", say_sizes(entry.outputs)) + _values(entry, pen))
    inner = broken.get(entry.place)
    if entry.broken:
        failed = entry.broken
    elif inner is not None:
        failed = f"the contract of {inner.module} was broken"
    else:
        failed = entry.error if pen.verbose else say_first_sentence(entry.error)
    return styled(sizes, "  ", (failed, BAD))


def _values(entry: Call, pen: Pen) -> str:
    """What came out, where it is small enough to say."""
    first = say_whole(entry.first) if entry.first is not None else None
    last = say_whole(entry.last) if entry.last is not None else None
    if first is None or last is None:
        return ""
    if entry.first is not None and entry.first.scalar is not None:
        first, last = first.strip("[]"), last.strip("[]")
    if first == last:
        return f"  = {first}" if entry.times == 1 else ""
    return f"  = {first} {pen.glyphs.dots} {last}"


def _count(entry: ModuleEntry | GradMode, pen: Pen) -> str:
    return f"  {pen.times(entry.times)}" if entry.times > 1 else ""
