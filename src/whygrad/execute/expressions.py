"""Taps around expressions: which expressions get one, and how their operands will be known."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from whygrad.execute.conditions import decided_at
from whygrad.execute.sites import (
    Child,
    Constant,
    Form,
    OperandForm,
    Passed,
    Place,
    Several,
    SiteTable,
    SourceFile,
    Unknown,
    segment,
)

MARK = "\0whygrad."
"""Constants that start so stand for taps until the code is bound to them."""

DELETION = re.compile(r"\bdel +(\w+(?: *, *\w+)*)")
"""`del x, y` in a text that may be executed."""

ASSERTION_ERROR = "AssertionError"
"""Marked, it stands for the class, whatever the program calls by that name."""

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
COMPARE = {ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne"}

VALUE_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
"""Attributes of a tensor that give another tensor."""

PLAIN_BUILTINS = frozenset({
    "all", "any", "bin", "breakpoint", "callable", "chr", "classmethod", "delattr", "dict", "dir", "divmod",
    "enumerate", "eval", "exec", "format", "frozenset", "globals", "hasattr", "hash", "hex", "id", "input",
    "isinstance", "issubclass", "iter", "len", "locals", "oct", "open", "ord", "print", "property", "range", "repr",
    "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod", "str", "super", "type", "vars", "zip",
})  # fmt: skip
"""Builtins that give no tensor: their calls get no tap (their arguments do)."""

MEASURES = frozenset({"len", "ord", "round"})
"""Builtins that give a number which a tensor may meet."""

LOOKED_AT = (ast.Attribute, ast.IfExp, ast.NamedExpr, ast.BoolOp, ast.Await)
"""Operands that get a tap of their own, since no operation of theirs has one."""

NUMBERS = frozenset({"bool", "complex", "float", "int"})
"""Builtins that take a number out of a tensor."""


class Expressions:
    """Rewrites the expressions of one file."""

    def __init__(self, tree: ast.Module, file: SourceFile, table: SiteTable) -> None:
        self.tree = tree
        self.file = file
        self.table = table
        self.scope: list[str] = []
        self.rereads = True
        """Whether a tap may read the names of its operands once more."""
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
            else:
                self.deleted.update(deleted_names(node))

    @contextmanager
    def inside(self, name: str, rereads: bool) -> Iterator[None]:
        """In the body of a function or a class."""
        before, self.rereads = self.rereads, rereads
        self.scope.append(name)
        yield
        self.scope.pop()
        self.rereads = before

    # --- expressions ------------------------------------------------------------------------------

    def bound(self, node: ast.expr, targets: tuple[str, ...]) -> ast.expr:
        """An expression whose value is about to get names."""
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return node
        if isinstance(node, ast.Lambda):
            return self.expression(node)
        before = len(self.table.places)
        done = self.expression(node)
        site = tap_site(done)
        if site is not None and site >= before:
            self.table.places[site].targets = targets
            if targets and done.func.value == MARK + "value":  # type: ignore[attr-defined]
                done.func.value = MARK + "bound"  # type: ignore[attr-defined]
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
        with self.inside("<lambda>", rereads=True):
            node.body = self.expression(node.body)
        return node

    def see_IfExp(self, node: ast.IfExp) -> ast.expr:  # noqa: N802
        at = decided_at(node.test)
        done = ast.IfExp(self.expression(node.test), self.expression(node.body), self.expression(node.orelse))
        return located(done, node) if at is None else at.put(done)

    def see_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        function = node.func
        if (isinstance(function, ast.Name) and function.id in PLAIN_BUILTINS) or _starts_a_tracer(function):
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
        elif isinstance(function, ast.Name) and function.id in NUMBERS:
            place.operation = function.id
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
        if is_constant(node.left) and is_constant(node.right):
            return node
        place = self.place(node, operation=BINARY[type(node.op)])
        names: list[ast.expr] = []
        operands: list[OperandForm] = []
        node.left = self.collect(node.left, operands, names)
        node.right = self.collect(node.right, operands, names)
        place.operands = tuple(operands)
        return self.call("value", self.table.add(place), node, *names, at=node)

    def see_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        if isinstance(node.op, ast.Not) or is_constant(node.operand):
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
            if not self.rereads or node.id in self.deleted or node.id in ("super", "__class__"):
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
        site = tap_site(done)
        if site is not None:
            return Child(site), done
        if (isinstance(node, LOOKED_AT) and self.dotted(node) is None) or _gives_number(node):
            site = self.table.add(self.place(node))
            return Child(site), self.call("look", site, done, at=node)
        return Unknown(), done

    def seen(self, node: ast.expr, names: list[ast.expr]) -> Form:
        """How the value of an expression that has its taps already will be known."""
        site = tap_site(node)
        if site is not None:
            return Child(site)
        return self.form(node, names)[0] if isinstance(node, ast.Constant | ast.Name) else Unknown()

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
        if isinstance(node, ast.IfExp):
            node.test = self.expression(node.test)
            node.body = self.sided(node.body, site, sides)
            node.orelse = self.sided(node.orelse, site, sides)
            return node
        if isinstance(node, ast.Compare):
            node.left = self.side(node.left, site, sides)
            node.comparators = [self.side(item, site, sides) for item in node.comparators]
            return node
        return self.side(node, site, sides)

    def side(self, node: ast.expr, site: int, sides: list[str]) -> ast.expr:
        if is_constant(node):
            return node
        index = len(sides)
        sides.append(self.text(node))
        return self.call("side", site, located(ast.Constant(index), node), self.expression(node), at=node)

    # --- building ---------------------------------------------------------------------------------

    def call(self, tap: str, site: int, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        marked = located(ast.Constant(MARK + tap), at)
        return located(
            ast.Call(marked, [located(ast.Constant(site), at), *(located(a, at) for a in arguments)], []), at
        )

    def report(self, tap: str, site: int, *arguments: ast.expr, at: ast.AST) -> ast.stmt:
        return located(ast.Expr(self.call(tap, site, *arguments, at=at)), at)

    def place(self, node: ast.AST, span: ast.expr | None = None, *, operation: str = "", method: bool = False) -> Place:
        start = span or node
        line, column = start.lineno, start.col_offset  # type: ignore[attr-defined]
        end_line, end_column = end(start)
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
        end_line, end_column = end(node)
        line = node.lineno
        return segment(
            self.file.lines, line, self.column(line, node.col_offset), end_line, self.column(end_line, end_column)
        )

    @property
    def function(self) -> str:
        return ".".join(self.scope) or "<module>"


N = TypeVar("N", bound=ast.AST)


def located(node: N, place: ast.AST) -> N:
    """`node` at the position of `place`, unless it has one of its own."""
    if not hasattr(node, "lineno"):
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            setattr(node, name, getattr(place, name))
    return node


def end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def tap_site(node: ast.expr) -> int | None:
    """The site of the tap that `node` is, if it is one."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Constant)
        and isinstance(node.func.value, str)
        and node.func.value in (MARK + "value", MARK + "bound", MARK + "look", MARK + "wrote")
    ):
        site = node.args[0]
        assert isinstance(site, ast.Constant)
        assert isinstance(site.value, int)
        return site.value
    return None


