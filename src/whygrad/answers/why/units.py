"""The statements of a function in the order of its text, and the block that each belongs to. Text only, no events."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec

MODULE = "<module>"

Position: TypeAlias = tuple[int, int]
"""A line from 1 and a column (characters) from 0."""


class Called(msgspec.Struct, frozen=True):
    """A call in a statement: the last part of the name that is called, and where the call stands."""

    name: str
    start: Position
    end: Position


class Unit(msgspec.Struct, frozen=True):
    """A simple statement, or the header of a compound one.

    `blocks` are the blocks around it, outermost first; those in `Body.loops` are the bodies of loops. `leaves` is
    true for return, raise, break and continue, `opens` for the header of a compound statement, and `repeats` where
    a comprehension in it may run its parts many times. `turns` is the body of the loop that it heads (0: of none).
    """

    start: Position
    end: Position
    blocks: tuple[int, ...]
    calls: tuple[Called, ...] = ()
    leaves: bool = False
    opens: bool = False
    repeats: bool = False
    turns: int = 0

    @property
    def taking_part(self) -> tuple[int, ...]:
        """The blocks around it; a loop's header runs in every turn."""
        return (*self.blocks, self.turns) if self.turns else self.blocks

    def covers(self, line: int) -> bool:
        return self.start[0] <= line <= self.end[0]


class Body(msgspec.Struct, frozen=True):
    """One function's own statements (the module's, for `<module>`); what is defined inside it has bodies of its own."""

    function: str
    units: tuple[Unit, ...]
    loops: frozenset[int]
    parameters: frozenset[str] = frozenset()

    def unit_at(self, line: int) -> int | None:
        """The unit on a line; the last of several."""
        return next((index for index in reversed(range(len(self.units))) if self.units[index].covers(line)), None)

    def unit_of(self, position: Position) -> int | None:
        """The unit at a position."""
        found = (index for index, unit in enumerate(self.units) if unit.start <= position <= unit.end)
        return next(found, None)

    def is_inside(self, unit: int, other: int) -> bool:
        """Whether `unit` stands in the block of `other`, or in a block inside that."""
        around = self.units[other].blocks
        return self.units[unit].blocks[: len(around)] == around

    def loop_around(self, unit: int, other: int) -> int | None:
        """The innermost loop whose body holds both; None where there is none."""
        common = None
        for mine, theirs in zip(self.units[unit].taking_part, self.units[other].taking_part, strict=False):
            if mine != theirs:
                break
            common = mine if mine in self.loops else common
        return common

    def may_leave(self, after: int, until: int) -> bool:
        """Whether a statement between two units may have left the block."""
        return any(unit.leaves for unit in self.units[after + 1 : until])

    @property
    def names_called(self) -> frozenset[str]:
        return frozenset(call.name for unit in self.units for call in unit.calls)


