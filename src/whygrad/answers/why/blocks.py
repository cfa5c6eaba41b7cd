"""Finds when a line ran that recorded nothing: between its neighbours in the same block of statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger import Ledger
from whygrad.ledger.events import Ended, Raised, Site


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


def passed_silently(ledger: Ledger, path: str, block: Block) -> int | None:
    """The last event before the block went on past the line; None where nothing shows that it did.

    The statement was passed where something is recorded before it and then something after it, in the same
    function, with no exception in between.
    """
    sites: dict[int, Site] = {}
    crossed: int | None = None
    before = 0
    last = 0
    for event in ledger:
        if isinstance(event, Site):
            if event.path == path and event.function == block.function:
                sites[event.id] = event
            continue
        site = sites.get(event.site) if event.site is not None else None
        if isinstance(event, Ended) and before and event.how == "returned" and block.function == "<module>":
            crossed = last
        if site is not None and block.first <= site.line <= block.last:
            if site.end_line < block.start:
                if before and site.line < before:
                    crossed = last
                before = 0 if isinstance(event, Raised) else site.line
            elif site.line > block.end:
                if before:
                    crossed = last
                before = 0
            else:
                before = 0
        last = event.seq
    return crossed


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
