"""WG211: a value that backward needs was written in place after it was saved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import BackwardEnded, DataChanged, OptimizerStepped
from whygrad.rules.constructors import calls_of, constructor
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Place, Severity
from whygrad.rules.rule import Rule


class SavedValueWritten(Rule):
    """One of the variables needed for gradient computation has been modified by an inplace operation.

    An operation that needs a value for its backward keeps the tensor, not a copy, and remembers its version. A later
    write into the same tensor makes the kept value wrong, so backward refuses. Writers that are easy to miss:
    `optimizer.step()` between a loss and its backward, `x += y`, `nn.ReLU(inplace=True)` behind an operation that
    needs its result, an embedding with `max_norm` (the lookup rescales the weight in place), slice assignment.

    **How to see it.** Anomaly mode names the operation that needed the value; the ledger names the one that wrote.

    **How to put it right.** Write out of place (`x = x + y`), call the optimizer after every backward that needs the
    old weights, or use a clone in the earlier expression.
    """

    code = "WG211"
    slug = "saved-value-written"
    search = (
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        "is at version 2; expected version 1", "inplace operation error optimizer.step", "embedding max_norm inplace",
    )  # fmt: skip
    wrong = (
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        s = torch.sigmoid(w)
        loss = (s * 2).sum()
        s += 1  # <- here
        loss.backward()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        actor = nn.Linear(3, 1)
        critic = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
        moves = torch.optim.SGD(critic.parameters(), lr=0.1)
        action = actor(torch.randn(5, 3))
        actor_loss = -critic(action).mean()
        critic_loss = (critic(action.detach()) - 1).pow(2).mean()
        critic_loss.backward()
        moves.step()  # <- here
        actor_loss.backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        embedding = torch.nn.Embedding(3, 5, max_norm=1.0)
        w = torch.randn(4, 5, requires_grad=True)
        every = embedding.weight @ w.t()  # <- here
        some = embedding(torch.tensor([1, 2])) @ w.t()
        (every.sum() + some.sum()).backward()
        """,
    )
    right = (
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        h += 1
        h.relu_()
        h.sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for ended in facts.of(BackwardEnded):
            if "inplace operation" in ended.error and ended.written_by is not None:
                found = self._found(facts, ended)
                caught = facts.was_expected(ended)
                yield msgspec.structs.replace(found, severity=Severity.NOTE) if caught else found

    def _found(self, facts: Facts, ended: BackwardEnded) -> Finding:
        write = facts.place(ended.written_by)
        node = facts.nodes.get(ended.blamed) if ended.blamed is not None else None
        saved = facts.place(node.site) if node is not None else None
        what = facts.describe(ended.written) or "a tensor"
        change = self._change(facts, ended)
        by = change.by if change is not None else ""
        stepped = any(step.site == ended.written_by for step in facts.of(OptimizerStepped))
        place, fix, edits, who = write, "Write out of place: `x = x + y` instead of `x += y`.", _aug(facts, write), ""
        if stepped:
            who = f"`{write.code}` moved the parameters"
            fix = "Call the optimizer after every backward that needs the old parameters, or compute that loss anew."
            edits = ()
        elif by == "Embedding" or by.startswith("embedding"):
            place = saved or write
            who = "the lookup of an embedding with max_norm rescaled its weight in place"
            fix = "Use weight.clone() in the expression that was computed before the lookup, or do the lookup first."
            edits = _cloned(facts, node.site if node is not None else None, what)
        elif (built := inplace_module(facts, by)) is not None:
            place, edits = built
            who = f"{by}(inplace=True) overwrote its input"
            fix = "Leave inplace=True out there."
        told = f"`{saved.code}` ({saved.where}) keeps it for its backward" if saved is not None else "a node keeps it"
        versions = f" (version {change.version_before} to {change.version})" if change is not None else ""
        began = next((entry.began for entry in facts.passes if entry.id == ended.id), None)
        return self.finding(
            facts,
            place,
            f"{what} is overwritten although backward still needs it",
            [
                f"{told}; {who or f'`{write.code}` wrote into it'} on {write.where}{versions}, before the backward"
                f"{f' on {facts.place(began.site).where}' if began is not None else ''}, which failed.",
            ],
            why="Autograd keeps the tensor itself; after a write in place the value that it needs is gone.",
            fix=fix,
            evidence=[
                *([facts.evidence(node, f"{node.name} saved {what}")] if node is not None else []),
                *([facts.evidence(change, f"{what} was written in place by {by}")] if change is not None else []),
                facts.evidence(ended, "the backward failed"),
            ],
            subjects=[what],
            edits=edits,
        )

    def _change(self, facts: Facts, ended: BackwardEnded) -> DataChanged | None:
        found = [one for one in facts.of(DataChanged) if one.site == ended.written_by and one.seq < ended.seq]
        return next((one for one in reversed(found) if one.tensor == ended.written), found[-1] if found else None)


def inplace_module(facts: Facts, by: str) -> tuple[Place, tuple[Edit, ...]] | None:
    """The constructor of the module that writes in place, and the edit that takes `inplace=True` out."""
    for place, call in calls_of(facts, by) if by[:1].isupper() else ():
        for word in call.keywords:
            if word.arg == "inplace" and isinstance(word.value, ast.Constant) and word.value.value is True:
                kinds = [module for module in facts.modules.values() if module.kind == by]
                built = constructor(facts, kinds[0].id) if len(kinds) == 1 else place
                value = word.value
                edit = Edit(place.path, value.lineno, value.col_offset, value.lineno, value.col_offset + 4, "False")
                return built or place, (edit,)
    return None


def _aug(facts: Facts, place: Place) -> tuple[Edit, ...]:
    """`x += y` as `x = x + (y)`."""
    source = facts.source(place.path)
    statement = source.statement(place.line)
    operators: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
        return ()
    sign = operators.get(type(statement.op))
    if sign is None or statement.end_lineno != statement.lineno:
        return ()
    name, value = statement.target.id, source.segment(statement.value)
    value = value if isinstance(statement.value, ast.Name | ast.Constant | ast.Call | ast.Attribute) else f"({value})"
    end = len(source.line(place.line).encode()[: statement.end_col_offset].decode("utf-8", "replace"))
    text = f"{name} = {name} {sign} {value}"
    return (Edit(place.path, statement.lineno, statement.col_offset, statement.lineno, end, text),)


def _cloned(facts: Facts, at: object, name: str) -> tuple[Edit, ...]:
    """`embedding.weight @ x` with `embedding.weight.clone()`."""
    site = next((node for node in facts.nodes.values() if node.site == at), None)
    known = facts.site(site.site) if site is not None else None
    if known is None or known.line != known.end_line or known.code.count(name) != 1:
        return ()
    column = known.column + known.code.index(name) + len(name)
    return (Edit(known.path, known.line, column, known.line, column, ".clone()"),)
