"""A source file as it lies on the disk: its text with its own line ends, and the text that edits make of it."""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from whygrad.errors import BadInput, WhygradError
from whygrad.rules.finding import Edit

LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line for Python's parser; a form feed or U+2028 does not."""


class Impossible(WhygradError):  # noqa: N818
    """Edits that cannot be made, or make something that is not Python."""


class SourceText(msgspec.Struct, frozen=True):
    """A file's text, with the line ends that it has, and the encoding that it declares."""

    path: str
    text: str
    encoding: str = "utf-8"

    @property
    def data(self) -> bytes:
        return self.text.encode(self.encoding)

    @property
    def line_end(self) -> str:
        found = LINE_END.search(self.text)
        return found[0] if found else "\n"

    def is_recorded_as(self, text: str) -> bool:
        """Whether this is what a run recorded, which keeps no line ends."""
        return LINE_END.sub("\n", self.text) == LINE_END.sub("\n", text)


def load(path: str) -> SourceText:
    """The file at `path`; raises `BadInput` if it cannot be read as Python source."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return SourceText(path, data.decode(encoding), encoding)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: is not Python source: {error}.") from None


def edited(source: SourceText, edits: Iterable[Edit]) -> SourceText:
    """`source` with the edits made, the last in the file first. Raises `Impossible`."""
    starts = [0, *(match.end() for match in LINE_END.finditer(source.text))]
    spans = sorted({(_offset(source, starts, edit, 0), _offset(source, starts, edit, 1), edit.text) for edit in edits})
    for (start, end, _), (later, _, _) in pairwise(spans):
        if later < end or end < start:
            raise Impossible("the edits overlap")
    text = source.text
    for start, end, new in reversed(spans):
        text = text[:start] + LINE_END.sub(lambda _: source.line_end, new) + text[end:]
    try:
        ast.parse(LINE_END.sub("\n", text))
    except (SyntaxError, ValueError) as error:
        raise Impossible(f"the change does not make Python: {error}") from None
    return msgspec.structs.replace(source, text=text)


def overlap(some: Iterable[Edit], others: Iterable[Edit]) -> bool:
    """Whether two sets of edits want to change the same text. Equal edits agree."""
    return any(_meet(one, other) for one in some for other in others if one != other)


def diff(before: SourceText, after: SourceText, name: str) -> str:
    """The change as `diff -u` prints it."""
    old, new = (LINE_END.sub("\n", text).splitlines(keepends=True) for text in (before.text, after.text))
    lines = difflib.unified_diff(old, new, name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class Lines:
    """Which line of the changed text was which line of the original."""

    def __init__(self, before: SourceText, after: SourceText) -> None:
        old, new = LINE_END.split(before.text), LINE_END.split(after.text)
        self._original: dict[int, int] = {}
        for kind, old_start, old_end, start, end in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
            for line in range(start, end):
                there = old_start + (line - start if kind in ("equal", "replace") else 0)
                self._original[line + 1] = min(there, max(old_end - 1, old_start)) + 1

    def original(self, line: int) -> int:
        """The line's number before the change; of an inserted line, that of the line it stands before."""
        return self._original.get(line, line)


def _offset(source: SourceText, starts: list[int], edit: Edit, end: int) -> int:
    line, column = ((edit.line, edit.column), (edit.end_line, edit.end_column))[end]
    if (line, column) == (len(starts) + 1, 0):  # the end of a last line that nothing ends
        return len(source.text)
    if not 1 <= line <= len(starts):
        raise Impossible(f"{source.path} has no line {line}")
    offset = starts[line - 1] + column
    limit = starts[line] if line < len(starts) else len(source.text)
    if column < 0 or offset > limit:
        raise Impossible(f"{source.path} has no column {column} in line {line}")
    return offset


def _meet(one: Edit, other: Edit) -> bool:
    if one.path != other.path:
        return False
    (start, end), (other_start, other_end) = _span(one), _span(other)
    if start == end or other_start == other_end:  # an insertion at the edge of a change leaves it alone
        return other_start < start < other_end or start < other_start < end
    return start < other_end and other_start < end


def _span(edit: Edit) -> tuple[tuple[int, int], tuple[int, int]]:
    return (edit.line, edit.column), (edit.end_line, edit.end_column)
