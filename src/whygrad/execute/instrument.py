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
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Protocol, TypeVar

from whygrad.execute.sites import (
    Child,
    Constant,
    OperandForm,
    Passed,
    Place,
    Several,
    SiteTable,
    SourceFile,
    Statement,
    Unknown,
    segment,
)

T = TypeVar("T")


class Taps(Protocol):
    """What instrumented code reports, and to whom. Each returns its value unchanged."""

    def value(self, site: int, value: T, *names: Any) -> T:
        """An expression gave `value`; `names` are the values of its operands that are plain names."""

    def look(self, site: int, value: T) -> T:
        """An attribute or a name was read as an operand, or is about to be bound to a name."""

    def names(self, site: int, *values: Any) -> None:
        """Names were bound by unpacking, by a loop or by `with ... as`."""

    def base(self, site: int, value: T) -> T:
        """`value` is about to be written through (`value.grad = ...`, `value[...] = ...`, `value.data.add_()`)."""

    def wrote(self, site: int, value: T = ...) -> T:  # type: ignore[assignment]
        """The write announced by `base` is done."""

    def updated(self, site: int, value: Any, *names: Any) -> None:
        """`name op= ...` is done; `value` is what the name holds now."""

    def side(self, site: int, index: int, value: T) -> T:
        """Part `index` of an assertion was evaluated."""

    def check(self, site: int, held: bool) -> bool:
        """An assertion's condition was evaluated."""

    def caught(self, site: int) -> None:
        """An exception handler of the user's begins."""


