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
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

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
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise ProbeError(f"the source of {code.co_name} is not there")
    block = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
    tree = ast.parse("if 1:\n" + block if block[0].isspace() else block)
    ast.increment_lineno(tree, code.co_firstlineno - 1 - (1 if block[0].isspace() else 0))
    outer = tree.body[0]
    definition = outer.body[0] if isinstance(outer, ast.If) else outer
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        raise ProbeError(f"the source of {code.co_name} is not where it should be")
    _insert(definition)
    free = code.co_freevars
    shell: list[ast.stmt] = [definition]
    if "__class__" in free:
        shell = [_like(ast.ClassDef("_", [], [], shell, [], **_type_params()), definition)]
    if code.co_name not in free:
        shell = [ast.Global([code.co_name]), *shell]
    names = [name for name in free if name != "__class__"]
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    enclosing = _like(ast.FunctionDef("_", arguments, shell, [], None, **_type_params()), definition)
    module = ast.fix_missing_locations(ast.Module([enclosing], []))
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
    _Returns().visit_body(rest)
    enter = _call("before", [ast.Name(argument.arg, ast.Load()) for argument in arguments], at)
    leave = _call("after", [ast.Constant(None)], last)
    handler = ast.ExceptHandler(
        ast.Name("BaseException", ast.Load()),
        None,
        [_statement(_call("failed", [], last), last), _like(ast.Raise(), last)],
    )
    guarded = ast.Try([*rest, _statement(leave, last)], [_like(handler, last)], [], [])
    definition.body = [*head, _statement(enter, at), _like(guarded, at)]


class _Returns(ast.NodeTransformer):
    """Wraps what the function itself returns (not what functions inside it return)."""

    def visit_body(self, body: list[ast.stmt]) -> None:
        for position, statement in enumerate(body):
            body[position] = self.visit(statement)

    def visit_Return(self, node: ast.Return) -> ast.Return:
        value = node.value or _like(ast.Constant(None), node)
        node.value = _call("after", [value], value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


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
