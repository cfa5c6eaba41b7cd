"""Leaves whose gradient is exactly zero in the whole run, and the flat operation that every way back to them passes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import GradWritten, Node, NodeId, Operation, StepsFolded, TensorId
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.flow import is_zero
from whygrad.rules.memo import once
from whygrad.rules.terms import tensors_of

JUMPS = ("Round", "Sign", "Floor", "Ceil", "Trunc", "Frac", "Heaviside")
BOUNDS = ("Clamp", "ClampMin", "ClampMax", "Hardtanh", "Hardsigmoid", "Relu6", "Threshold", "Maximum", "Minimum")
RELUS = ("Relu",)
CURVES = ("Sigmoid", "Tanh", "Exp", "Softplus", "Erf", "LogSigmoid")
KINDS = JUMPS + BOUNDS + RELUS + CURVES


class Flat(msgspec.Struct, frozen=True):
    """A node with slope 0 for every element, the leaves behind it, and a write of a zero gradient to one of them.

    `proven` where the recorded values show it; else it is the only operation on the way that can be flat.
    """

    node: Node
    kind: str
    operation: Operation | None
    leaves: tuple[TensorId, ...]
    write: GradWritten
    entry: Pass
    reason: str
    proven: bool


def satisfied(flat: Flat) -> bool:
    """Whether the loss itself is 0, so that there is nothing to learn in this run."""
    root = flat.entry.began.root_value
    return root is None or is_zero(root)


@once
def flats(facts: Facts) -> tuple[Flat, ...]:
    found: dict[NodeId, tuple[Flat, list[TensorId]]] = {}
    passes = {entry.id: entry for entry in facts.passes}
    made = {one.node: one for one in facts.of(Operation) if one.node is not None}
    for write in _always_zero(facts):
        entry = passes[write.backward]
        candidates = []
        for node in _necessary(facts, entry, write):
            kind = _kind(node)
            if kind in KINDS:
                candidates.append((node, kind, *_reason(facts, kind, made.get(node.id))))
        sure = [one for one in candidates if one[3] is True]
        unsure = [one for one in candidates if one[3] is None]
        chosen = sure[0] if sure else (unsure[0] if len(unsure) == 1 else None)
        if chosen is None:
            continue
        node, kind, reason, proven = chosen
        flat = Flat(node, kind, made.get(node.id), (), write, entry, reason, proven is True)
        found.setdefault(node.id, (flat, []))[1].append(write.tensor)
    return tuple(msgspec.structs.replace(flat, leaves=tuple(leaves)) for flat, leaves in found.values())


def _always_zero(facts: Facts) -> Iterator[GradWritten]:
    """The first write of each leaf that never got anything but zeros."""
    writes: dict[TensorId, list[GradWritten]] = {}
    for write in facts.of(GradWritten):
        writes.setdefault(write.tensor, []).append(write)
    moving = {
        fold.tensor
        for folded in facts.of(StepsFolded)
        for fold in folded.buffers
        if fold.writes and fold.norm_high not in (None, 0, 0.0)
    }
    for tensor, told in writes.items():
        zero = all(is_zero(one.after) and all(is_zero(part.value) for part in one.contributions) for one in told)
        if zero and tensor not in moving:
            yield told[0]


def _kind(node: Node) -> str:
    return node.name.partition("Backward")[0]


def _necessary(facts: Facts, entry: Pass, write: GradWritten) -> Iterator[Node]:
    """The nodes that every way from the root to a leaf passes, nearest to the leaf first."""
    nodes: dict[NodeId, Node] = {}
    for root in entry.began.root_nodes:
        nodes.update(facts.reached(root))
    feeders = {part.node for part in write.contributions if part.node is not None}
    for node in reversed(list(nodes.values())):
        if _kind(node) in KINDS and not _reach(nodes, entry, feeders, without=node.id):
            yield node


def _reach(nodes: dict[NodeId, Node], entry: Pass, feeders: set[NodeId], without: NodeId) -> bool:
    seen = {root for root in entry.began.root_nodes if root is not None and root != without}
    queue = list(seen)
    for current in queue:
        if current in feeders:
            return True
        for edge in nodes[current].edges if current in nodes else ():
            if edge.node is not None and edge.node != without and edge.node not in seen:
                seen.add(edge.node)
                queue.append(edge.node)
    return False


def _reason(facts: Facts, kind: str, operation: Operation | None) -> tuple[str, bool | None]:
    """Why a node is flat, and whether the values show it: True, False (they show that it is not), None (unknown)."""
    if kind in JUMPS:
        return f"{kind.lower()} is flat between its jumps, so its slope is 0 everywhere", True
    gave = operation.value if operation is not None else None
    given = None
    if operation is not None:
        tensors = tensors_of(operation.inputs)
        given = facts.value(tensors[0], operation.seq) if tensors else None
    if kind in RELUS:
        return "relu gave 0 for every element, and its slope is 0 there", None if gave is None else is_zero(gave)
    if kind in BOUNDS:
        text = "every element lies outside the bounds and is set to one of them, where the slope is 0"
        return text, _all_changed(given, gave)
    ends = {"Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Erf": (-1.0, 1.0)}.get(kind, (0.0,))
    text = f"{kind.lower()} is at the end of its range for every element, where its slope is 0 in this precision"
    if gave is None or gave.items is None:
        return text, False
    return text, all(item in ends for item in gave.items)


def _all_changed(given: Value | None, gave: Value | None) -> bool | None:
    if given is None or gave is None or given.items is None or gave.items is None:
        return None
    if len(given.items) != len(gave.items):
        return None
    return all(a != b for a, b in zip(given.items, gave.items, strict=True))
