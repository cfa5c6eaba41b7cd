"""What the nodes of the backward graph say about a derivation: by which ways a gradient came."""

from __future__ import annotations

import re

from whygrad.answers.derive.budget import NODE_WORK, Budget
from whygrad.answers.derive.replay import Replay
from whygrad.ledger import Ledger
from whygrad.ledger.events import BackwardBegan, Contribution, Node, NodeId, TensorId

BUILT_IN = re.compile(r"(Backward\d+|AccumulateGrad|CopySlices|GraphRoot|Error)$")
"""PyTorch numbers the nodes of its own operations; a custom `autograd.Function` has no number."""

NODE_LIMIT = 5_000


def foreign_node(ledger: Ledger, began: BackwardBegan, target: TensorId, budget: Budget) -> Node | None:
    """A node of a custom `autograd.Function` (a reentrant checkpoint is one) between the roots and the target."""
    reached = _reaching(ledger, began, target)
    budget.spend(NODE_WORK * len(reached))
    return next((node for node in reached if not BUILT_IN.search(node.name)), None)


def _reaching(ledger: Ledger, began: BackwardBegan, target: TensorId) -> list[Node]:
    """The nodes from which the target's buffer is reached; all nodes where the target is no leaf."""
    nodes: dict[NodeId, Node] = {}
    waiting = [node for node in began.root_nodes if node is not None]
    users: dict[NodeId | TensorId, list[NodeId]] = {}
    leaves: dict[TensorId, list[NodeId]] = {}
    while waiting and len(nodes) < NODE_LIMIT:
        known = waiting.pop()
        node = ledger.node(known) if known not in nodes else None
        if node is None:
            continue
        nodes[known] = node
        for edge in node.edges:
            if edge.leaf is not None:
                leaves.setdefault(edge.leaf, []).append(known)
            elif edge.node is not None:
                users.setdefault(edge.node, []).append(known)
                waiting.append(edge.node)
    if target not in leaves:
        return list(nodes.values())
    found: dict[NodeId, None] = {}
    waiting = leaves[target]
    while waiting:
        known = waiting.pop()
        if known not in found:
            found[known] = None
            waiting.extend(users.get(known, ()))
    return [nodes[known] for known in found]


def other_ways(ledger: Ledger, replay: Replay, contributions: tuple[Contribution, ...]) -> str:
    """A sentence when the gradient came through other expressions than those that use the target in the replay.

    Then the replay is not what autograd had, whatever the numbers say.
    """
    targets = set(replay.graph.targets)
    used = {step.site for step in replay.moving if targets.intersection(step.refs()) and step.site is not None}
    came = {term.site for term in contributions if term.site is not None}
    if not used or not came or used == came:
        return ""
    ways = " and ".join(sorted({ledger.where(site) for site in came ^ used}))
    return f"the record of {ways} does not tell how the gradient came through it"
