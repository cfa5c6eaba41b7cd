"""The backward passes up to a moment: each with its beginning, its end, and the buffers that it wrote."""

from __future__ import annotations

import msgspec

from whygrad.answers.why.answer import Moment
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    BackwardBegan,
    BackwardEnded,
    BackwardId,
    NodeId,
    TensorId,
)


class Pass(msgspec.Struct, frozen=True):
    """One backward pass; `ended` is None where the program (or the ledger) stopped within it."""

    began: BackwardBegan
    ended: BackwardEnded | None

    @property
    def error(self) -> str:
        return self.ended.error if self.ended is not None else ""

    @property
    def seq(self) -> int:
        return self.began.seq


def passes_until(ledger: Ledger, moment: Moment) -> tuple[Pass, ...]:
    """The passes that had begun by `moment`, in order."""
    ended = {event.id: event for event in ledger.of(BackwardEnded) if event.seq <= moment.seq}
    return tuple(Pass(began, ended.get(began.id)) for began in ledger.of(BackwardBegan) if began.seq <= moment.seq)


def pass_of(ledger: Ledger, backward: BackwardId | None) -> Pass | None:
    """The pass with this number."""
    began = next((event for event in ledger.of(BackwardBegan) if event.id == backward), None)
    if began is None:
        return None
    return Pass(began, next((event for event in ledger.of(BackwardEnded) if event.id == backward), None))


def pass_text(ledger: Ledger, entry: Pass) -> str:
    """`backward #1 (line 9)`."""
    call = "backward" if entry.began.call == "backward" else entry.began.call
    return f"{call} #{entry.began.id} ({ledger.where(entry.began.site)})"


def nodes_reached(ledger: Ledger, entry: Pass, without: NodeId | None = None) -> dict[NodeId, NodeId | None]:
    """Every node that the pass could reach, with the node that led to it (None for a root), nearest first.

    `without` is a node that is not passed.
    """
    roots = [node for node in entry.began.root_nodes if node is not None and node != without]
    found: dict[NodeId, NodeId | None] = dict.fromkeys(roots)
    queue = list(found)
    for current in queue:
        node = ledger.node(current)
        for edge in node.edges if node is not None else ():
            if edge.node is not None and edge.node not in found and edge.node != without:
                found[edge.node] = current
                queue.append(edge.node)
    return found


def nodes_above(ledger: Ledger, entry: Pass, leaf: TensorId) -> tuple[NodeId, ...]:
    """The nodes that send a gradient to `leaf` in this pass."""
    feeders = []
    for reached in nodes_reached(ledger, entry):
        node = ledger.node(reached)
        if node is not None and any(edge.leaf == leaf for edge in node.edges):
            feeders.append(reached)
    return tuple(feeders)
