"""Phrases that several sections share."""

from __future__ import annotations

from rich.text import Text

from whygrad.report.parts import Place, Report, Term
from whygrad.report.sheet import CODE, PLACE, Pen, styled

SIGNS = {
    "add": "+", "sub": "-", "rsub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@", "mm": "@", "neg": "-",
    "getitem": "[", "index": "[", "select": "[", "slice": "[",
}  # fmt: skip
"""How operations look in source, where they do not look like a call."""


def as_recorded(report: Report) -> Text:
    """What counts mean where steps were recorded lightly: such steps count backward passes and steps alone."""
    return Text("counted in the steps recorded in full; there were more") if report.loops else Text()


def place_cell(place: Place | None) -> Text:
    """The cell that says where."""
    return styled((place.where, PLACE)) if place is not None else Text()


def on(place: Place | None, before: str = "") -> str:
    """`line 9`, with what stands before it; empty where there is no place."""
    return f"{before}{place.where}" if place is not None else ""


def in_code(code: str, pen: Pen, most: int = 40) -> Text:
    """A piece of the user's source, on one line."""
    return styled((pen.clipped(code, most), CODE))


def through(term: Term, pen: Pen) -> Text:
    """Where a term came through: `through w * 2.0, line 8`; the operation is named where the source hides it."""
    if term.place is None:
        return Text(f"through {term.operation or 'an operation'} outside the program's own lines")
    hidden = "" if _shows(term.place.code, term.operation) else f"{term.operation} in "
    return styled("through ", hidden, in_code(term.place.code, pen), ", ", (term.place.where, PLACE))


def _shows(code: str, operation: str) -> bool:
    """Whether the source says what was done: a call says enough, any other expression by its sign."""
    plain = operation.rpartition(".")[2].strip("_")
    return not plain or code.endswith(")") or SIGNS.get(plain, plain) in code
