"""Writes that the version counter does not show: a gradient that was computed from other values than the forward."""

from __future__ import annotations

from whygrad.answers.why.answer import Sentence
from whygrad.answers.why.buffer import Buffer
from whygrad.answers.why.passes import nodes_reached, pass_of
from whygrad.answers.why.words import quoted
from whygrad.ledger import Ledger
from whygrad.ledger.events import DataChanged, NodeId, Operation


def explain_hidden(ledger: Ledger, buffer: Buffer) -> list[Sentence]:
    """A sentence for each tensor that was written through `.data` between its saving and the backward."""
    changes = [change for change in ledger.of(DataChanged) if change.hidden]
    if not changes or not buffer.writes:
        return []
    written = buffer.writes[-1]
    entry = pass_of(ledger, written.backward)
    if entry is None:
        return []
    made: dict[NodeId, int] = {event.node: event.seq for event in ledger.of(Operation) if event.node is not None}
    sentences = []
    for reached in nodes_reached(ledger, entry):
        node = ledger.node(reached)
        for saved in node.saved if node is not None else ():
            for change in changes:
                if change.tensor == saved.tensor and made.get(reached, 0) < change.seq < entry.seq and node is not None:
                    name, keeper = ledger.describe(change.tensor), quoted(ledger, node.site)
                    text = (
                        f"{quoted(ledger, change.site)} wrote into {name} unseen by autograd, after {keeper} had saved "
                        "it: the backward used the new values."
                    )
                    sentences.append(Sentence(text, (change.seq, node.seq, written.seq)))
    return list(dict.fromkeys(sentences))
