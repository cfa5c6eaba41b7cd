"""Where Python says that a condition was decided, and that an assertion failed. Tracebacks show it.

The interpreter's choice differs between versions and between forms of the condition (the last comparison in 3.11,
the condition, the statement). For an assertion it is read from what the compiler makes of it.
"""

from __future__ import annotations

import ast
import sys
from itertools import islice
from types import CodeType
from typing import Any, TypeVar

import msgspec

from whygrad.execute.silence import silent_compiler

N = TypeVar("N", bound=ast.AST)


class Span(msgspec.Struct, frozen=True):
    """A stretch of source: lines from 1, columns in UTF-8 bytes as in `ast`."""

    line: int
    column: int
    end_line: int
    end_column: int

    def put(self, node: N) -> N:
        """`node`, at this place."""
        held: Any = node
        held.lineno, held.col_offset, held.end_lineno, held.end_col_offset = (
            self.line, self.column, self.end_line, self.end_column,
        )  # fmt: skip
        return node


def decided_at(test: ast.expr) -> Span | None:
    """Where a comparison's outcome is found true or false, when that is not where a tap around it would be.

    Up to 3.11 the compiler puts the jump at the comparison if it sees one, otherwise at the statement. It sees none
    when a tap is around it. The statement itself, put where the comparison is, makes up for it.
    """
    if sys.version_info >= (3, 12):
        return None
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if not isinstance(test, ast.Compare) or test.end_lineno is None or test.end_col_offset is None:
        return None
    return Span(test.lineno, test.col_offset, test.end_lineno, test.end_col_offset)


def decided_and_raised(node: ast.Assert) -> tuple[Span, Span]:
    """Where the condition is found true or false, and where the AssertionError is raised."""
    whole = Span(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    try:
        with silent_compiler():
            code = compile(
                ast.Module([node], []), "<assertion>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
            )
    except SyntaxError:  # `yield` outside of a function
        return whole, whole
    spans = _spans(code, whole)
    raised = next((at for at in reversed(range(len(spans))) if code.co_code[2 * at] == _opcode("RAISE_VARARGS")), None)
    if raised is None:
        return whole, whole
    loaded = next((at for at in reversed(range(raised)) if _loads_assertion_error(code, at)), raised)
    return spans[max(loaded - 1, 0)], spans[raised]


def _spans(code: CodeType, whole: Span) -> list[Span]:
    """The place of each instruction; where Python knows its line only, of that line."""
    if hasattr(code, "co_positions"):
        return [
            Span(line, column, end_line, end_column)
            if line and end_line and column is not None and end_column is not None
            else whole
            for line, end_line, column, end_column in code.co_positions()
        ]
    spans = [whole] * (len(code.co_code) // 2)
    for start, stop, line in code.co_lines():
        if line:
            spans[start // 2 : stop // 2] = [Span(line, 0, line, 0)] * ((stop - start) // 2)
    return spans


def _loads_assertion_error(code: CodeType, at: int) -> bool:
    """By an instruction of its own up to 3.13, as a common constant (number 0) later."""
    opcode, argument = islice(code.co_code, 2 * at, 2 * at + 2)
    return opcode == _opcode("LOAD_ASSERTION_ERROR") or (opcode == _opcode("LOAD_COMMON_CONSTANT") and argument == 0)


def _opcode(name: str) -> int:
    from opcode import opmap

    return opmap.get(name, -1)
