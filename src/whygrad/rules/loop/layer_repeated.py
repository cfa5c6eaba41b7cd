"""WG501: one layer stands in every place of a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import BackwardBegan, Module, ModuleCalled, ModuleId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, calls, dotted, function_of, makes_module, replace


class LayerRepeated(Rule):
    """A stack of layers is one layer, repeated.

    `[Layer()] * n` makes one object and n references to it, and so does `[layer for _ in range(n)]` with a layer that
    was made before. All places of the `ModuleList` or `Sequential` share one set of weights: the model has the
    parameter count of a single layer, every "layer" shows the same gradient, and that gradient is the sum over all
    its uses.

    **How to put it right.** Make a layer for each place: `[Layer() for _ in range(n)]`.
    """

    code = "WG501"
    slug = "layer-repeated"
    intended = "the layers are to share their weights, as in a universal transformer"
    search = (
        "all layers have the same weights",
        "ModuleList layers identical gradient",
        "parameter count of a single layer",
        "list multiplication nn.ModuleList",
    )
    explains = ()
    wrong = (
        """
        import torch
        from torch import nn

        class Stack(nn.Module):
            def __init__(self, width, depth):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(width, width)] * depth)  # <- here

            def forward(self, x):
                for layer in self.layers:
                    x = torch.tanh(layer(x))
                return x

        model = Stack(4, 3)
        model(torch.randn(8, 4)).square().mean().backward()
        """,
        """
        import torch
        from torch import nn

        block = nn.Linear(4, 4)
        model = nn.Sequential(*[block for _ in range(3)], nn.Linear(4, 1))  # <- here
        model(torch.randn(8, 4)).square().mean().backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn

        class Stack(nn.Module):
            def __init__(self, width, depth):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
                self.activations = [nn.ReLU()] * depth

            def forward(self, x):
                for layer, activation in zip(self.layers, self.activations):
                    x = activation(layer(x))
                return x

        model = Stack(4, 3)
        model(torch.randn(8, 4)).square().mean().backward()
        """,
        """
        import torch
        from torch import nn

        class Universal(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.block = nn.Linear(width, width)

            def forward(self, x):
                for _ in range(3):
                    x = torch.tanh(self.block(x))
                return x

        model = Universal(4)
        model(torch.randn(8, 4)).square().mean().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        shared = _called_again(facts)
        if not shared:
            return
        for path in facts.ledger.sources():
            source = facts.source(path)
            for node, element in _repetitions(source.tree):
                found = _which(facts, source, element, shared)
                if found is not None:
                    module, call, times = found
                    yield self._finding(facts, source, node, element, module, call, times)

    def _finding(
        self,
        facts: Facts,
        source: Source,
        node: ast.expr,
        element: ast.expr,
        module: Module,
        call: ModuleCalled,
        times: int,
    ) -> Finding:
        name = module.path or module.kind
        return self.finding(
            facts,
            facts.line(source.path, node.lineno),
            f"every place of the list holds the same {module.kind}",
            [
                f"`{source.segment(node)}` repeats one object: {name} was called {times} times in one pass "
                f"({facts.ledger.where(call.site)}), with one set of weights.",
                "Its gradient is the sum over all places, and every place shows the same numbers.",
            ],
            why="Multiplying a list copies references, it does not make new layers.",
            fix="Build one layer for each place in a comprehension: [Layer(...) for _ in range(n)].",
            evidence=[facts.evidence(call, f"{name} was called again ({times} times before the backward)")],
            subjects=[name],
            edits=_edits(source, node, element),
        )


def _repetitions(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Every expression that puts one object into all places of a list, and the object's expression."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side in (node.left, node.right):
                if isinstance(side, (ast.List, ast.Tuple)):
                    for element in side.elts:
                        if makes_module(element) or isinstance(element, (ast.Name, ast.Attribute)):
                            yield node, element
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and isinstance(node.elt, ast.Name):
            targets = {
                name.id for each in node.generators for name in ast.walk(each.target) if isinstance(name, ast.Name)
            }
            counted = isinstance(node.generators[0].iter, ast.Call) and callee(node.generators[0].iter) == "range"
            if node.elt.id not in targets and counted:
                yield node, node.elt
        elif isinstance(node, ast.Call) and callee(node) in ("repeat", "fromkeys") and node.args:
            element = node.args[-1] if callee(node) == "fromkeys" else node.args[0]
            if makes_module(element):
                yield node, element


def _called_again(facts: Facts) -> dict[ModuleId, tuple[ModuleCalled, int]]:
    """Modules with parameters that were called more than once before a backward or the end: the second call, how often.

    Counted within one call of the outermost module, where there is one.
    """
    found: dict[ModuleId, tuple[ModuleCalled, int]] = {}
    counts: dict[ModuleId, int] = {}
    for event in facts.events:
        if isinstance(event, BackwardBegan):
            counts.clear()
        elif isinstance(event, ModuleCalled) and not event.error:
            counts[event.module] = times = counts.get(event.module, 0) + 1
            if times > 1 and times > found.get(event.module, (event, 0))[1]:
                first = found.get(event.module, (event, 0))[0]
                found[event.module] = first, times
            if event.depth == 0 and any(call for call in counts if call != event.module):
                counts = {event.module: counts[event.module]}
    return {module: told for module, told in found.items() if _has_parameters(facts, module)}


def _has_parameters(facts: Facts, module: ModuleId) -> bool:
    known = facts.modules.get(module)
    if known is None:
        return False
    inside = f"{known.path}."
    return any(
        other.parameters and (other.id == module or other.path.startswith(inside)) for other in facts.modules.values()
    )


def _which(
    facts: Facts, source: Source, element: ast.expr, shared: dict[ModuleId, tuple[ModuleCalled, int]]
) -> tuple[Module, ModuleCalled, int] | None:
    """The module that an element is, among those that were called again."""
    kind = callee(element) if makes_module(element) else _made_as(source, element)
    for module, (call, times) in shared.items():
        known = facts.modules[module]
        if kind and known.kind == kind:
            return known, call, times
        if not kind and known.path.rpartition(".")[2] == "0":
            return known, call, times
    return None


def _made_as(source: Source, element: ast.expr) -> str:
    """The class of the object that a name was last given, where the text shows it."""
    wanted, scope = dotted(element), function_of(source, element)
    kinds = [
        callee(value)
        for statement, target, value in assignments(source.tree)
        if dotted(target) == wanted and makes_module(value) and function_of(source, statement) is scope
    ]
    return kinds[-1] if kinds else ""


def _edits(source: Source, node: ast.expr, element: ast.expr) -> list[Edit]:
    if not isinstance(node, ast.BinOp) or not makes_module(element):
        return []
    listed, times = (node.left, node.right) if isinstance(node.left, (ast.List, ast.Tuple)) else (node.right, node.left)
    if not isinstance(listed, ast.List) or len(listed.elts) != 1:
        return []
    if any(True for _ in calls(times)) and not isinstance(times, ast.Call):
        return []
    return [replace(source, node, f"[{source.segment(element)} for _ in range({source.segment(times)})]")]
