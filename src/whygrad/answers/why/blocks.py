"""Finds when a line ran that recorded nothing: between its neighbours in the same block of statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import AnyEvent, Ended, Raised, Site, SiteId


class Block(msgspec.Struct, frozen=True):
    """The innermost block that holds a line: its first and last line, the line's own statement, the function."""

    line: int
    first: int
    last: int
    start: int
    end: int
    function: str


def block_of(text: str, line: int) -> Block:
    """The block of `line` in a program's text; the whole text where it cannot be parsed."""
    length = max(len(text.splitlines()), line)
    best = Block(line, 1, length, line, line, "<module>")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return best
    for block, function in _blocks(tree, ()):
        first, last = block[0].lineno, block[-1].end_lineno or block[-1].lineno
        if function == () and block is tree.body:
            first, last = 1, length
        if first <= line <= last and last - first <= best.last - best.first:
            start, end = line, line
            for statement in block:
                if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
                    start, end = statement.lineno, statement.end_lineno or statement.lineno
            best = Block(line, first, last, start, end, ".".join(function) or "<module>")
    return best


class Crossing:
    """Watches the events go by for the moments at which a block goes on past a line.

    The line's statement was passed where something is recorded before it and then something after it, in the same
    function, with no exception in between. `last` is the last event before the block was seen to have gone on.
    """

    def __init__(self, path: str, block: Block) -> None:
        self.last: int | None = None
        self._path = path
        self._block = block
        self._sites: dict[SiteId, Site] = {}
        self._before = 0
        self._previous = 0

    def see(self, event: AnyEvent) -> None:
        if isinstance(event, Site):
            if event.path == self._path and event.function == self._block.function:
                self._sites[event.id] = event
            return
        site = self._sites.get(event.site) if event.site is not None else None
        if site is not None and self._block.first <= site.line <= self._block.last:
            self._pass(site, isinstance(event, Raised))
        elif (
            isinstance(event, Ended) and self._before and event.how == "returned" and self._block.function == "<module>"
        ):
            self.last = self._previous
        self._previous = event.seq

    def _pass(self, site: Site, is_raised: bool) -> None:
        """Something happened in the block: before the line, at it, or after it."""
        block = self._block
        if site.end_line < block.start:
            if self._before and site.line < self._before:  # the next turn of a loop
                self.last = self._previous
            self._before = 0 if is_raised else site.line
            return
        if site.line > block.end and self._before:
            self.last = self._previous
        self._before = 0


def _blocks(node: ast.AST, function: tuple[str, ...]) -> Iterator[tuple[list[ast.stmt], tuple[str, ...]]]:
    """Every block of statements, outermost first, with the names of the functions and classes around it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = (*function, node.name)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block:
            yield block, function
    for child in ast.iter_child_nodes(node):
        yield from _blocks(child, function)