def bodies_of(text: str) -> tuple[Body, ...]:
    """The body of the module and of every function and class in it; none where the text cannot be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    reader = _Reader(text)
    reader.body(MODULE, tree.body)
    return tuple(reader.bodies)


def body_at(bodies: Sequence[Body], line: int) -> tuple[Body, int] | None:
    """The innermost body with a statement on a line, and which of its units that is."""
    found = None
    for body in bodies:
        unit = body.unit_at(line)
        if unit is not None and (found is None or body.function.startswith(found[0].function) or found[0] is bodies[0]):
            found = body, unit
    return found


class _Reader:
    """Walks a tree, a body at a time."""

    def __init__(self, text: str) -> None:
        self.bodies: list[Body] = []
        self._lines = text.splitlines()
        self._blocks = 0

    def body(self, function: str, statements: Sequence[ast.stmt], parameters: frozenset[str] = frozenset()) -> None:
        units: list[Unit] = []
        loops: set[int] = set()
        inner: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
        self._block(statements, (), units, loops, inner, is_loop=False)
        self.bodies.append(Body(function, tuple(units), frozenset(loops), parameters))
        for definition in inner:
            around = "" if function == MODULE else f"{function}."
            self.body(f"{around}{definition.name}", definition.body, _parameters(definition))

    def _block(
        self,
        statements: Sequence[ast.stmt],
        around: tuple[int, ...],
        units: list[Unit],
        loops: set[int],
        inner: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef],
        *,
        is_loop: bool,
    ) -> None:
        self._blocks += 1
        blocks = (*around, self._blocks)
        if is_loop:
            loops.add(self._blocks)
        for statement in statements:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner.append(statement)
                units.append(self._definition(statement, blocks))
                continue
            below = list(_below(statement))
            if not below:
                leaves = isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)
                calls = tuple(self._calls([statement]))
                units.append(
                    Unit(
                        self._start(statement),
                        self._end(statement),
                        blocks,
                        calls,
                        leaves=leaves,
                        repeats=_repeats([statement]),
                    )
                )
                continue
            is_loop = isinstance(statement, ast.For | ast.AsyncFor | ast.While)
            units.append(self._header(statement, below[0][0], blocks, turns=self._blocks + 1 if is_loop else 0))
            for part in below:
                self._block(part, blocks, units, loops, inner, is_loop=is_loop and part is below[0])

    def _header(self, statement: ast.stmt, first: ast.stmt, blocks: tuple[int, ...], *, turns: int) -> Unit:
        expressions = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr | ast.withitem)]
        end = max((self._end(each) for each in _expressions(expressions)), default=self._start(statement))
        if first.lineno > end[0]:  # everything before the body
            end = (first.lineno - 1, len(self._lines[first.lineno - 2]))
        calls = tuple(self._calls(expressions))
        repeats = _repeats(expressions)
        return Unit(self._start(statement), end, blocks, calls, opens=True, repeats=repeats, turns=turns)

    def _definition(
        self, statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, blocks: tuple[int, ...]
    ) -> Unit:
        decorators = statement.decorator_list
        line = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        first = statement.body[0]
        last = max(statement.lineno, min(first.lineno - 1, _first_line(first) - 1))
        calls = [Called(_name(decorator), self._start(decorator), self._end(decorator)) for decorator in decorators]
        end = (last, len(self._lines[last - 1]))
        if isinstance(statement, ast.ClassDef):
            calls.append(Called(statement.name, (line, 0), end))
        return Unit((line, 0), end, blocks, tuple(calls))

    def _calls(self, nodes: Sequence[ast.AST]) -> Iterator[Called]:
        for node in nodes:
            for child in ast.walk(node):
                if isinstance(child, ast.Call):
                    yield Called(_name(child.func), self._start(child), self._end(child))

    def _start(self, node: ast.stmt | ast.expr) -> Position:
        return node.lineno, self._column(node.lineno, node.col_offset)

    def _end(self, node: ast.stmt | ast.expr) -> Position:
        line = node.end_lineno or node.lineno
        return line, self._column(line, node.end_col_offset or 0)

    def _column(self, line: int, offset: int) -> int:
        """Characters from the offset in UTF-8 bytes that the parser counts."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))


def _below(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement, in order."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        for part in [getattr(statement, field, None)]:
            if not isinstance(part, list) or not part:
                continue
            if isinstance(part[0], ast.stmt):
                yield part
            else:  # except and case clauses
                yield from (clause.body for clause in part)


def _expressions(nodes: Sequence[ast.expr | ast.withitem]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.withitem):
            yield from (node.context_expr, *([node.optional_vars] if node.optional_vars is not None else []))
        else:
            yield node


def _parameters(definition: ast.AST) -> frozenset[str]:
    arguments = getattr(definition, "args", None)
    return frozenset(child.arg for child in ast.walk(arguments) if isinstance(child, ast.arg)) if arguments else _NONE


_NONE: frozenset[str] = frozenset()


def _repeats(nodes: Sequence[ast.AST]) -> bool:
    kinds = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda
    return any(isinstance(child, kinds) for node in nodes for child in ast.walk(node))


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _name(called: ast.expr) -> str:
    match called:
        case ast.Name():
            return called.id
        case ast.Attribute():
            return called.attr
        case ast.Call():
            return _name(called.func)
        case _:
            return ""
