"""Put calls of ours at the entry and the exits of one of torch's own Python functions, without a wrapper.

The function's source is compiled again with the calls inside, at its own file name and line numbers, and the
new code object takes the place of the old one in the same function object. So no frame, no attribute and no
line of a traceback differs from the bare program. `restore` puts the old code back.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

from whygrad.execute.heap import uncollected
from whygrad.execute.silence import silent_compiler

_MARK = "\0whygrad.probe."
_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag

Before = Callable[..., None]
After = Callable[[Any], Any]
Failed = Callable[[], None]


class ProbeError(Exception):
    """The function cannot be probed: its source is not there or does not compile to the same shape."""


class Probes:
    """The probes of one run."""

    def __init__(self) -> None:
        self._originals: list[tuple[FunctionType, CodeType]] = []
        self._resting: list[tuple[FunctionType, CodeType, CodeType]] = []

    def add(self, function: Any, *, before: Before, after: After, failed: Failed, rests: bool = False) -> None:
        """Have `before` called with the function's arguments, in order, then `after(result) -> result` or `failed()`.

        For a decorated function the innermost one is probed. One that `rests` may be put aside. Raises ProbeError.
        """
        target = inspect.unwrap(function)
        target = getattr(target, "__func__", target)
        if not isinstance(target, FunctionType):
            raise ProbeError(f"{function!r} is not a Python function")
        with uncollected():
            code = _probed(target.__code__, {"before": before, "after": after, "failed": failed})
        self._originals.append((target, target.__code__))
        if rests:
            self._resting.append((target, target.__code__, code))
        target.__code__ = code

    def rest(self, awake: bool) -> None:
        """Put the probes that may rest aside, or back."""
        for function, original, probed in self._resting:
            function.__code__ = probed if awake else original

    def restore(self, keep: tuple[Any, ...] = ()) -> None:
        """Put every function back as it was, but for those in `keep`."""
        kept = []
        self._resting.clear()
        while self._originals:
            function, code = self._originals.pop()
            if function in keep:
                kept.append((function, code))
            else:
                function.__code__ = code
        self._originals.extend(kept)


def _probed(code: CodeType, calls: dict[str, Callable[..., Any]]) -> CodeType:
    definition = _definition(code)
    _insert(definition)
    free = code.co_freevars
    shell: list[ast.stmt] = [definition]
    if "__class__" in free:
        shell = [_like(ast.ClassDef("_", [], [], shell, [], **_type_params()), definition)]
    if code.co_name not in free:
        shell = [_like(ast.Global([code.co_name]), definition), *shell]
    names = [name for name in free if name != "__class__"]
    arguments = ast.arguments([], [_like(ast.arg(name), definition) for name in names], None, [], [], None, [])
    enclosing = _like(ast.FunctionDef("_", arguments, shell, [], None, **_type_params()), definition)
    module = ast.Module([enclosing], [])
    with silent_compiler():
        compiled = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURES, dont_inherit=True)
    found = _find(compiled, code.co_name)
    if found is None or found.co_freevars != free:
        raise ProbeError(f"{code.co_name} does not compile to the same variables")
    marks: dict[str, Any] = {_MARK + name: call for name, call in calls.items()}
    consts = tuple(marks.get(const, const) if type(const) is str else const for const in found.co_consts)
    changes: dict[str, Any] = {"co_consts": consts, "co_firstlineno": code.co_firstlineno}
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = code.co_qualname
    return found.replace(**changes)


def _definition(code: CodeType) -> ast.FunctionDef:
    """The tree of the function that was compiled to `code`, at its lines in the file."""
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    if not lines:
        raise ProbeError(f"the source of {code.co_name} is not there")
    margin = _margin(lines[0])
    above = "\n" * (code.co_firstlineno - 1)
    if margin:
        above = above[:-1] + "if 1:\n"
    for count in _ends(lines, margin):
        with suppress(SyntaxError), silent_compiler():
            statement = ast.parse(above + "".join(lines[:count])).body[0]
            definition = statement.body[0] if isinstance(statement, ast.If) else statement
            if isinstance(definition, ast.FunctionDef) and definition.name == code.co_name:
                return definition
            break
    raise ProbeError(f"the source of {code.co_name} is not where it should be")


def _ends(lines: list[str], margin: int) -> Iterator[int]:
    """After how many lines the definition that begins with the first may be over.

    A line that stands no deeper may end it. If it is inside brackets or a string, what comes before is no
    whole definition: then a later line does.
    """
    for count, line in enumerate(lines):
        if count and not line.isspace() and line.lstrip()[0] != "#" and _margin(line) <= margin:
            yield count
    yield len(lines)


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _type_params() -> dict[str, Any]:
    return {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}


def _insert(definition: ast.FunctionDef) -> None:
    """Enter and leave calls; a `try` whose handler raises again adds nothing to a traceback."""
    definition.decorator_list = [_like(ast.Constant(None), first) for first in definition.decorator_list[:1]]
    definition.returns = None
    given = definition.args
    arguments = [*given.posonlyargs, *given.args]
    if given.vararg:
        arguments.append(given.vararg)
    arguments.extend(given.kwonlyargs)
    if given.kwarg:
        arguments.append(given.kwarg)
    for argument in arguments:
        argument.annotation = None
    given.defaults = [_like(ast.Constant(None), default) for default in given.defaults]
    given.kw_defaults = [default and _like(ast.Constant(None), default) for default in given.kw_defaults]
    body = definition.body
    first = body[0]
    documented = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    head, rest = (body[:1], body[1:]) if documented else ([], body)
    at = rest[0] if rest else first
    last = rest[-1] if rest else first
    _report_returns(rest)
    enter = _call("before", [ast.Name(argument.arg, ast.Load()) for argument in arguments], at)
    leave = _call("after", [ast.Constant(None)], last)
    handler = ast.ExceptHandler(
        _like(ast.Name("BaseException", ast.Load()), last),
        None,
        [_statement(_call("failed", [], last), last), _like(ast.Raise(), last)],
    )
    guarded = ast.Try([*rest, _statement(leave, last)], [_like(handler, last)], [], [])
    definition.body = [*head, _statement(enter, at), _like(guarded, at)]


def _report_returns(body: Sequence[ast.stmt]) -> None:
    """Wraps what the function itself returns (not what functions inside it return)."""
    for statement in body:
        if isinstance(statement, ast.Return):
            value = statement.value or _like(ast.Constant(None), statement)
            statement.value = _call("after", [value], value)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                _report_returns(getattr(statement, name, ()))
            for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                _report_returns(part.body)


def _call(mark: str, arguments: list[ast.expr], at: ast.AST) -> Any:
    return _like(ast.Call(_like(ast.Constant(_MARK + mark), at), [_like(a, at) for a in arguments], []), at)


def _statement(call: ast.Call, at: ast.AST) -> Any:
    return _like(ast.Expr(call), at)


def _like(node: Any, at: Any) -> Any:
    if not hasattr(node, "lineno"):
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            setattr(node, name, getattr(at, name))
    return node


def _find(code: CodeType, name: str) -> CodeType | None:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_name == name:
                return const
            found = _find(const, name)
            if found is not None:
                return found
    return None
