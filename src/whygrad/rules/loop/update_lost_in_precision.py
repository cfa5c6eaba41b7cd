"""WG508: the steps are smaller than the spacing of the parameter's numbers, so nothing moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import OptimizerId, OptimizerStepped, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place
from whygrad.rules.numbers import say, say_number
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.steps import finite
from whygrad.rules.syntax import argument, callee, calls, dotted, makes_module, ran

STEPS = 3
NEGLIGIBLE = 1e-3
"""A gradient smaller than this part of the step's largest may be rounding noise (of a bias before a normalisation)."""

SPACING = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""Half the spacing of numbers just above 1, by dtype: a smaller relative change rounds away."""

METHODS = {"bfloat16": "bfloat16", "float16": "half"}


class UpdateLostInPrecision(Rule):
    """The optimizer steps, the gradients are fine, and the weights do not move by a single bit.

    A parameter can only hold the numbers of its dtype. In bfloat16 the numbers near 1 are 1/128 apart, so an update
    of 0.001 rounds back to the old weight, in every step. The loss stays where it is although the same code learns
    in float32.

    **How to put it right.** Keep the parameters in float32 and compute in bfloat16 with `torch.autocast`; or use an
    optimizer with float32 master weights, Kahan summation or stochastic rounding.
    """

    code = "WG508"
    slug = "update-lost-in-precision"
    search = (
        "bfloat16 loss does not decrease",
        "model.to(torch.bfloat16) weights do not change",
        "model.half() training stalls",
        "bf16 update rounds to zero",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        model = torch.nn.Linear(4, 1, bias=False)
        torch.nn.init.ones_(model.weight)
        model = model.to(torch.bfloat16)  # <- here
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        for _ in range(5):
            loss = (model(x.bfloat16()) - y.bfloat16()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        model = torch.nn.Linear(4, 1, bias=False)
        torch.nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        for _ in range(5):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[tuple[str, int]] = set()
        for optimizer in facts.optimizers:
            steps = [step for step in facts.steps_of(optimizer) if step.updates and any(step.lr)]
            stuck = _stuck(steps)
            for dtype in dict.fromkeys(stuck.values()):
                same = [tensor for tensor, kept in stuck.items() if kept == dtype]
                place = _chosen(facts, dtype, optimizer, steps[0])
                if (place.path, place.line) not in told:
                    told.add((place.path, place.line))
                    yield self._finding(facts, place, dtype, same, steps)

    def _finding(
        self, facts: Facts, place: Place, dtype: str, stuck: list[TensorId], steps: list[OptimizerStepped]
    ) -> Finding:
        tensor = stuck[0]
        name = facts.describe(tensor)
        update = next(update for update in steps[0].updates if update.tensor == tensor)
        rate = max(steps[0].lr)
        grad = update.grad
        return self.finding(
            facts,
            place,
            f"the steps are too small for {dtype}: {name} does not move",
            [
                f"In all {len(steps)} recorded steps {name} kept every bit, although its gradient was {say(grad)} "
                f"and the learning rate {say_number(rate)}.",
                f"In {dtype} a change below {say_number(SPACING.get(dtype, 0.0))} of a weight rounds back to the "
                f"old weight (norm of {name}: {say_number(update.size)}).",
            ],
            why=f"weight - update is rounded to the nearest {dtype} number, and that is the old weight.",
            fix="Keep the parameters in float32 (torch.autocast for the computation), or use float32 master weights."
            if dtype in METHODS
            else "Scale the parameter to the size of its updates, or keep it in float64.",
            evidence=[
                facts.evidence(steps[0], f"a step with a gradient of {say(grad)} changed no bit of {name}"),
                facts.evidence(steps[-1], f"the same in the last recorded step ({steps[-1].step})"),
            ],
            subjects=[facts.describe(one) for one in stuck],
        )


def _stuck(steps: list[OptimizerStepped]) -> dict[TensorId, str]:
    """Parameters with gradients that no recorded step moved, and the dtype of their gradients."""
    seen: dict[TensorId, list[bool]] = {}
    dtypes: dict[TensorId, str] = {}
    for step in steps:
        largest = max((update.grad.magnitude or 0.0 for update in step.updates if update.grad is not None), default=0.0)
        for update in step.updates:
            size = update.grad.magnitude if update.grad is not None else None
            if size is not None and size <= NEGLIGIBLE * largest:
                continue
            if update.grad is not None and size and finite(size) and update.change is not None:
                seen.setdefault(update.tensor, []).append(update.changed)
                dtypes[update.tensor] = update.grad.dtype
    return {tensor: dtypes[tensor] for tensor, moved in seen.items() if len(moved) >= STEPS and not any(moved)}


def _chosen(facts: Facts, dtype: str, optimizer: OptimizerId, step: OptimizerStepped) -> Place:
    """Where the program chose the dtype: the cast, or the call that passes it down; else where the step is."""
    if dtype in METHODS:
        for path in facts.ledger.sources():
            source = facts.source(path)
            casts = ("to", "type", METHODS[dtype], "Linear", "set_default_dtype")
            for call in calls(source.tree, *casts):
                if ran(facts, source, call) and (found := _literal(source, call, dtype)) is not None:
                    return facts.line(path, found)
    built = facts.optimizers[optimizer][0]
    return facts.place(step.site if step.site is not None else built.site)


def _literal(source: Source, call: ast.Call, dtype: str) -> int | None:
    """The line where a cast's dtype is written: in the cast itself, or in the call of the function around it."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == METHODS[dtype]:
        return call.lineno if _is_model(source, call.func.value) else None
    given = argument(call, "dtype", 0)
    for each in (given, *call.args[1:]):
        name = dotted(each)
        if _spells(name, dtype):
            is_model = not isinstance(call.func, ast.Attribute) or _is_model(source, call.func.value)
            return (
                call.lineno if is_model or callee(call)[:1].isupper() or callee(call) == "set_default_dtype" else None
            )
        if name and "." not in name:
            passed = _passed(source, call, name, dtype)
            if passed is not None:
                return passed
    return None


def _spells(name: str, dtype: str) -> bool:
    return name.rpartition(".")[2] in ({"float16": ("float16", "half")}.get(dtype, (dtype,)))


def _is_model(source: Source, owner: ast.expr) -> bool:
    """Whether an expression is a module: made on the spot, or a name that is called or asked for its parameters."""
    name = dotted(owner)
    if not name:
        return makes_module(owner)
    return any(dotted(call.func) in (name, f"{name}.parameters") for call in calls(source.tree))


def _passed(source: Source, call: ast.Call, name: str, dtype: str) -> int | None:
    """Where a variable gets the dtype: an assignment, or the argument of the enclosing function's parameter."""
    for node in ast.walk(source.tree):
        named = isinstance(node, ast.Assign) and any(dotted(target) == name for target in node.targets)
        if named and isinstance(node, ast.Assign) and _spells(dotted(node.value), dtype):
            return node.lineno
    function = source.function_at(call.lineno)
    if not isinstance(function, ast.FunctionDef):
        return None
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    position = names.index(name) if name in names else None
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    for outer in calls(source.tree, function.name):
        given = argument(outer, name, position)
        if _spells(dotted(given), dtype):
            return outer.lineno
    return defaults[name].lineno if name in defaults and _spells(dotted(defaults[name]), dtype) else None
