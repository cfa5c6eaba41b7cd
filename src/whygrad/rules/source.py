"""A file of the user's code: its lines, its syntax tree, and the syntax at a place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from whygrad.ledger.events import Site

Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Source:
    """One file. A file that does not parse (a notebook's magics, say) has an empty tree."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def line(self, number: int) -> str:
        """A line by its number, from 1; empty where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @cached_property
    def tree(self) -> ast.Module:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module(body=[], type_ignores=[])

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def expression(self, site: Site) -> ast.expr | None:
        """The expression that a site spans exactly."""
        for node in self._spanning(site.line, site.end_line):
            if isinstance(node, ast.expr) and self._columns(node) == (site.column, site.end_column):
                return node
        return None

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement that covers a line."""
        best: ast.stmt | None = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                smaller = best is None or _height(node) <= _height(best)
                best = node if smaller else best
        return best

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What encloses a node, innermost first."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def loop_at(self, line: int) -> Loop | None:
        """The innermost loop (in the same function) whose body holds a line."""
        statement = self.statement(line)
        for node in () if statement is None else (statement, *self.around(statement)):
            if isinstance(node, Loop) and node.body[0].lineno <= line:
                return node
            if isinstance(node, Function):
                return None
        return None

    def function_at(self, line: int) -> Function | None:
        """The innermost function whose body holds a line."""
        statement = self.statement(line)
        around = () if statement is None else (statement, *self.around(statement))
        return next((node for node in around if isinstance(node, Function)), None)

    def segment(self, node: ast.AST) -> str:
        """The text of a node."""
        return ast.get_source_segment(self.text, node) or ""

    def _spanning(self, line: int, end_line: int) -> Iterator[ast.AST]:
        for node in ast.walk(self.tree):
            if getattr(node, "lineno", None) == line and getattr(node, "end_lineno", None) == end_line:
                yield node

    def _columns(self, node: ast.expr) -> tuple[int, int]:
        """Columns in characters; `ast` counts UTF-8 bytes."""
        first, last = self.line(node.lineno).encode(), self.line(node.end_lineno or node.lineno).encode()
        return (
            len(first[: node.col_offset].decode("utf-8", "replace")),
            len(last[: node.end_col_offset].decode("utf-8", "replace")),
        )


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno
