"""Taps around statements: names that are bound, writes through attributes and items, assertions, handlers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from whygrad.execute.conditions import decided_and_raised, decided_at
from whygrad.execute.expressions import ASSERTION_ERROR, BINARY, MARK, Expressions, end, is_chain, is_text, located
from whygrad.execute.sites import OperandForm, Place, Statement, Unknown

WRITTEN_ATTRIBUTES = frozenset({"grad", "data", "requires_grad", "training", "require_grad", "requires_gradient"})
"""Attributes whose assignment means something to a gradient, with the misspellings people make."""


class Statements(Expressions):
    """Rewrites one file's tree in place."""

    def run(self) -> None:
        self.tree.body = self.block(self.tree.body, docstring=True)
        ast.fix_missing_locations(self.tree)

    # --- statements -------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt], docstring: bool = False) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for position, statement in enumerate(body):
            leading = docstring and position == 0 and is_text(statement)
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
        end_line, end_column = end(node)
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
        with self.inside(node.name, rereads=True):
            self.note_parameters(node.args)
            node.body = self.block(node.body, docstring=True)
        return [node]

    on_AsyncFunctionDef = on_FunctionDef  # noqa: N815

    def on_ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:  # noqa: N802
        """A metaclass may give the body a namespace that notes each reading of a name, so ours read none."""
        with self.inside(node.name, rereads=not (node.bases or node.keywords)):
            node.body = self.block(node.body, docstring=True)
        return [node]

    def on_Assign(self, node: ast.Assign) -> list[ast.stmt]:  # noqa: N802
        targets = tuple(self.text(target) for target in node.targets if self.nameable(target))
        code = self.text(node.value)
        node.value = self.bound(node.value, targets)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            return [node, self.write(node, node.targets[0], given=(node.value, code))]
        after = [report for target in node.targets for report in self.target(target, node)]
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
            if not self.rereads:
                return [node]
            reload = ast.Name(node.target.id, ast.Load())
            return [node, self.report("updated", site, reload, *names, at=node)]
        code = self.text(node.value)
        node.value = self.expression(node.value)
        return [node, self.write(node, node.target, place, given=(node.value, code))]

    def on_If(self, node: ast.If | ast.While) -> list[ast.stmt]:  # noqa: N802
        at = decided_at(node.test)
        self.descend(node)
        return [node if at is None else at.put(node)]

    on_While = on_If  # noqa: N815

    def on_Assert(self, node: ast.Assert) -> list[ast.stmt]:  # noqa: N802
        """Becomes `if not condition: check(False); raise AssertionError(message)`, then `check(True)`.

        The compiler makes the same jumps of both, and the parts stand where it puts those of the assertion.
        """
        if not __debug__:
            return [node]
        decided, raised = decided_and_raised(node)
        place = self.place(node, node.test)
        site = self.table.add(place)
        sides: list[str] = []
        test = self.sided(node.test, site, sides)
        place.sides = tuple(sides)
        error: ast.expr = ast.Constant(MARK + ASSERTION_ERROR)
        if node.msg is not None:
            error = located(ast.Call(located(error, node), [self.expression(node.msg)], []), node)
        fail = raised.put(ast.Raise(located(error, node)))
        failed, held = (
            decided.put(
                ast.Expr(self.call("check", site, decided.put(ast.Constant(outcome)), at=decided.put(ast.Pass())))
            )
            for outcome in (False, True)
        )
        negated = located(ast.UnaryOp(ast.Not(), test), node.test)
        return [located(ast.If(negated, [failed, fail], []), node), held]

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

    on_TryStar = on_Try  # noqa: N815

    def on_Delete(self, node: ast.Delete) -> list[ast.stmt]:  # noqa: N802
        after: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == "grad":
                place, text = self.place(node), self.text(target)
                after.append(self.write(node, target, place))
                place.written = f"del {text}"
        return [node, *after]

    def on_Match(self, node: ast.Match) -> list[ast.stmt]:  # noqa: N802
        node.subject = self.expression(node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = self.expression(case.guard)
            case.body = self.block(case.body)
        return [node]

    def on_TypeAlias(self, node: ast.stmt) -> list[ast.stmt]:  # noqa: N802
        return [node]

    def note_parameters(self, given: ast.arguments) -> None:
        """What the function being read calls its arguments."""
        parts = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        names = frozenset(part.arg for part in parts if part is not None and part.arg not in ("self", "cls"))
        self.table.parameters[self.file.path, self.function] = names

    # --- targets ----------------------------------------------------------------------------------

    def nameable(self, target: ast.expr) -> bool:
        """Whether a reader would call the value by this target's text."""
        if isinstance(target, ast.Name):
            return True
        if isinstance(target, ast.Attribute):
            return target.attr not in WRITTEN_ATTRIBUTES and is_chain(target)
        return isinstance(target, ast.Subscript) and is_chain(target.value) and isinstance(target.slice, ast.Constant)

    def is_write(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Attribute):
            return target.attr in WRITTEN_ATTRIBUTES
        return isinstance(target, ast.Subscript)

    def write(
        self, node: ast.stmt, target: ast.expr, place: Place | None = None, given: tuple[ast.expr, str] | None = None
    ) -> ast.stmt:
        """Announce a write through an attribute or an item, and report when it is done.

        `given` is the value that is written (with its taps) and its text, where that is one expression.
        """
        place = place or self.place(node)
        assert isinstance(target, ast.Attribute | ast.Subscript)
        place.written = self.text(target)
        owner = target.value
        place.item = isinstance(target, ast.Subscript)
        place.attribute = "" if place.item else target.attr  # type: ignore[union-attr]
        if isinstance(owner, ast.Attribute) and owner.attr in ("data", "grad") and is_chain(owner.value):
            # `w.data[...] = `, `w.grad.data = `: the buffer's owner is what a reader asks about
            place.attribute = owner.attr
            site = self.table.add(place)
            owner.value = self.call("base", site, self.expression(owner.value), at=owner.value)
        else:
            site = self.table.add(place)
            target.value = self.call("base", site, self.expression(owner), at=owner)
        if not isinstance(target, ast.Subscript):
            return self.report("wrote", site, at=node)
        if given is None:
            target.slice = self.expression(target.slice)
            return self.report("wrote", site, at=node)
        names: list[ast.expr] = []
        operands = [OperandForm(Unknown(), code=self.text(owner) if hasattr(owner, "lineno") else "")]
        target.slice = self.collect(target.slice, operands, names)
        operands.append(OperandForm(self.seen(given[0], names), code=given[1]))
        place.operands = tuple(operands)
        return self.report("wrote", site, *([ast.Constant(None), *names] if names else ()), at=node)

    def target(self, target: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """The reports of what a target, or the parts of one that is unpacked into, write."""
        if self.is_write(target):
            return [self.write(node, target)]
        if isinstance(target, ast.Attribute):
            target.value = self.expression(target.value)
        elif isinstance(target, ast.Tuple | ast.List):
            return [report for part in target.elts for report in self.target(part, node)]
        elif isinstance(target, ast.Starred):
            return self.target(target.value, node)
        return []

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
        if not names or not self.rereads:
            return []
        place = self.place(node)
        place.targets = tuple(names)
        site = self.table.add(place)
        return [self.report("names", site, *(ast.Name(name, ast.Load()) for name in names), at=target)]