def _gives_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MEASURES


def _starts_a_tracer(function: ast.expr) -> bool:
    """`pdb.set_trace()`, `sys.settrace(...)`: a tap after it would be the first thing that the tracer meets."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("set_trace", "settrace", "setprofile")


def deleted_names(node: ast.AST) -> set[str]:
    """Names that may be gone when an expression that used them is over, by `del` or behind the compiler's back.

    `del x`; `globals().pop("x")`, `del globals()["x"]`; `delattr(module, "x")`; `exec("del x")`.
    """
    if isinstance(node, ast.Delete):
        names = {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        items = (t for t in node.targets if isinstance(t, ast.Subscript) and _is_namespace(t.value))
        return names.union(*(_words(item.slice) for item in items))
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Name) and function.id == "delattr" and len(node.args) == 2:
            return _words(node.args[1])
        if isinstance(function, ast.Attribute) and node.args and _is_namespace(function.value):
            return _words(node.args[0]) if function.attr in ("pop", "__delitem__") else set()
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "del " in node.value:
        return {name for names in DELETION.findall(node.value) for name in re.findall(r"\w+", names)}
    return set()


def _is_namespace(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("globals", "vars", "locals")
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _words(node: ast.expr) -> set[str]:
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _is_text_value(node.value)


def _is_text_value(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


def is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and is_constant(node.operand))


def is_chain(node: ast.expr) -> bool:
    """Whether `node` is a name, or attributes of a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
