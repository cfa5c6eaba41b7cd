"""Module calls as they nest, and which modules do something else in training than in evaluation."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

import msgspec

from whygrad.ledger.events import (
    BackwardBegan,
    Module,
    ModuleCalled,
    ModuleId,
    Operation,
)
from whygrad.ledger.events import Source as SourceFile
from whygrad.rules.facts import Facts

TRACKING = re.compile(r"(Lazy|Sync)?BatchNorm(\dd)?$|(Lazy)?InstanceNorm\dd$")
DROPPING = re.compile(r"(Feature)?(Alpha)?Dropout(\dd)?$")


class Outermost(msgspec.Struct, frozen=True, eq=False):
    """A call from the user's own top level and the calls inside it, in the order in which they ended."""

    call: ModuleCalled
    inner: tuple[ModuleCalled, ...]

    @property
    def all(self) -> tuple[ModuleCalled, ...]:
        return (*self.inner, self.call)


def outermost_calls(facts: Facts) -> tuple[Outermost, ...]:
    """Every call of depth 0 with what ran inside it."""
    kept: tuple[Outermost, ...] | None = facts.__dict__.get("_outermost_calls")
    if kept is None:
        kept = facts.__dict__["_outermost_calls"] = tuple(_outermost_calls(facts))
    return kept


def _outermost_calls(facts: Facts) -> Iterator[Outermost]:
    inner: list[ModuleCalled] = []
    for call in facts.of(ModuleCalled):
        if call.depth == 0:
            yield Outermost(call, tuple(inner))
            inner = []
        else:
            inner.append(call)


def enclosing(facts: Facts, event: Operation | ModuleCalled) -> ModuleCalled | None:
    """The module call in which an operation, or another call, ran."""
    calls = facts.of(ModuleCalled)
    first = bisect_right(calls, event.seq, key=lambda call: call.seq)
    after = (call for call in islice(calls, first, None) if call.thread == event.thread)
    if isinstance(event, ModuleCalled):
        return next((call for call in after if call.depth < event.depth), None) if event.depth else None
    site = facts.site(event.site)
    if site is None or site.function == "<module>":
        return None
    owner = site.function.rpartition(".")[0].rpartition(".")[2]
    outer = None
    for call in after:
        module = facts.modules.get(call.module)
        if module is not None and owner and _is_a(facts, module.kind, owner):
            return call
        if call.depth == 0:
            outer = call
            break
    given = set(event.outputs)
    if outer is None or not given:
        return None
    results = [shape.tensor for shape in outer.outputs if shape.tensor is not None]
    made = set(results)
    for result in results:
        made.update(tensor for tensor, _ in facts.upstream(result, 300))
    return outer if made & given else None


def mode_matters(facts: Facts, module: Module | None) -> str:
    """What a module does otherwise in training than in evaluation; empty where it does the same in both."""
    if module is None:
        return ""
    if tracks_statistics(module):
        return "normalises with the batch's statistics and moves its running ones"
    if DROPPING.match(module.kind):
        return "" if re.match(r"p=0(\.0+)?(,|$)", module.config) else "drops elements"
    if module.kind in ("LSTM", "GRU", "RNN") and re.search(r"dropout=0?\.[0-9]*[1-9]", module.config):
        return "drops elements between its layers"
    if module.kind == "RReLU":
        return "draws random slopes"
    if asks_for_mode(facts, module.kind):
        return "asks self.training in its forward"
    return ""


def tracks_statistics(module: Module) -> bool:
    """Whether it is a normalisation whose running statistics move with every forward in training."""
    if not TRACKING.match(module.kind):
        return False
    if "InstanceNorm" in module.kind:
        return "track_running_stats=True" in module.config
    return "track_running_stats=False" not in module.config


def class_in_source(facts: Facts, kind: str) -> ast.ClassDef | None:
    """The class of the user's that is called `kind`."""
    return classes_in_source(facts).get(kind, (None, ""))[0]


def classes_in_source(facts: Facts) -> dict[str, tuple[ast.ClassDef, str]]:
    """The classes of the user's files: the definition and the file."""
    kept: dict[str, tuple[ast.ClassDef, str]] | None = facts.__dict__.get("_classes")
    if kept is None:
        kept = facts.__dict__["_classes"] = {
            node.name: (node, file.path)
            for file in facts.of(SourceFile)
            for node in ast.walk(facts.source(file.path).tree)
            if isinstance(node, ast.ClassDef)
        }
    return kept


def asks_for_mode(facts: Facts, kind: str) -> bool:
    """Whether the class of the user's that is called `kind` reads `self.training`."""
    found = class_in_source(facts, kind)
    return found is not None and any(
        isinstance(node, ast.Attribute) and node.attr == "training" and isinstance(node.ctx, ast.Load)
        for node in ast.walk(found)
    )


def inside_path(path: str, outer: str) -> bool:
    """Whether a module's path is `outer` or lies below it."""
    return bool(outer) and (path == outer or path.startswith(f"{outer}."))


def parts_of(facts: Facts, module: ModuleId) -> list[Module]:
    """The module and those inside it, by their paths."""
    outer = facts.modules.get(module)
    if outer is None:
        return []
    return [one for one in facts.modules.values() if one.id == module or inside_path(one.path, outer.path)]


def modules_of_pass(facts: Facts, began: BackwardBegan) -> set[ModuleId]:
    """The modules whose calls made the nodes of a backward pass."""
    found: set[ModuleId] = set()
    for root in began.root_nodes:
        found.update(node.module for node in facts.reached(root).values() if node.module is not None)
    return found


def _is_a(facts: Facts, kind: str, owner: str) -> bool:
    """Whether the class `kind` is `owner`, or is derived from it in the user's source."""
    for _ in range(10):
        if kind == owner:
            return True
        found = class_in_source(facts, kind)
        if found is None:
            return False
        kind = next((base.id for base in found.bases if isinstance(base, ast.Name)), "")
    return False
