"""WG503: what was kept as the best state is the live state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import OptimizerStepped, SiteId, StepsFolded
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, calls, dotted, function_of, loops_of, ran, replace, sites_in

SHALLOW = frozenset({"dict", "OrderedDict", "copy", "list", "tuple"})
"""Calls that copy the container and not the tensors in it (`copy.copy(state)`, `state.copy()`)."""

ALIASING = frozenset({"detach", "cpu", "to", "view", "data"})


class StateByReference(Rule):
    """The best weights that were kept are the last weights.

    `model.state_dict()` holds the live tensors, not copies, and `best_model = model` is a second name for one object.
    The optimizer writes into those tensors in place, so whatever was kept "when the loss was best" changes with every
    step. Restoring it at the end restores the last weights.

    **How to put it right.** Keep a copy: `copy.deepcopy(model.state_dict())`, or
    `{name: tensor.clone() for name, tensor in model.state_dict().items()}`.
    """

    code = "WG503"
    slug = "state-by-reference"
    search = (
        "early stopping restores last weights",
        "best_state = model.state_dict()",
        "load_state_dict does not restore the best model",
        "state_dict deepcopy",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        best, kept = float("inf"), None
        for _ in range(6):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loss.item() < best:
                best = loss.item()
                kept = model.state_dict()  # <- here
        model.load_state_dict(kept)
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        start = {name: tensor.detach() for name, tensor in model.state_dict().items()}  # <- here
        for _ in range(6):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.load_state_dict(start)
        """,
    )
    right = (
        """
        import copy
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        average = torch.nn.Linear(4, 1)
        average.load_state_dict(model.state_dict())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        best, kept = float("inf"), None
        for _ in range(6):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loss.item() < best:
                best = loss.item()
                kept = copy.deepcopy(model.state_dict())
        last = model.state_dict()
        average.load_state_dict(last)
        model.load_state_dict(kept)
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        if not facts.of(OptimizerStepped):
            return
        for path in facts.ledger.sources():
            source = facts.source(path)
            for statement, target, value in assignments(source.tree):
                kept = _kept(facts, value)
                name = dotted(target.value if isinstance(target, ast.Subscript) else target)
                if kept is None or not name or not ran(facts, source, statement):
                    continue
                used = _used_later(source, name, statement, kept)
                step = _step_after(facts, source, statement)
                if used is not None and step is not None and ran(facts, source, used):
                    yield self._finding(facts, source, statement, value, kept, name, used, step)

    def _finding(
        self,
        facts: Facts,
        source: Source,
        statement: ast.stmt,
        value: ast.expr,
        kept: str,
        name: str,
        used: ast.AST,
        step: OptimizerStepped | StepsFolded,
    ) -> Finding:
        what = f"{kept}.state_dict()" if callee(value) or not dotted(value) else kept
        moved = [facts.describe(update.tensor) for update in getattr(step, "updates", ()) if update.changed]
        whose = f"{moved[0]} and {len(moved) - 1} more" if len(moved) > 1 else "".join(moved) or "the parameters"
        return self.finding(
            facts,
            facts.line(source.path, statement.lineno),
            f"{name} keeps the live tensors, not their values",
            [
                f"`{name}` refers to the tensors of {what}; after that {facts.place(step.site).where} moved {whose} "
                "in place.",
                f"What line {getattr(used, 'lineno', 0)} uses is therefore the newest state, not the kept one.",
            ],
            why="state_dict() and plain assignment copy references; optimizers write into the tensors in place.",
            fix=f"Keep a copy: copy.deepcopy({source.segment(value)}).",
            evidence=[facts.evidence(step, "the optimizer wrote into the tensors that were kept")],
            subjects=[name, kept],
            edits=_edits(source, value),
        )


def _kept(facts: Facts, value: ast.expr) -> str | None:
    """The module (or optimizer) whose live state an expression gives; None where it gives a copy or something else."""
    if isinstance(value, ast.Name) and value.id in _modules(facts):
        return value.id
    if isinstance(value, ast.Call) and callee(value) in SHALLOW:
        inner = value.args[0] if value.args else value.func.value if isinstance(value.func, ast.Attribute) else None
        return _kept(facts, inner) if inner is not None and not isinstance(inner, ast.Name) else None
    if isinstance(value, ast.DictComp):
        source = value.generators[0].iter
        inside = source.func.value if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else None
        live = _is_live(value.value) and inside is not None
        return _kept(facts, inside) if live and inside is not None else None
    if isinstance(value, ast.Call) and callee(value) == "state_dict" and isinstance(value.func, ast.Attribute):
        return dotted(value.func.value) or None
    if isinstance(value, ast.Dict):
        return next((kept for each in value.values if callee(each) and (kept := _kept(facts, each))), None)
    return None


def _modules(facts: Facts) -> set[str]:
    return {module.path for module in facts.modules.values() if module.path != module.kind}


def _is_live(value: ast.expr) -> bool:
    """Whether an expression of a tensor keeps its memory (`v`, `v.detach()`, `v.cpu()`)."""
    if isinstance(value, ast.Name):
        return True
    if isinstance(value, ast.Attribute):
        return value.attr == "data" and _is_live(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in ALIASING and _is_live(value.func.value)
    return False


def _used_later(source: Source, name: str, statement: ast.stmt, kept: str) -> ast.AST | None:
    """Where what was kept is used: loaded, or, for a second name of a module, called or returned after the loop."""
    scope = function_of(source, statement)
    module = isinstance(getattr(statement, "value", None), ast.Name)
    for call in calls(scope if scope is not None else source.tree):
        if call.lineno <= statement.lineno:
            continue
        if not module and callee(call) == "load_state_dict" and call.args and _speaks_of(call.args[0], name):
            return call
        if module and name != kept and loops_of(source, statement) and not loops_of(source, call):
            spoken = [call.func, *call.args]
            if any(dotted(each).split(".")[0] == name for each in spoken) and callee(call) not in ("load_state_dict",):
                return call
    if not module and scope is not None and "." in name:  # kept on an object, loaded elsewhere
        tail = name.rpartition(".")[2]
        for call in calls(source.tree, "load_state_dict"):
            texts = [dotted(each) for argument in call.args[:1] for each in ast.walk(argument)]
            if name in texts or (name.startswith("self.") and any(one.endswith(f".{tail}") for one in texts)):
                return call
    return None


def _speaks_of(node: ast.expr, name: str) -> bool:
    return any(dotted(each) == name for each in ast.walk(node))


def _step_after(facts: Facts, source: Source, statement: ast.stmt) -> OptimizerStepped | StepsFolded | None:
    """A step that came after the state was kept, and before it was kept anew if that happens unconditionally."""
    loops = loops_of(source, statement)
    scope = function_of(source, statement)
    region = loops[-1] if loops else scope
    chosen = (
        any(isinstance(outer, ast.If) and _inside(region, outer) for outer in source.around(statement)) if region else 0
    )
    if region is not None and not chosen:
        return None
    kept = _last_seen(facts, source, statement)
    if kept is None:
        return None
    steps: list[OptimizerStepped | StepsFolded] = [*facts.of(OptimizerStepped), *facts.of(StepsFolded)]
    after = [step for step in steps if step.seq > kept]
    if after:
        return min(after, key=lambda step: step.seq)
    return None


def _last_seen(facts: Facts, source: Source, statement: ast.stmt) -> int | None:
    """The last event of a statement; of those beside it in its block, where it leaves no trace of its own."""
    block = source.parents.get(statement)
    beside = block.body if isinstance(block, (ast.If, ast.FunctionDef)) and statement in block.body else []
    for group in ([statement], beside):
        sites: set[SiteId] = {site.id for one in group for site in sites_in(facts, source, one)}
        kept = max((event.seq for event in facts.events if event.site in sites), default=None)
        if kept is not None:
            return kept
    return None


def _inside(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


def _edits(source: Source, value: ast.expr) -> list[Edit]:
    """Wrap in a deep copy, with the import where the file has none."""
    text = source.segment(value)
    edits = [replace(source, value, f"copy.deepcopy({text})")]
    imported = any(
        isinstance(node, ast.Import) and any(name.name == "copy" and not name.asname for name in node.names)
        for node in source.tree.body
    )
    if not imported:
        first = next((node for node in source.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))), None)
        if first is None or (isinstance(first, ast.ImportFrom) and first.module == "__future__"):
            return []
        edits.insert(0, Edit(source.path, first.lineno, 0, first.lineno, 0, "import copy\n"))
    return edits
