"""WG520: what is used as a copy of a network is the network itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Module, OptimizerStepped
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import (
    argument,
    assignments,
    callee,
    calls,
    class_of,
    dotted,
    function_of,
    makes_module,
    ran,
    replace,
)


class SameObject(Rule):
    """A target, teacher or second network is the same object as the trained one.

    `target = network` gives a second name to one object. Every step moves both, a soft update mixes the network with
    itself, `load_state_dict` copies it onto itself, and freezing the "copy" freezes the network. Twin critics that are
    one object always agree.

    **How to put it right.** Make a copy, `target = copy.deepcopy(network)`, or a second network of the same class.
    """

    code = "WG520"
    slug = "same-object"
    search = (
        "target network equals online network",
        "copy.deepcopy model target",
        "two models share weights by accident",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        online = torch.nn.Linear(3, 1)
        target = online  # <- here
        optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
        x, after = torch.randn(8, 3), torch.randn(8, 3)
        for step in range(4):
            with torch.no_grad():
                goal = 1.0 + 0.9 * target(after)
            loss = (online(x) - goal).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2 == 1:
                target.load_state_dict(online.state_dict())
        """,
    )
    right = (
        """
        import copy
        import torch
        torch.manual_seed(0)
        online = torch.nn.Linear(3, 1)
        target = copy.deepcopy(online)
        model = online
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, after = torch.randn(8, 3), torch.randn(8, 3)
        for step in range(4):
            with torch.no_grad():
                goal = 1.0 + 0.9 * target(after)
            loss = (online(x) - goal).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2 == 1:
                target.load_state_dict(online.state_dict())
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        step = next((one for one in facts.of(OptimizerStepped) if any(update.changed for update in one.updates)), None)
        if step is None:
            return
        for path in facts.ledger.sources():
            source = facts.source(path)
            for statement, target, value in assignments(source.tree):
                copy, original = dotted(target), dotted(value)
                module = _module(facts, source, statement, original)
                if not copy or module is None or copy == original or not ran(facts, source, statement):
                    continue
                use = _used_as_copy(source, copy, original)
                if use is not None and not _made_elsewhere(source, copy, statement):
                    yield self._finding(facts, source, statement, value, copy, original, module, use, step)

    def _finding(
        self,
        facts: Facts,
        source: Source,
        statement: ast.stmt,
        value: ast.expr,
        copy: str,
        original: str,
        module: Module,
        use: ast.AST,
        step: OptimizerStepped,
    ) -> Finding:
        moved = next(update for update in step.updates if update.changed)
        return self.finding(
            facts,
            facts.line(source.path, statement.lineno),
            f"{copy} is {original} itself, not a copy",
            [
                f"`{copy}` and `{original}` are two names of one {module.kind}; line "
                f"{getattr(use, 'lineno', 0)} treats them "
                "as two networks.",
                f"{facts.place(step.site).where} moved {facts.describe(moved.tensor)}, and with it both.",
            ],
            why="An assignment copies the reference, not the module.",
            fix=f"{copy} = copy.deepcopy({original})",
            evidence=[
                facts.evidence(module, f"one {module.kind} was recorded for both names"),
                facts.evidence(step, f"the step moved {facts.describe(moved.tensor)}"),
            ],
            subjects=[copy, original],
            edits=_edits(source, value, original),
        )


def _module(facts: Facts, source: Source, statement: ast.stmt, name: str) -> Module | None:
    """The recorded module that a name of the program is."""
    if not name:
        return None
    for module in facts.modules.values():
        if module.path == name and module.path != module.kind:
            return module
    owner = class_of(source, statement)
    if owner is None or not name.startswith("self."):
        return None
    made = [value for _, target, value in assignments(owner) if dotted(target) == name and makes_module(value)]
    kind = callee(made[-1]) if made else ""
    return next((module for module in facts.modules.values() if module.kind == kind), None)


def _used_as_copy(source: Source, copy: str, original: str) -> ast.AST | None:
    """Where the program copies one onto the other, or goes over the parameters of both: it takes them for two."""
    if copy.startswith("self.") != original.startswith("self."):
        return None
    for call in calls(source.tree, "load_state_dict", "zip"):
        texts = [dotted(node) for node in ast.walk(call)]
        if callee(call) == "load_state_dict" and dotted(call.func) == f"{copy}.load_state_dict":
            if f"{original}.state_dict" in texts:
                return call
        elif all(any(text.startswith(f"{name}.") for text in texts) for name in (copy, original)):
            return call
    for call in calls(source.tree, "min", "minimum", "requires_grad_"):
        inner = [dotted(node.func) for node in ast.walk(call) if isinstance(node, ast.Call)]
        if callee(call) in ("min", "minimum") and copy in inner and original in inner:
            return call
        given = argument(call, "requires_grad", 0)
        frozen = isinstance(given, ast.Constant) and given.value is False
        if frozen and dotted(call.func) == f"{copy}.requires_grad_":
            return call
    return None


def _made_elsewhere(source: Source, copy: str, statement: ast.stmt) -> bool:
    """Whether the name is also given something else in the same function."""
    scope = function_of(source, statement)
    return any(
        dotted(target) == copy and other is not statement and function_of(source, other) is scope
        for other, target, _ in assignments(source.tree)
    )


def _edits(source: Source, value: ast.expr, original: str) -> list[Edit]:
    imported = any(
        isinstance(node, ast.Import) and any(name.name == "copy" and not name.asname for name in node.names)
        for node in source.tree.body
    )
    edits = [replace(source, value, f"copy.deepcopy({original})")]
    if not imported:
        first = next((node for node in source.tree.body if isinstance(node, ast.Import)), None)
        if first is None:
            return []
        edits.insert(0, Edit(source.path, first.lineno, 0, first.lineno, 0, "import copy\n"))
    return edits
