"""Compile the user's source with taps around its expressions.

A tap is a call of one of ours around a value that the program has just computed: `f(x)` becomes
`tap(17, f(x), x)`. It runs after the operation and hands the value on, so while the user's or the engine's
code runs nothing of ours is on the stack: tracebacks, warnings' stack levels and frame depths stay as they
are. Every new node carries the position of the expression that it wraps, so line numbers and carets stay too.

The tap itself is a constant of the code object (not a global name), so `globals()`, `dir()` and pickled
names do not change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any, Protocol, TypeVar

import msgspec

from whygrad.execute.expressions import ASSERTION_ERROR, MARK
from whygrad.execute.heap import uncollected
from whygrad.execute.silence import silent_compiler
from whygrad.execute.sites import SiteTable, SourceFile
from whygrad.execute.statements import Statements

T = TypeVar("T")


class Taps(Protocol):
    """What instrumented code reports, and to whom. Each returns its value unchanged."""

    def value(self, site: int, value: T, *names: Any) -> T:
        """An expression gave `value`; `names` are the values of its operands that are plain names."""

    def bound(self, site: int, value: T, *names: Any) -> T:
        """As `value`, of an expression whose value a statement gives a name."""

    def look(self, site: int, value: T) -> T:
        """An attribute or a name was read as an operand, or is about to be bound to a name."""

    def names(self, site: int, *values: Any) -> None:
        """Names were bound by unpacking, by a loop or by `with ... as`."""

    def base(self, site: int, value: T) -> T:
        """`value` is about to be written through (`value.grad = ...`, `value[...] = ...`, `value.data.add_()`)."""

    def wrote(self, site: int, value: Any = None, *names: Any) -> Any:
        """The write announced by `base` is done; `names` are the values of its operands that are plain names."""

    def updated(self, site: int, value: Any, *names: Any) -> None:
        """`name op= ...` is done; `value` is what the name holds now."""

    def side(self, site: int, index: int, value: T) -> T:
        """Part `index` of an assertion was evaluated."""

    def check(self, site: int, held: bool) -> bool:
        """An assertion's condition was evaluated."""

    def caught(self, site: int) -> None:
        """An exception handler of the user's begins."""


TAPS = ("value", "bound", "look", "names", "base", "wrote", "updated", "side", "check", "caught")


class Compiled(msgspec.Struct, frozen=True):
    """The instrumented code of a file, and the same code as Python alone would compile it."""

    instrumented: CodeType
    plain: CodeType


def instrument(
    source: str | bytes,
    path: str,
    table: SiteTable,
    taps: Taps,
    edit: Callable[[ast.Module], None] | None = None,
) -> Compiled:
    """Compile `source` twice, plain and with taps that report to `taps`. `edit` may change the parsed tree first.

    Raises SyntaxError where Python would. Warnings of the compiler are given once, as by Python.
    """
    with uncollected():
        return _instrumented(source, path, table, taps, edit)


def _instrumented(
    source: str | bytes,
    path: str,
    table: SiteTable,
    taps: Taps,
    edit: Callable[[ast.Module], None] | None,
) -> Compiled:
    tree = compile(source, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    if edit is not None:
        edit(tree)
    plain = compile(tree, path, "exec", dont_inherit=True)
    text = source if isinstance(source, str) else _decode(source)
    table.files[path] = file = SourceFile(path, text, text.splitlines() or [""])
    Statements(tree, file, table).run()
    with silent_compiler():
        marked = compile(tree, path, "exec", dont_inherit=True)
    calls: dict[str, Any] = {MARK + name: getattr(taps, name) for name in TAPS}
    calls[MARK + ASSERTION_ERROR] = AssertionError
    instrumented = _bind(marked, plain, calls, table)
    return Compiled(instrumented, plain)


def _bind(code: CodeType, plain: CodeType, calls: dict[str, Any], table: SiteTable) -> CodeType:
    """`code` with the marks in its constants replaced by the taps, in nested code too; `plain` is its twin."""
    twins = iter([const for const in plain.co_consts if isinstance(const, CodeType)])
    consts: list[Any] = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            consts.append(_bind(const, next(twins, const), calls, table))
        else:
            consts.append(calls.get(const, const) if type(const) is str else const)
    bound = code.replace(co_consts=tuple(consts))
    if plain.co_name == code.co_name and plain.co_firstlineno == code.co_firstlineno:
        table.plain[bound] = plain
    return bound


def _decode(source: bytes) -> str:
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return io.TextIOWrapper(io.BytesIO(source), encoding, line_buffering=True).read()
