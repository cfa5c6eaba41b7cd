"""What is known of a place in the user's code before it runs: its span, its text, and the shape of its expression.

The instrumentation fills a `SiteTable`; a recorder looks sites up by index when a tap reports them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import msgspec


class Constant(msgspec.Struct, frozen=True):
    """An operand that is written as a literal."""

    value: Any


class Passed(msgspec.Struct, frozen=True):
    """An operand that is a plain name: the tap receives its value as extra argument number `index`."""

    index: int


class Child(msgspec.Struct, frozen=True):
    """An operand that is an expression with a tap of its own: the value that `site` gave last."""

    site: int


class Several(msgspec.Struct, frozen=True):
    """A list, tuple or slice written out: `kind` is `list`, `tuple` or `slice`."""

    kind: str
    items: tuple[OperandForm, ...]


class Unknown(msgspec.Struct, frozen=True):
    """An operand that is not followed (a lambda, a comprehension, a starred argument)."""


Form = Constant | Passed | Child | Several | Unknown


class OperandForm(msgspec.Struct, frozen=True):
    """One operand: how to get at its value, its keyword if it was passed by name, and its text."""

    form: Form
    keyword: str = ""
    code: str = ""


class Place(msgspec.Struct):
    """A site of the user's code.

    `operation` is the plain name of what the expression does (`mul`, `square`, `torch.tensor`); for a method
    call `method` is true and the first operand is the receiver. `targets` are the names that a statement binds
    to the value, as written. `sides` are the texts of an assertion's parts. `attribute` is the attribute that a
    statement writes (`grad`, `data`, `requires_grad`), `item` is true for `x[...] = `, and `written` is the whole
    target as written (`del w.grad` for one that is deleted).
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    code: str
    operation: str = ""
    method: bool = False
    operands: tuple[OperandForm, ...] = ()
    targets: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    attribute: str = ""
    item: bool = False
    written: str = ""


class Statement(msgspec.Struct, frozen=True):
    """A simple statement, or the header of a compound one."""

    line: int
    column: int
    end_line: int
    end_column: int
    function: str


class SourceFile(msgspec.Struct):
    """A file of the user's code, as compiled."""

    path: str
    text: str
    lines: list[str]
    statements: list[Statement] = msgspec.field(default_factory=list)

    def column(self, line: int, offset: int) -> int:
        """Characters from the offset in UTF-8 bytes that Python's compiler counts."""
        if not 0 < line <= len(self.lines) or self.lines[line - 1].isascii():
            return offset
        return len(self.lines[line - 1].encode()[:offset].decode(errors="replace"))


class SiteTable:
    """All sites of a run, numbered from 0, and the files that they lie in.

    `plain` maps instrumented code objects to the same code as Python alone compiles it; `parameters` are the names
    that a function (by its file and full name) gives its arguments.
    """

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.files: dict[str, SourceFile] = {}
        self.plain: dict[CodeType, CodeType] = {}
        self.parameters: dict[tuple[str, str], frozenset[str]] = {}
        self._statement_sites: dict[tuple[str, int], int] = {}
        self._spans: dict[tuple[str, int, int, int, int], int] = {}
        self._running: dict[tuple[int, int], int] = {}
        self._codes: list[CodeType] = []

    def add(self, place: Place) -> int:
        self.places.append(place)
        site = len(self.places) - 1
        if place.operation:
            self._spans[place.path, place.line, place.column, place.end_line, place.end_column] = site
        return site

    def running(self, frame: FrameType) -> int:
        """The site of what `frame` is executing: the very expression where Python knows it (3.11 on).

        Elsewhere it is the statement.
        """
        key = (id(frame.f_code), frame.f_lasti)
        found = self._running.get(key)
        if found is None:
            found = self._running[key] = self._find_running(frame)
            self._codes.append(frame.f_code)
        return found

    def _find_running(self, frame: FrameType) -> int:
        code = frame.f_code
        if hasattr(code, "co_positions") and frame.f_lasti >= 0:
            line, end_line, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None))
            file = self.files[code.co_filename]
            if line is not None and end_line is not None and start is not None and end is not None:
                span = (code.co_filename, line, file.column(line, start), end_line, file.column(end_line, end))
                site = self._spans.get(span)
                if site is not None:
                    return site
        return self.statement(code.co_filename, frame.f_lineno)

    def statement(self, path: str, line: int) -> int:
        """The site of the innermost statement that covers `line` of `path`."""
        key = (path, line)
        found = self._statement_sites.get(key)
        if found is None:
            found = self._statement_sites[key] = self.add(self._statement_place(path, line))
        return found

    def _statement_place(self, path: str, line: int) -> Place:
        file = self.files[path]
        best: Statement | None = None
        for statement in file.statements:
            if statement.line <= line <= statement.end_line and (best is None or statement.line >= best.line):
                best = statement
        if best is None:
            text = file.lines[line - 1] if 0 < line <= len(file.lines) else ""
            stripped = text.strip()
            column = len(text) - len(text.lstrip())
            return Place(path, line, column, line, column + len(stripped), "<module>", stripped)
        code = segment(file.lines, best.line, best.column, best.end_line, best.end_column)
        return Place(path, best.line, best.column, best.end_line, best.end_column, best.function, code)

    def __iter__(self) -> Iterator[Place]:
        return iter(self.places)


def segment(lines: list[str], line: int, column: int, end_line: int, end_column: int) -> str:
    """The text between two positions (lines from 1, columns in characters), on one line."""
    if line == end_line:
        return lines[line - 1][column:end_column]
    parts = [lines[line - 1][column:], *lines[line : end_line - 1], lines[end_line - 1][:end_column]]
    return " ".join(part.strip() for part in parts)
