"""Where the user's code makes a thing: the constructor's call of a module, the line that gave a tensor its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import DataChanged, Module, ModuleId, Named, OptimizerStepped, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Place


def constructor(facts: Facts, module: ModuleId | None) -> Place | None:
    """The line that calls the class of a module: in the class of its parent, or the statement that named the model."""
    known = facts.modules.get(module) if module is not None else None
    if known is None:
        return None
    calls = list(calls_of(facts, known.kind))
    if not calls:
        return None
    return max(calls, key=lambda call: _likeness(facts, known, *call))[0]


def calls_of(facts: Facts, name: str) -> Iterator[tuple[Place, ast.Call]]:
    """The calls of something of this name (`nn.ReLU(...)`, `ReLU(...)`) in the user's files."""
    for path in facts.ledger.sources():
        source = facts.source(path)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and last_name(node.func) == name:
                yield facts.line(path, node.lineno), node


def last_name(node: ast.expr) -> str:
    """`ReLU` of `torch.nn.ReLU`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _likeness(facts: Facts, module: Module, place: Place, call: ast.Call) -> tuple[int, int]:
    """How well a call fits the module's path: assigned to its name, in its parent's class, among its root's layers."""
    source = facts.source(place.path)
    parts = module.path.split(".")
    score = 0
    kinds = {other.kind for other in facts.modules.values() if other.path and module.path.startswith(other.path + ".")}
    for outer in source.around(call):
        if isinstance(outer, ast.Assign | ast.AnnAssign):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            parts_of = [child for target in targets for child in ast.walk(target) if isinstance(child, ast.expr)]
            named = {last_name(child) for child in parts_of}
            score += 4 * (parts[-1] in named) + 2 * (parts[0] in named) + 2 * bool(named.intersection(parts[1:-1]))
        if isinstance(outer, ast.ClassDef) and outer.name in kinds:
            score += 3
    return score, -place.line


def initialised(facts: Facts, tensor: TensorId, before: int) -> Place | None:
    """The line that last gave a leaf its value before an event: a write by the user's code, else where it was made."""
    stepped = next((step.seq for step in facts.of(OptimizerStepped)), before)
    for change in reversed(facts.of(DataChanged)):
        if change.tensor == tensor and change.seq < min(before, stepped) and change.site is not None:
            return facts.place(change.site)
    return made_at(facts, tensor)


def made_at(facts: Facts, tensor: TensorId) -> Place | None:
    """The line that made a leaf; a module's parameter is made by the module's constructor."""
    maker = facts.makers.get(tensor)
    if maker is not None and maker.site is not None:
        return facts.place(maker.site)
    for owner in facts.owners.get(tensor, ()):
        place = constructor(facts, owner.module)
        if place is not None:
            return place
    known = facts.tensors.get(tensor)
    if known is not None and known.site is not None:
        return facts.place(known.site)
    named = next((one for one in facts.of(Named) if one.tensor == tensor and one.site is not None), None)
    return facts.place(named.site) if named is not None else None