TAPS = ("value", "look", "names", "base", "wrote", "updated", "side", "check", "caught")
_MARK = "\0whygrad."

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
COMPARE = {ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne"}

VALUE_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
"""Attributes of a tensor that give another tensor."""

WRITTEN_ATTRIBUTES = frozenset({"grad", "data", "requires_grad", "training", "require_grad", "requires_gradient"})
"""Attributes whose assignment means something to a gradient, with the misspellings people make."""

PLAIN_BUILTINS = frozenset(
    "print range len isinstance issubclass zip enumerate open str repr super type hasattr setattr delattr sorted "
    "dict set frozenset format id iter callable chr ord hex oct bin input vars dir globals locals exec eval "
    "staticmethod classmethod property slice round divmod hash any all reversed".split()
)
"""Builtins that give no tensor: their calls get no tap (their arguments do)."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The instrumented code of a file, and the same code as Python alone would compile it."""

    instrumented: CodeType
    plain: CodeType


def instrument(
    source: str | bytes,
    path: str,
    table: SiteTable,
    taps: Taps,
    *,
    dont_inherit: bool = True,
    tree: ast.Module | None = None,
) -> Compiled:
    """Compile `source` twice, plain and with taps that report to `taps`.

    Raises SyntaxError where Python would. Warnings of the compiler are given once, as by Python.
    """
    if tree is None:
        tree = compile(source, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=dont_inherit)
    plain = compile(tree, path, "exec", dont_inherit=dont_inherit)
    text = source if isinstance(source, str) else _decode(source)
    table.files[path] = file = SourceFile(path, text, text.splitlines() or [""])
    _Transformer(tree, file, table).run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        marked = compile(tree, path, "exec", dont_inherit=dont_inherit)
    calls = {_MARK + name: getattr(taps, name) for name in TAPS}
    instrumented = _bind(marked, plain, calls, table)
    return Compiled(instrumented, plain)


def _bind(code: CodeType, plain: CodeType, calls: dict[str, Callable[..., Any]], table: SiteTable) -> CodeType:
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


class _Transformer:
    """Rewrites one file's tree in place."""

    def __init__(self, tree: ast.Module, file: SourceFile, table: SiteTable) -> None:
        self.tree = tree
        self.file = file
        self.table = table
        self.scope: list[str] = []
        self.imported: dict[str, str] = {}
        self.deleted: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname:
                        self.imported[alias.asname] = alias.name
                    else:
                        root = alias.name.split(".")[0]
                        self.imported[root] = root
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    module = "." * node.level + (node.module or "")
                    self.imported[alias.asname or alias.name] = f"{module}.{alias.name}"
            elif isinstance(node, ast.Delete):
                self.deleted.update(target.id for target in node.targets if isinstance(target, ast.Name))

    def run(self) -> None:
        self.tree.body = self.block(self.tree.body, docstring=True)
        ast.fix_missing_locations(self.tree)

    # --- statements -------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt], docstring: bool = False) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for position, statement in enumerate(body):
            leading = docstring and position == 0 and _is_text(statement)
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            if leading or future:
                done.append(statement)
            else:
                done.extend(self.statement(statement))
        return done

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        self.remember(node)
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is not None:
            return method(node)  # type: ignore[no-any-return]
        self.descend(node)
        return [node]

    def remember(self, node: ast.stmt) -> None:
        """Note the statement's span; of a compound statement only the header."""
        end_line, end_column = _end(node)
        body = getattr(node, "body", None)
        if isinstance(body, list) and body:
            end_line = max(node.lineno, min(end_line, body[0].lineno - 1))
            end_column = len(self.file.lines[end_line - 1]) if end_line <= len(self.file.lines) else end_column
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                and body[0].lineno == node.lineno
            ):
                end_column = self.column(body[0].lineno, body[0].col_offset)
        self.file.statements.append(
            Statement(
                node.lineno,
                self.column(node.lineno, node.col_offset),
                end_line,
                self.column(end_line, end_column),
                self.function,
            )
        )

    def descend(self, node: ast.AST) -> None:
        """Rewrite the expressions of a statement and the statements inside it."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    setattr(node, name, self.block(value))
                else:
                    setattr(node, name, [self.part(item) for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.part(value))

    def part(self, item: Any) -> Any:
        if isinstance(item, ast.expr):
            return self.expression(item)
        if isinstance(item, ast.AST) and not isinstance(item, ast.expr_context | ast.operator):
            self.descend(item)
        return item

    def on_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:  # noqa: N802
        self.scope.append(node.name)
        node.body = self.block(node.body, docstring=True)
        self.scope.pop()
        return [node]

    on_AsyncFunctionDef = on_FunctionDef  # noqa: N815

    def on_ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:  # noqa: N802
        self.scope.append(node.name)
        node.body = self.block(node.body, docstring=True)
        self.scope.pop()
        return [node]

    def on_Assign(self, node: ast.Assign) -> list[ast.stmt]:  # noqa: N802
        written = [target for target in node.targets if self.is_write(target)]
        targets = tuple(self.text(target) for target in node.targets if self.nameable(target))
        node.value = self.bound(node.value, targets)
        after: list[ast.stmt] = []
        if len(node.targets) == 1 and written:
            after.append(self.write(node, written[0]))
        else:
            for target in node.targets:
                self.target(target)
        for target in node.targets:
            after.extend(self.unpacked(target, node))
        return [node, *after]

    def on_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:  # noqa: N802
        if node.value is not None:
            targets = (self.text(node.target),) if self.nameable(node.target) else ()
            node.value = self.bound(node.value, targets)
        return [node]

    def on_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:  # noqa: N802
        place = self.place(node, operation=BINARY[type(node.op)] + "_")
        if isinstance(node.target, ast.Name):
            operand, names = self.operand(node.value)
            node.value = self.expression(node.value) if operand is None else node.value
            place.operands = (OperandForm(Unknown(), code=node.target.id), *((operand,) if operand else ()))
            site = self.table.add(place)
            reload = ast.Name(node.target.id, ast.Load())
            return [node, self.report("updated", site, reload, *names, at=node)]
        node.value = self.expression(node.value)
        return [node, self.write(node, node.target, place)]

    def on_Assert(self, node: ast.Assert) -> list[ast.stmt]:  # noqa: N802
        place = self.place(node, node.test)
        site = self.table.add(place)
        sides: list[str] = []
        test = self.sided(node.test, site, sides)
        place.sides = tuple(sides)
        once = _at(ast.UnaryOp(ast.Not(), _at(ast.UnaryOp(ast.Not(), test), node.test)), node.test)
        node.test = self.call("check", site, once, at=node.test)
        if node.msg is not None:
            node.msg = self.expression(node.msg)
        return [node]

    def on_For(self, node: ast.For | ast.AsyncFor) -> list[ast.stmt]:  # noqa: N802
        node.iter = self.expression(node.iter)
        node.body = [*self.unpacked(node.target, node, always=True), *self.block(node.body)]
        node.orelse = self.block(node.orelse)
        return [node]

    on_AsyncFor = on_For  # noqa: N815

    def on_With(self, node: ast.With | ast.AsyncWith) -> list[ast.stmt]:  # noqa: N802
        named: list[ast.stmt] = []
        for item in node.items:
            item.context_expr = self.expression(item.context_expr)
            if item.optional_vars is not None:
                named.extend(self.unpacked(item.optional_vars, node, always=True))
        node.body = [*named, *self.block(node.body)]
        return [node]

    on_AsyncWith = on_With  # noqa: N815

    def on_Try(self, node: ast.Try) -> list[ast.stmt]:  # noqa: N802
        node.body = self.block(node.body)
        for handler in node.handlers:
            site = self.table.add(self.handler_place(handler))
            handler.body = [self.report("caught", site, at=handler), *self.block(handler.body)]
        node.orelse = self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        return [node]

    def on_Delete(self, node: ast.Delete) -> list[ast.stmt]:  # noqa: N802
        return [node]

    def on_Match(self, node: ast.Match) -> list[ast.stmt]:  # noqa: N802
        node.subject = self.expression(node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = self.expression(case.guard)
            case.body = self.block(case.body)
        return [node]

    def on_TypeAlias(self, node: ast.stmt) -> list[ast.stmt]:  # noqa: N802
        return [node]

    # --- targets ----------------------------------------------------------------------------------

    def nameable(self, target: ast.expr) -> bool:
        """Whether a reader would call the value by this target's text."""
        if isinstance(target, ast.Name):
            return True
        if isinstance(target, ast.Attribute):
            return target.attr not in WRITTEN_ATTRIBUTES and _is_chain(target)
        return isinstance(target, ast.Subscript) and _is_chain(target.value) and isinstance(target.slice, ast.Constant)

    def is_write(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Attribute):
            return target.attr in WRITTEN_ATTRIBUTES
        return isinstance(target, ast.Subscript)

    def write(self, node: ast.stmt, target: ast.expr, place: Place | None = None) -> ast.stmt:
        """Announce a write through an attribute or an item, and report when it is done."""
        place = place or self.place(node)
        assert isinstance(target, ast.Attribute | ast.Subscript)
        owner = target.value
        place.item = isinstance(target, ast.Subscript)
        place.attribute = "" if place.item else target.attr  # type: ignore[union-attr]
        if isinstance(owner, ast.Attribute) and owner.attr in ("data", "grad") and _is_chain(owner.value):
            # `w.data[...] = `, `w.grad.data = `: the buffer's owner is what a reader asks about
            place.attribute = owner.attr
            site = self.table.add(place)
            owner.value = self.call("base", site, self.expression(owner.value), at=owner.value)
        else:
            site = self.table.add(place)
            target.value = self.call("base", site, self.expression(owner), at=owner)
        if isinstance(target, ast.Subscript):
            target.slice = self.expression(target.slice)
        return self.report("wrote", site, at=node)

    def target(self, target: ast.expr) -> None:
        if isinstance(target, ast.Attribute | ast.Subscript):
            target.value = self.expression(target.value)
            if isinstance(target, ast.Subscript):
                target.slice = self.expression(target.slice)
        elif isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self.target(item)
        elif isinstance(target, ast.Starred):
            self.target(target.value)

    def unpacked(self, target: ast.expr, node: ast.stmt, always: bool = False) -> list[ast.stmt]:
        """Report the names that unpacking bound."""
        if isinstance(target, ast.Name):
            names = [target.id] if always else []
        elif isinstance(target, ast.Tuple | ast.List):
            names = [
                name.id for name in ast.walk(target) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            ]
        else:
            names = []
        names = [name for name in names if name != "_"]
        if not names:
            return []
        place = self.place(node)
        place.targets = tuple(names)
        site = self.table.add(place)
        return [self.report("names", site, *(ast.Name(name, ast.Load()) for name in names), at=target)]

    # --- expressions ------------------------------------------------------------------------------

    def bound(self, node: ast.expr, targets: tuple[str, ...]) -> ast.expr:
        """An expression whose value is about to get names."""
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.Lambda):
            return node
        before = len(self.table.places)
        done = self.expression(node)
        site = _tap_site(done)
        if site is not None and site >= before:
            self.table.places[site].targets = targets
            return done
        if not targets or isinstance(node, ast.Tuple):
            return done
        place = self.place(node)
        place.targets = targets
        return self.call("look", self.table.add(place), done, at=node)

    def expression(self, node: ast.expr) -> ast.expr:
        method = getattr(self, f"see_{type(node).__name__}", None)
        if method is not None:
            return method(node)  # type: ignore[no-any-return]
        if isinstance(node, ast.JoinedStr | ast.Constant | ast.Name) or type(node).__name__ == "TemplateStr":
            return node
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [self.inner(item) for item in value])
            else:
                setattr(node, name, self.inner(value))
        return node

    def inner(self, item: Any) -> Any:
        if isinstance(item, ast.expr):
            return self.expression(item)
        if isinstance(item, ast.comprehension):
            item.iter = self.expression(item.iter)
            item.ifs = [self.expression(test) for test in item.ifs]
        elif isinstance(item, ast.keyword):
            item.value = self.expression(item.value)
        return item

    def see_Lambda(self, node: ast.Lambda) -> ast.expr:  # noqa: N802
        self.scope.append("<lambda>")
        node.body = self.expression(node.body)
        self.scope.pop()
        return node

    def see_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        function = node.func
        if isinstance(function, ast.Name) and function.id in PLAIN_BUILTINS:
            node.args = [self.expression(argument) for argument in node.args]
            for keyword in node.keywords:
                keyword.value = self.expression(keyword.value)
            return node
        buffer = self.buffer_method(node)
        if buffer is not None:
            return buffer
        place = self.place(node, operation="call")
        names: list[ast.expr] = []
        operands: list[OperandForm] = []
        dotted = self.dotted(function)
        if dotted is not None:
            place.operation = dotted
        elif isinstance(function, ast.Attribute):
            place.operation = function.attr
            place.method = True
            function.value = self.collect(function.value, operands, names)
        else:
            node.func = self.expression(function)
        for position, argument in enumerate(node.args):
            node.args[position] = self.collect(argument, operands, names)
        for keyword in node.keywords:
            keyword.value = self.collect(keyword.value, operands, names, keyword.arg or "**")
        place.operands = tuple(operands)
        return self.call("value", self.table.add(place), node, *names, at=node)

    def buffer_method(self, node: ast.Call) -> ast.expr | None:
        """`w.grad.zero_()`, `w.data.mul_(0.9)`: a write through a buffer of `w`."""
        function = node.func
        if not (
            isinstance(function, ast.Attribute)
            and function.attr.endswith("_")
            and not function.attr.endswith("__")
            and isinstance(function.value, ast.Attribute)
            and function.value.attr in ("grad", "data")
        ):
            return None
        place = self.place(node, operation=function.attr, method=True)
        place.attribute = function.value.attr
        site = self.table.add(place)
        owner = function.value
        owner.value = self.call("base", site, self.expression(owner.value), at=owner.value)
        node.args = [self.expression(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.expression(keyword.value)
        return self.call("wrote", site, node, at=node)

    def see_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802
        if any(isinstance(side, ast.JoinedStr) or _is_text_value(side) for side in (node.left, node.right)):
            node.left, node.right = self.expression(node.left), self.expression(node.right)
            return node
        if _is_constant(node.left) and _is_constant(node.right):
            return node
        place = self.place(node, operation=BINARY[type(node.op)])
        names: list[ast.expr] = []
        operands: list[OperandForm] = []
        node.left = self.collect(node.left, operands, names)
        node.right = self.collect(node.right, operands, names)
        place.operands = tuple(operands)
        return self.call("value", self.table.add(place), node, *names, at=node)

    def see_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        if isinstance(node.op, ast.Not) or _is_constant(node.operand):
            node.operand = self.expression(node.operand)
            return node
        place = self.place(node, operation=UNARY[type(node.op)])
        names: list[ast.expr] = []
        operands: list[OperandForm] = []
        node.operand = self.collect(node.operand, operands, names)
        place.operands = tuple(operands)
        return self.call("value", self.table.add(place), node, *names, at=node)

    def see_Compare(self, node: ast.Compare) -> ast.expr:  # noqa: N802
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARE:
            node.left = self.expression(node.left)
            node.comparators = [self.expression(item) for item in node.comparators]
            return node
        place = self.place(node, operation=COMPARE[type(node.ops[0])])
        names: list[ast.expr] = []
        operands: list[OperandForm] = []
        node.left = self.collect(node.left, operands, names)
        node.comparators = [self.collect(node.comparators[0], operands, names)]
        place.operands = tuple(operands)
        return self.call("value", self.table.add(place), node, *names, at=node)

    def see_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        if not isinstance(node.ctx, ast.Load):
            return node
        place = self.place(node, operation="getitem")
        names: list[ast.expr] = []
        operands: list[OperandForm] = []
        node.value = self.collect(node.value, operands, names)
        node.slice = self.collect(node.slice, operands, names)
        place.operands = tuple(operands)
        return self.call("value", self.table.add(place), node, *names, at=node)

    def see_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802
        if not isinstance(node.ctx, ast.Load) or self.dotted(node) is not None:
            return node
        if node.attr not in VALUE_ATTRIBUTES:
            node.value = self.expression(node.value)
            return node
        place = self.place(node, operation=node.attr, method=True)
        names: list[ast.expr] = []
        operands: list[OperandForm] = []
        node.value = self.collect(node.value, operands, names)
        place.operands = tuple(operands)
        return self.call("value", self.table.add(place), node, *names, at=node)

    def see_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:  # noqa: N802
        node.value = self.bound(node.value, (node.target.id,))
        return node

    # --- operands ---------------------------------------------------------------------------------

    def collect(
        self, node: ast.expr, operands: list[OperandForm], names: list[ast.expr], keyword: str = ""
    ) -> ast.expr:
        """Note `node` as an operand; returns the expression to put in its place."""
        code = self.text(node)
        form, done = self.form(node, names)
        operands.append(OperandForm(form, keyword, code))
        return done

    def form(self, node: ast.expr, names: list[ast.expr]) -> tuple[Any, ast.expr]:
        if isinstance(node, ast.Constant):
            return (Constant(node.value) if node.value is not ... else Several("ellipsis", ())), node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _is_number(node.operand):
            return Constant(-node.operand.value), node  # type: ignore[attr-defined]
        if isinstance(node, ast.Name):
            if node.id in self.deleted or node.id in ("super", "__class__"):
                return Unknown(), node
            names.append(ast.Name(node.id, ast.Load()))
            return Passed(len(names) - 1), node
        if isinstance(node, ast.List | ast.Tuple):
            items = []
            for position, item in enumerate(node.elts):
                code = self.text(item)
                form, node.elts[position] = self.form(item, names)
                items.append(OperandForm(form, code=code))
            return Several("list" if isinstance(node, ast.List) else "tuple", tuple(items)), node
        if isinstance(node, ast.Slice):
            items = []
            for name in ("lower", "upper", "step"):
                bound = getattr(node, name)
                if bound is None:
                    items.append(OperandForm(Constant(None)))
                else:
                    form, done = self.form(bound, names)
                    setattr(node, name, done)
                    items.append(OperandForm(form))
            return Several("slice", tuple(items)), node
        done = self.expression(node)
        site = _tap_site(done)
        if site is not None:
            return Child(site), done
        if (
            isinstance(node, ast.Attribute | ast.IfExp | ast.NamedExpr | ast.BoolOp | ast.Await)
            and self.dotted(node) is None
        ):
            site = self.table.add(self.place(node))
            return Child(site), self.call("look", site, done, at=node)
        return Unknown(), done

    def operand(self, node: ast.expr) -> tuple[OperandForm | None, list[ast.expr]]:
        """A right-hand side that is a name or a literal, without touching it."""
        if isinstance(node, ast.Name | ast.Constant):
            names: list[ast.expr] = []
            form, _ = self.form(node, names)
            return OperandForm(form, code=self.text(node)), names
        return None, []

    def dotted(self, node: ast.expr) -> str | None:
        """The full name behind a name or attribute chain that starts at an import (`F.relu`), else None."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.imported:
            return None
        return ".".join([self.imported[node.id], *reversed(parts)])

    def sided(self, node: ast.expr, site: int, sides: list[str]) -> ast.expr:
        """An assertion's condition with a tap on each part whose value explains the outcome."""
        if isinstance(node, ast.BoolOp):
            node.values = [self.sided(value, site, sides) for value in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.sided(node.operand, site, sides)
            return node
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            node.left = self.side(node.left, site, sides)
            node.comparators = [self.side(node.comparators[0], site, sides)]
            return node
        return self.side(node, site, sides)

    def side(self, node: ast.expr, site: int, sides: list[str]) -> ast.expr:
        if _is_constant(node):
            return node
        index = len(sides)
        sides.append(self.text(node))
        return self.call("side", site, _at(ast.Constant(index), node), self.expression(node), at=node)

    # --- building ---------------------------------------------------------------------------------

    def call(self, tap: str, site: int, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        marked = _at(ast.Constant(_MARK + tap), at)
        return _at(ast.Call(marked, [_at(ast.Constant(site), at), *(_at(a, at) for a in arguments)], []), at)

    def report(self, tap: str, site: int, *arguments: ast.expr, at: ast.AST) -> ast.stmt:
        return _at(ast.Expr(self.call(tap, site, *arguments, at=at)), at)

    def place(self, node: ast.AST, span: ast.expr | None = None, *, operation: str = "", method: bool = False) -> Place:
        start = span or node
        line, column = start.lineno, start.col_offset  # type: ignore[attr-defined]
        end_line, end_column = _end(start)
        if isinstance(node, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith) and span is None:
            end_line, end_column = line, len(self.file.lines[line - 1].encode())
        column, end_column = self.column(line, column), self.column(end_line, end_column)
        code = segment(self.file.lines, line, column, end_line, end_column)
        return Place(self.file.path, line, column, end_line, end_column, self.function, code, operation, method)

    def handler_place(self, handler: ast.ExceptHandler) -> Place:
        line = handler.lineno
        column = self.column(line, handler.col_offset)
        text = self.file.lines[line - 1]
        return Place(self.file.path, line, column, line, len(text), self.function, text[column:].strip())

    def column(self, line: int, offset: int) -> int:
        return self.file.column(line, offset)

    def text(self, node: ast.expr) -> str:
        if not hasattr(node, "lineno"):
            return ""
        end_line, end_column = _end(node)
        line = node.lineno
        return segment(
            self.file.lines, line, self.column(line, node.col_offset), end_line, self.column(end_line, end_column)
        )

    @property
    def function(self) -> str:
        return ".".join(self.scope) or "<module>"


N = TypeVar("N", bound=ast.AST)


def _at(node: N, place: ast.AST) -> N:
    """`node` at the position of `place`, unless it has one of its own."""
    if not hasattr(node, "lineno"):
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            setattr(node, name, getattr(place, name))
    return node


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def _tap_site(node: ast.expr) -> int | None:
    """The site of the tap that `node` is, if it is one."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Constant)
        and isinstance(node.func.value, str)
        and node.func.value in (_MARK + "value", _MARK + "look", _MARK + "wrote")
    ):
        site = node.args[0]
        assert isinstance(site, ast.Constant)
        return int(site.value)
    return None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _is_text_value(node.value)


def _is_text_value(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_constant(node.operand))


def _is_chain(node: ast.expr) -> bool:
    """Whether `node` is a name, or attributes of a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
