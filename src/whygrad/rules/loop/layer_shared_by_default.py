"""WG522: objects of a class share a layer that was made once, with the class or the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradWritten, Module, ModuleCalled, ModuleId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, dotted, makes_module


class LayerSharedByDefault(Rule):
    """Several blocks share one layer: it is a default argument, or an attribute of the class.

    Python evaluates a default argument once, when the function is defined, and a class attribute once, when the class
    is. `def __init__(self, norm=nn.LayerNorm(8))` gives the *same* LayerNorm to every object; its gradient is the sum
    over all of them. A layer that is a class attribute is not registered either: the optimizer does not know it.

    **How to put it right.** Make the layer in the body of `__init__`; take None, or the class, as the default.
    """

    code = "WG522"
    slug = "layer-shared-by-default"
    severity = Severity.WARNING
    explains = ("WG504", "WG505")
    search = (
        "nn.Module default argument shared",
        "class attribute nn.Linear not in parameters",
        "mutable default argument layer",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Block(nn.Module):
            def __init__(self, norm=nn.LayerNorm(4)):  # <- here
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.norm = norm

            def forward(self, x):
                return self.norm(self.linear(x))

        model = nn.Sequential(Block(), Block())
        model(torch.randn(8, 4)).square().mean().backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Block(nn.Module):
            def __init__(self, norm=nn.LayerNorm, activation=nn.ReLU()):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.norm = norm(4)
                self.activation = activation

            def forward(self, x):
                return self.norm(self.activation(self.linear(x)))

        model = nn.Sequential(Block(), Block())
        model(torch.randn(8, 4)).square().mean().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for path in facts.ledger.sources():
            source = facts.source(path)
            for owner in ast.walk(source.tree):
                if isinstance(owner, ast.ClassDef):
                    for node, name in (*_defaults(owner), *_attributes(owner)):
                        found = _shared(facts, source, owner, callee(node))
                        if found is not None:
                            yield self._finding(facts, source, node, name, owner, *found)

    def _finding(
        self,
        facts: Facts,
        source: Source,
        node: ast.expr,
        name: str,
        owner: ast.ClassDef,
        module: Module,
        made: list[ModuleCalled],
        write: GradWritten,
    ) -> Finding:
        return self.finding(
            facts,
            facts.line(source.path, node.lineno),
            f"one {module.kind} serves every {owner.name}",
            [
                f"`{name}` was made once; {len(made)} recorded calls from {owner.name} used that one {module.kind}.",
                f"Its gradient is the sum of all uses: {say(write.after)}.",
            ],
            why="Defaults and class attributes are evaluated once, when the function or class is defined.",
            fix="Make the layer in the body of __init__.",
            evidence=[
                *[facts.evidence(call, f"the same {module.kind} was called") for call in made[:2]],
                facts.evidence(write, f"{facts.describe(write.tensor)}.grad = {say(write.after)}"),
            ],
            subjects=[facts.describe(tensor) for _, tensor in module.parameters],
        )


def _defaults(owner: ast.ClassDef) -> Iterator[tuple[ast.expr, str]]:
    """Layers that are made as defaults of a method's parameters."""
    for method in owner.body:
        if isinstance(method, ast.FunctionDef):
            names = [one.arg for one in (*method.args.posonlyargs, *method.args.args)]
            given = list(zip(reversed(names), reversed(method.args.defaults), strict=False))
            given += [
                (one.arg, value)
                for one, value in zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)
                if value
            ]
            yield from ((value, name) for name, value in given if makes_module(value))


def _attributes(owner: ast.ClassDef) -> Iterator[tuple[ast.expr, str]]:
    for statement in owner.body:
        for _, target, value in assignments(statement):
            if (
                isinstance(statement, (ast.Assign, ast.AnnAssign))
                and makes_module(value)
                and isinstance(target, ast.Name)
            ):
                yield value, dotted(target)


def _shared(
    facts: Facts, source: Source, owner: ast.ClassDef, kind: str
) -> tuple[Module, list[ModuleCalled], GradWritten] | None:
    """A layer of this kind with parameters that several objects of the class called, and a gradient of it."""
    last = owner.end_lineno or owner.lineno
    objects = {module.id for module in facts.modules.values() if module.kind == owner.name}
    if len(objects) < 2:
        return None
    by_module: dict[ModuleId, list[ModuleCalled]] = {}
    first = facts.passes[0].began.seq if facts.passes else 0
    for call in facts.of(ModuleCalled):
        site = facts.site(call.site)
        inside = site is not None and site.path == source.path and owner.lineno <= site.line <= last
        if inside and call.seq < first and facts.modules[call.module].kind == kind:
            by_module.setdefault(call.module, []).append(call)
    used = {outer.module for outer in facts.of(ModuleCalled) if outer.module in objects and outer.seq < first}
    often = [module for module, made in by_module.items() if len(made) >= len(used) > 1]
    for module, made in by_module.items():
        known = facts.modules[module]
        held = {tensor for _, tensor in known.parameters}
        write = next((one for one in facts.of(GradWritten) if one.tensor in held), None)
        if often == [module] and write is not None:
            return known, made, write
    return None
