"""What a benchmark gives: titled tables, as Markdown that also reads well in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NONE = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under `columns`, and what is to be known of them."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self, level: int = 3) -> str:
        widths = [max(len(row[i]) for row in (self.columns, *self.rows)) for i in range(len(self.columns))]
        rule = ["-" * widths[0], *(f"{'-' * (width - 1)}:" for width in widths[1:])]
        lines = [_line(row, widths) for row in (self.columns, rule, *self.rows)]
        notes = [f"\n{note}" for note in self.notes]
        return "\n".join([f"{'#' * level} {self.title}", "", *lines, *notes])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return f"| {' | '.join(cells)} |"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def ratio(value: float) -> str:
    return f"{value:.3f}" if value < 2 else f"{value:.2f}"


def between(values: Sequence[float]) -> str:
    """The spread of ratios."""
    return f"{ratio(min(values))} to {ratio(max(values))}"
