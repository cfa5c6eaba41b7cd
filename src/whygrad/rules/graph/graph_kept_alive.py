"""WG213: a total, an average or a list of losses keeps the graphs of all steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from whygrad.ledger.events import BackwardEnded, Operation, SiteId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import ran
from whygrad.rules.terms import given_to, tensors_of

SUMS = frozenset({"add", "add_", "sub", "sub_", "torch.add", "lerp", "lerp_", "torch.cat", "torch.stack", "maximum"})
ENOUGH = 2


class GraphKeptAlive(Rule):
    """Memory grows with every iteration: a running total of the loss keeps all graphs alive.

    `total += loss` adds a tensor that carries its history, so `total` is the end of a graph that spans all steps. The
    values that a backward saved are freed, but the nodes stay, one chain for each step, and what was not backwarded
    stays whole. The same happens with `losses.append(loss)`, a running average, and metrics that are computed with
    gradients on.

    **How to see it.** `total.grad_fn` is not None, and memory grows until the process dies.

    **How to put it right.** Accumulate numbers: `total += loss.item()`, or `loss.detach()` to stay on the device.
    """

    code = "WG213"
    slug = "graph-kept-alive"
    severity = Severity.WARNING
    intended = "one backward is to follow from the sum of all steps"
    search = (
        "memory grows every iteration", "memory leak training loop", "CUDA out of memory after some epochs",
        "total_loss += loss", "losses.append(loss)",
    )  # fmt: skip
    wrong = (
        """
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total = 0
        for _ in range(4):
            loss = model(torch.randn(5, 3)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss  # <- here
        """,
        """
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        average = torch.zeros(())
        for _ in range(4):
            loss = model(torch.randn(5, 3)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average = 0.9 * average + 0.1 * loss  # <- here
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total, kept = 0.0, []
        for _ in range(4):
            loss = model(torch.randn(5, 3)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            kept.append(loss.detach())
        """,
        """
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            total, losses = 0, []
            for _ in range(3):
                loss = model(torch.randn(5, 3)).pow(2).mean()
                total = total + loss
                losses.append(loss)
            optimizer.zero_grad()
            (total + torch.stack(losses).sum()).backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        roots = {root for entry in facts.passes for root in entry.began.roots}
        grown: dict[SiteId, list[tuple[Operation, TensorId]]] = {}
        for operation in facts.of(Operation):
            if operation.site is None or operation.function not in SUMS or operation.node is None:
                continue
            spent = _spent(facts, operation, roots) if roots else _with_history(facts, operation)
            if spent is None:
                continue
            grown.setdefault(operation.site, []).append((operation, spent))
        for found in grown.values():
            if (
                len(found) >= (ENOUGH if roots else ENOUGH + 1)
                and _chained(facts, found)
                and not _used_by_a_pass(facts, found[-1][0])
            ):
                yield self._found(facts, found)
        yield from self._lists(facts, roots)

    def _found(self, facts: Facts, found: list[tuple[Operation, TensorId]]) -> Finding:
        operation, spent = found[-1]
        total = facts.describe(operation.outputs[0])
        what = facts.describe(spent)
        place = facts.place(operation.site)
        return self.finding(
            facts,
            place,
            f"{total} keeps the graph of every step",
            [
                f"{what} still had its history when it was added into {total}: {len(found)} "
                f"times in the {len({one.step for one, _ in found})} steps that were recorded in full.",
                f"No backward of this run starts from {total}; its graph grows by one step with each addition.",
            ],
            why="A tensor keeps the nodes that made it alive, and those keep what came before.",
            fix=f"Add the number: {what}.item() (or {what}.detach()).",
            evidence=[facts.evidence(one, f"{what} was added with its history") for one, _ in found[:3]],
            subjects=[total],
            severity=None if facts.passes else Severity.NOTE,
            edits=_itemised(facts.source(place.path), operation, facts, spent),
        )

    def _lists(self, facts: Facts, roots: set[TensorId]) -> Iterator[Finding]:
        """`losses.append(loss)` in a loop whose backward starts from that loss."""
        names = {name: root for root in roots for name in facts.ledger.names(root)}
        stacked = {
            tensor
            for operation in facts.of(Operation)
            if _ends_in_a_pass(facts, operation, roots)
            for tensor in tensors_of(operation.inputs)
        }
        ended = {facts.place(one.site).line for one in facts.of(BackwardEnded)}
        for path in facts.ledger.sources():
            source = facts.source(path)
            for node in ast.walk(source.tree):
                kept = _kept(node)
                if kept is None or kept.id not in names or names[kept.id] in stacked:
                    continue
                loop = source.loop_at(node.lineno) if isinstance(node, ast.Call | ast.AugAssign) else None
                if loop is None or not any(loop.lineno <= line <= (loop.end_lineno or 0) for line in ended):
                    continue
                if not facts.flow.requires_grad(names[kept.id]) or not ran(facts, source, node):
                    continue
                yield self._listed(facts, source, node, kept, names[kept.id])

    def _listed(self, facts: Facts, source: Source, node: ast.AST, kept: ast.Name, root: TensorId) -> Finding:
        assert isinstance(node, ast.Call | ast.AugAssign)
        keeper = source.segment(node.func if isinstance(node, ast.Call) else node.target)
        entry = next(one for one in facts.passes if root in one.began.roots)
        end = kept.end_col_offset or 0
        return self.finding(
            facts,
            facts.line(source.path, node.lineno),
            f"{keeper.removesuffix('.append')} keeps the graph of every {kept.id}",
            [
                f"{kept.id} has a history of {entry.began.nodes} nodes when it is put into "
                f"`{keeper}`; the backward on {facts.place(entry.began.site).where} has used it, "
                "and nothing else in this run does."
            ],
            why="A tensor keeps the nodes that made it alive.",
            fix=f"Keep the number: {kept.id}.item() (or {kept.id}.detach()).",
            evidence=[facts.evidence(entry.began, f"a backward started from {kept.id}")],
            subjects=[kept.id],
            severity=Severity.NOTE,
            edits=(Edit(source.path, kept.lineno, end, kept.lineno, end, ".item()"),),
        )


def _kept(node: ast.AST) -> ast.Name | None:
    """The name in `something.append(name)`, or in `something[key] += name`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        plain = isinstance(node.target, ast.Name) or not isinstance(node.value, ast.Name)
        return None if plain or not isinstance(node.value, ast.Name) else node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "append":
        return None
    return node.args[0] if len(node.args) == 1 and isinstance(node.args[0], ast.Name) else None


def _spent(facts: Facts, operation: Operation, roots: set[TensorId]) -> TensorId | None:
    """What was added after, or just before, a backward of its own started from it (scaled, perhaps)."""
    for tensor in given_to(facts, operation):
        if not facts.flow.requires_grad(tensor):
            continue
        if tensor in roots:
            return tensor
        maker = facts.flow.maker(tensor)
        if maker is not None and maker.function in ("mul", "div"):
            given = [one for one in maker.inputs if one in roots]
            if given:
                return given[0]
    return None


def _with_history(facts: Facts, operation: Operation) -> TensorId | None:
    """In a program without any backward: a scalar with a history that is added to a total."""
    for tensor in given_to(facts, operation)[-1:]:
        if facts.flow.requires_grad(tensor) and facts.tensors[tensor].shape == ():
            return tensor
    return None


def _chained(facts: Facts, found: list[tuple[Operation, TensorId]]) -> bool:
    """Whether results go into the next ones: at least twice, for a loop may start anew."""
    links = 0
    for (earlier, _), (later, spent) in pairwise(found):
        total = earlier.outputs[0]
        if total == later.outputs[0]:
            links += 1
            continue
        behind = set(tensors_of(later.inputs))
        behind |= {one for tensor in list(behind) if (made := facts.flow.maker(tensor)) for one in made.inputs}
        links += total in behind and total != spent
    return links >= ENOUGH - 1


def _used_by_a_pass(facts: Facts, operation: Operation) -> bool:
    """Whether a backward started from the total, or from something computed from it."""
    roots = {root for entry in facts.passes for root in entry.began.roots if entry.began.seq > operation.seq}
    return bool(roots & facts.flow.computed_from(operation.outputs[0]))


def _ends_in_a_pass(facts: Facts, operation: Operation, roots: set[TensorId]) -> bool:
    stacks = operation.function in ("torch.stack", "torch.cat", "sum", "stack", "cat")
    return stacks and any(facts.flow.computed_from(output) & roots for output in operation.outputs)


def _itemised(source: Source, operation: Operation, facts: Facts, spent: TensorId) -> tuple[Edit, ...]:
    """`total += loss` as `total += loss.item()`."""
    place = facts.place(operation.site)
    statement = source.statement(place.line)
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.value, ast.Name):
        return ()
    if statement.value.id not in facts.ledger.names(spent):
        return ()
    end = statement.value.end_lineno or place.line
    at = len(source.line(end).encode()[: statement.value.end_col_offset].decode("utf-8", "replace"))
    return (Edit(source.path, end, at, end, at, ".item()"),)
