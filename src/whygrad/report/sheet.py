"""Lays out the terminal report: sections of paragraphs and of rows in columns, at any width.

The last column of a row takes what is left of the width and is wrapped. Where too little is left, it moves
under its row, and where not even the other columns fit, the row is set as running text. Rich gives the
styles, the widths of characters and the wrapping.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.text import Text

NAME = "bold cyan"
TITLE = "bold"
PLACE = "dim"
CODE = "italic"
BAD = "bold red"
GOOD = "green"
NOTICE = "yellow"

GUTTER = 2
"""Columns between two cells."""

GLUE = "\ue000"
"""Stands for a blank at which no line may end: in a piece of source, in `line 9`."""

GLUED = re.compile(r"\b(line|norm|backward|step|[×x]) (?=[#\d-])")

ROOM = 28
"""A last column narrower than this moves under its row."""

GOOD_ROOM = 44
"""And one narrower than this, if it would take more than two lines for one of its own."""


class Glyphs(NamedTuple):
    """The few signs that a terminal may not be able to print."""

    arrow: str
    dots: str
    times: str


UNICODE = Glyphs(arrow="→", dots="…", times="×")
ASCII = Glyphs(arrow="->", dots="...", times="x")


class Pen(NamedTuple):
    """What a section needs to know of the page: its signs, and whether all is told or only the main things."""

    glyphs: Glyphs
    verbose: bool

    def arrow(self, *states: str) -> str:
        return f" {self.glyphs.arrow} ".join(states)

    def times(self, count: int) -> str:
        return f"{self.glyphs.times} {count:,}"

    def clipped(self, text: str, most: int = 40) -> str:
        """Text or source on one line, cut at the end unless everything is told."""
        flat = " ".join(text.split())
        most = 400 if self.verbose else most
        return flat if len(flat) <= most else flat[: most - len(self.glyphs.dots)].rstrip() + self.glyphs.dots


class Paragraph(NamedTuple):
    """Running text, wrapped."""

    text: Text
    indent: int = 2


class Rows(NamedTuple):
    """Rows whose cells stand in columns."""

    rows: Sequence[Sequence[Text]]
    indent: int = 2


class Section(NamedTuple):
    """A titled part of the report."""

    title: str
    summary: Text
    blocks: Sequence[Paragraph | Rows]


def styled(*parts: str | tuple[str, str] | Text) -> Text:
    """Text from pieces, each plain or with a style."""
    return Text.assemble(*parts)


def joined(parts: Iterable[Text], separator: str) -> Text:
    return Text(separator).join(parts)


def drawn(header: Sequence[Text], sections: Sequence[Section], *, width: int, color: bool) -> str:
    """The report as text; with escape codes only when `color` is set."""
    lines = [line for text in header for line in _wrapped(text, width, indent=0)]
    for section in sections:
        lines.append(Text())
        title = styled((section.title, TITLE), *(("  ", section.summary) if section.summary else ()))
        lines.extend(_wrapped(title, width, indent=0, hang=2))
        for block in section.blocks:
            if isinstance(block, Paragraph):
                lines.extend(_wrapped(block.text, width, block.indent, hang=GUTTER))
            else:
                lines.extend(_laid(block, width))
    for line in lines:
        line.rstrip()
    printed = _colored(lines, width) if color else "".join(f"{line.plain}\n" for line in lines)
    return printed.replace(GLUE, " ")


def _colored(lines: Sequence[Text], width: int) -> str:
    from rich.console import Console  # slow to import, and needed for colour alone

    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard",
        force_terminal=True,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        no_color=False,
    )
    with console.capture() as capture:
        for line in lines:
            console.print(line, soft_wrap=True)
    return capture.get()


def _wrapped(text: Text, width: int, indent: int, hang: int = 0) -> list[Text]:
    """`text` in lines of at most `width`, indented; further lines hang."""
    text = _glued(text)
    room = max(width - indent - hang, 8)
    lines = _folded(text, room)
    return [Text(" " * (indent if number == 0 else indent + hang)) + line for number, line in enumerate(lines)]


def _folded(text: Text, room: int) -> list[Text]:
    nowhere: Any = None  # Rich wants a console for justified text only
    return list(text.wrap(nowhere, room, overflow="fold"))


def _laid(block: Rows, width: int) -> list[Text]:
    rows = _without_empty_columns(block.rows)
    count = max((len(row) for row in rows), default=0)
    fixed = [max((row[i].cell_len for row in rows if i < len(row) - 1), default=0) for i in range(count - 1)]
    start = block.indent + sum(size + GUTTER for size in fixed if size)
    room = width - start
    lines: list[Text] = []
    if start - GUTTER > width:
        runs = (joined([cell for cell in row if cell], " " * GUTTER) for row in rows)
        return [line for run in runs for line in _wrapped(run, width, block.indent, hang=2 * GUTTER)]
    under = room < ROOM or (room < GOOD_ROOM and any(_is_long(_glued(row[-1]), room) for row in rows))
    for row in rows:
        head, last = row[:-1], _glued(row[-1])
        line = Text(" " * block.indent)
        for cell, size in zip(head, fixed, strict=False):
            if size:
                line.append_text(cell)
                line.append(" " * (size - cell.cell_len + GUTTER))
        if not last:
            lines.append(line)
        elif not under or last.cell_len <= room:
            tail = _folded(last, max(room, 8)) or [Text()]
            lines.append(line + tail[0])
            lines.extend(Text(" " * start) + more for more in tail[1:])
        else:
            deeper = block.indent + GUTTER * 2
            if line.plain.strip():
                lines.append(line)
            lines.extend(Text(" " * deeper) + more for more in _folded(last, max(width - deeper, 8)))
    return lines


def _without_empty_columns(rows: Sequence[Sequence[Text]]) -> Sequence[Sequence[Text]]:
    """The rows without what is empty at the end of all of them."""
    while rows and all(len(row) > 1 and not row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    return rows


def _glued(text: Text) -> Text:
    """The text with those blanks replaced at which no line may end; as long as before, so styles stay in place."""
    plain = GLUED.sub(rf"\1{GLUE}", text.plain)
    for span in text.spans:
        if span.style == CODE:
            plain = plain[: span.start] + plain[span.start : span.end].replace(" ", GLUE) + plain[span.end :]
    glued = text.copy()
    glued.plain = plain
    return glued


def _is_long(cell: Text, room: int) -> bool:
    lines = cell.plain.split("\n")
    return any(cell_len(line) > 2 * room - GUTTER or max(map(cell_len, line.split(" "))) > room for line in lines)
