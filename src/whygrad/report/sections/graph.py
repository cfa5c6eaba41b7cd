"""What happened to graphs and data beside the backward passes: history lost, tensors frozen, data overwritten."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from whygrad.report.parts import BORN, Cut, DataWrite, Report, Switched
from whygrad.report.sections.words import as_recorded, in_code, place_cell
from whygrad.report.sheet import NOTICE, Paragraph, Pen, Rows, Section, styled
from whygrad.report.wording import say_names, say_value

ROWS = 6

NUMBERS = ("item", "float", "int", "complex")
INDICES = ("argmax", "argmin", "argsort")
LIKE = ("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like", "new_zeros", "new_ones")

MEANS = {
    **dict.fromkeys(NUMBERS, "{of} became a Python number"),
    "bool": "{of} became True or False",
    "tolist": "{of} became Python lists",
    "numpy": "{of} became a NumPy array",
    "detach": "{result} is {of} without its history",
    "detach_": "{of} lost its history",
    "data": "{result} is {of} without its history; what is written to it goes unseen",
    "torch.tensor": "{result} is a copy of {of} without its history",
    "grad": "{result}, the gradient of {of}, has no history: create_graph was not set",
    "comparison": "{of} was compared: True and False have no gradient",
    "integer dtype": "{of} became integers: they have no gradient",
    "no_grad": "{of} was used with grad mode off",
    "inference_mode": "{of} was used in inference mode",
    **dict.fromkeys(INDICES, "{of} gave indices: they have no gradient"),
    **dict.fromkeys(LIKE, "{result} only has the shape of {of}"),
}
"""What each cut did to the tensor that had a history."""

ORDINARY = frozenset(
    {*NUMBERS, *INDICES, *LIKE, "bool", "tolist", "numpy", "comparison", "integer dtype", "no_grad", "inference_mode"}
)
"""Cuts that most programs make on purpose, to print a loss or count hits.

The short report tells them only where a leaf got no gradient, and counts them if they are more than two.
"""

TOLD_ORDINARY = 2
"""Of those, so many are told one by one."""


def cuts(report: Report, pen: Pen) -> Section | None:
    """Where a tensor's history was lost, of what, by what."""
    ordinary = [cut for cut in report.cuts if cut.by in ORDINARY]
    told = [cut for cut in report.cuts if cut.by not in ORDINARY]
    if pen.verbose or len(ordinary) <= TOLD_ORDINARY:
        told, ordinary = list(report.cuts), []
    if not pen.verbose and not _something_missing(report):
        told, ordinary = [cut for cut in told if cut.by not in ORDINARY], []
    if not told and not ordinary:
        return None
    shown = told if pen.verbose else told[:ROWS]
    blocks: list[Paragraph | Rows] = [Rows([_cut(cut, pen) for cut in shown])]
    if len(shown) < len(told):
        blocks.append(Paragraph(Text(f"and at {len(told) - len(shown)} more places")))
    blocks.append(Rows(list(_counted(ordinary, pen))))
    return Section("History cut", as_recorded(report), blocks)


def _something_missing(report: Report) -> bool:
    """Whether a leaf got no gradient though backward passes ran: then any cut may be the reason."""
    return bool(report.passes) and any(buffer.silent for buffer in report.buffers)


def frozen(report: Report, pen: Pen) -> Section | None:
    """Where `requires_grad` was switched off; switched on, too, when everything is told."""
    shown = [one for one in report.switched if pen.verbose or not one.to]
    return Section("requires_grad", Text(), [Rows([_switched(one) for one in shown])]) if shown else None


def writes(report: Report, pen: Pen) -> Section | None:
    """Where data was written in place; told in full only on demand."""
    shown = [one for one in report.writes if pen.verbose or one.hidden]
    if not shown:
        return None
    return Section("Data written in place", as_recorded(report), [Rows([_write(one, pen) for one in shown])])


def _cut(cut: Cut, pen: Pen) -> tuple[Text, ...]:
    code = in_code(cut.place.code, pen) if cut.place is not None else Text()
    times = f"  {pen.times(cut.times)}" if cut.times > 1 else ""
    means = MEANS.get(cut.by, f"{cut.by} gave {{result}} without the history of {{of}}")
    said = means.format(of=cut.of or "a tensor", result=cut.result or "the result")
    return place_cell(cut.place), code, Text(f"{said}{times}")


def _counted(cuts: list[Cut], pen: Pen) -> Iterator[tuple[Text, ...]]:
    """`item  × 14  line 10, line 14 and 12 more`."""
    by_kind: dict[str, list[Cut]] = {}
    for cut in cuts:
        by_kind.setdefault(cut.by, []).append(cut)
    for kind, group in by_kind.items():
        places = list(dict.fromkeys(cut.place.where for cut in group if cut.place is not None))
        yield Text(kind), Text(pen.times(sum(cut.times for cut in group))), Text(say_names(places))


def _switched(one: Switched) -> tuple[Text, ...]:
    more = one.times - len(one.titles)
    names = f"{one.titles[0]} and {one.times - 1} more" if more > 0 else say_names(one.titles)
    how = "False when first seen" if one.by == BORN else f"switched {'on' if one.to else 'off'} by {one.by}"
    return place_cell(one.place), Text(names), Text(how)


def _write(one: DataWrite, pen: Pen) -> tuple[Text, ...]:
    times = f"  {pen.times(one.times)}" if one.times > 1 else ""
    if one.hidden:
        seen = styled(("its version counter does not show it", NOTICE))
    else:
        seen = Text(f"version {pen.arrow(str(one.version_before), str(one.version))}")
    now = f" = {say_value(one.after)}" if one.after is not None else ""
    return place_cell(one.place), Text(one.by), styled(f"{one.title}{now}{times}, ", seen)
