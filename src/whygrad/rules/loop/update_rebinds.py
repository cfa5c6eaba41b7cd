"""WG515: an update written by hand gives the name to a new tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Named, Operation, RequiresGradChanged, SiteId, Tensor, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import calls, dotted, replace


class UpdateRebinds(Rule):
    """`w = w - lr * w.grad` makes a new tensor: the parameter stays where it is, or loses its gradient.

    The expression computes a new tensor and gives it the old one's name. As a loop variable (`for p in
    model.parameters(): p = p - lr * p.grad`) that changes nothing in the model. For a tensor of your own, the new `w`
    is no leaf (`w.grad` is None after the next backward), or, under `no_grad`, does not require grad at all.

    **How to put it right.** Write into the tensor, with recording off: `with torch.no_grad(): w -= lr * w.grad`.
    """

    code = "WG515"
    slug = "update-rebinds"
    explains = ("WG214",)
    search = (
        "w = w - lr * w.grad grad is None",
        "NoneType after manual gradient descent step",
        "for p in model.parameters(): p = p - lr * p.grad does nothing",
        "element 0 of tensors does not require grad after update",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            model.zero_grad()
            (model(x) - y).square().mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p = p - 0.1 * p.grad  # <- here
        """,
    )
    right = (
        """
        import torch
        w = torch.tensor(3.0, requires_grad=True)
        for _ in range(3):
            loss = (w - 1.0) ** 2
            loss.backward()
            w = (w - 0.1 * w.grad).detach().requires_grad_()
        """,
        """
        import torch
        w = torch.tensor(3.0, requires_grad=True)
        loss = (w - 1.0) ** 2
        (grad,) = torch.autograd.grad(loss, w, create_graph=True)
        w = w - 0.1 * grad
        (w ** 2).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        made = {output: event for event in facts.of(Operation) if not event.in_place for output in event.outputs}
        thawed = {change.tensor for change in facts.of(RequiresGradChanged) if change.to}
        bearer: dict[tuple[str, str], TensorId] = {}
        told: set[SiteId | None] = set()
        for named in facts.of(Named):
            key = (named.name, named.scope)
            old, bearer[key] = bearer.get(key), named.tensor
            operation = made.get(named.tensor)
            if old is None or old == named.tensor or operation is None or operation.site in told:
                continue
            if named.tensor not in thawed and _is_update(facts, operation, old):
                told.add(operation.site)
                yield self._finding(facts, named, operation, old)
        for path in facts.ledger.sources():
            for name, value in _rebound_variables(facts.source(path)):
                yield from self._in_loop(facts, facts.source(path), name, value, told)

    def _in_loop(
        self, facts: Facts, source: Source, name: str, value: ast.expr, told: set[SiteId | None]
    ) -> Iterator[Finding]:
        """A loop over parameters whose body gives the loop's variable a new tensor, and does no more with it."""
        for operation in facts.of(Operation):
            site = facts.site(operation.site)
            if site is None or site.path != source.path or operation.in_place or operation.site in told:
                continue
            if source.expression(site) is not value:
                continue
            told.add(operation.site)
            kept = [one.tensor for one in operation.inputs if one.tensor is not None and one.code == name]
            whose = f" ({facts.describe(kept[0])})" if kept else ""
            yield self.finding(
                facts,
                facts.place(operation.site),
                f"`{name} = ...` renames the loop's variable and changes no parameter",
                [
                    f"{facts.place(operation.site).where} computed a new tensor and called it {name}; the parameter "
                    f"that the loop gave{whose} was not written, and the new tensor is dropped in the next round.",
                ],
                why="An assignment gives a name to the result; only an in-place operation changes a tensor.",
                fix=f"Write in place, with recording off: with torch.no_grad(): {name}.copy_(...)",
                evidence=[facts.evidence(operation, "a new tensor was computed, and nothing kept it")],
                subjects=[name],
                edits=[replace(source, _statement(source, value), f"{name}.data.copy_({source.segment(value)})")],
            )

    def _finding(self, facts: Facts, named: Named, operation: Operation, old: TensorId) -> Finding:
        new = facts.tensors[named.tensor]
        site = facts.place(operation.site)
        name = next((one for one in facts.ledger.names(old) if "." in one and one != named.name), named.name)
        state = "is no leaf" if new.requires_grad else "does not require grad"
        return self.finding(
            facts,
            site,
            f"`{named.name} = ...` makes a new tensor instead of moving the parameter",
            [
                f"{site.where} computed a new "
                f"tensor{f' ({say(operation.value)})' if operation.value else ''} and called it "
                f"{named.name}; {name}, which had the gradient, was not changed.",
                f"The new {named.name} {state}: no backward will write a gradient for it.",
            ],
            why="An assignment gives a name to the result; only an in-place operation changes a tensor.",
            fix=f"Write in place, with recording off: with torch.no_grad(): {named.name} -= ...",
            evidence=[
                facts.evidence(operation, "a new tensor was computed"),
                facts.evidence(named, f"it was called {named.name}"),
            ],
            subjects=[name, named.name],
            edits=_edits(facts, operation, named.name),
        )


def _is_update(facts: Facts, operation: Operation, old: TensorId) -> bool:
    """Whether an operation is `old -/+ something of old.grad`."""
    known: Tensor | None = facts.tensors.get(old)
    if operation.function not in ("sub", "add", "rsub", "lerp", "addcmul", "addcdiv") or known is None:
        return False
    if not (known.leaf and known.requires_grad):
        return False
    place = facts.place(operation.site)
    statement = facts.source(place.path).statement(place.line)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return False
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    name = dotted(target)
    reads = any(dotted(node) == f"{name}.grad" for node in ast.walk(statement.value))
    took = any(operand.tensor == old for operand in operation.inputs)
    return bool(name) and reads and took and facts.source(place.path).segment(statement.value) == place.code


def _edits(facts: Facts, operation: Operation, name: str) -> list[Edit]:
    place = facts.place(operation.site)
    source = facts.source(place.path)
    statement = source.statement(place.line)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return []
    inside = any(
        isinstance(outer, ast.With) and "no_grad" in source.segment(outer.items[0].context_expr)
        for outer in source.around(statement)
    )
    sign = {ast.Sub: "-=", ast.Add: "+="}.get(type(statement.value.op))
    if sign is None or dotted(statement.value.left) != name:
        return []
    update = f"{name} {sign} {source.segment(statement.value.right)}"
    indent = " " * statement.col_offset
    return [replace(source, statement, update if inside else f"with torch.no_grad():\n{indent}    {update}")]


def _rebound_variables(source: Source) -> Iterator[tuple[str, ast.expr]]:
    """`p = f(p)` as the last use of p in `for p in model.parameters()`: the name and the expression."""
    for loop in ast.walk(source.tree):
        if not isinstance(loop, ast.For):
            continue
        gives = list(calls(loop.iter, "parameters", "named_parameters"))
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        for statement in ast.walk(loop) if gives else ():
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            name = dotted(statement.targets[0])
            read = [
                node.lineno
                for node in ast.walk(loop)
                if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
            ]
            inside = any(dotted(node) == name for node in ast.walk(statement.value))
            if name in names and inside and max(read) <= (statement.end_lineno or statement.lineno):
                yield name, statement.value


def _statement(source: Source, value: ast.expr) -> ast.stmt:
    return next(outer for outer in source.around(value) if isinstance(outer, ast.stmt))
