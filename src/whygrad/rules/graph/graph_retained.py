"""WG222: retain_graph=True, and no other backward goes through that graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import NodeId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.rule import Rule


class GraphRetained(Rule):
    """retain_graph=True is not needed: no second backward goes through that graph.

    `retain_graph=True` keeps everything that the graph saved until the last reference to it goes. It is often put there
    to silence "Trying to backward through the graph a second time", where the cause is a value that should have been
    detached; and it is left there when the second backward is gone. Memory peaks higher than it has to.

    **How to put it right.** Leave it out. If the error comes back, find what carries the old graph and detach it.
    """

    code = "WG222"
    slug = "graph-retained"
    severity = Severity.NOTE
    search = ("retain_graph=True memory", "when to use retain_graph")
    wrong = (
        """
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(5, 3)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward(retain_graph=True)  # <- here
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Linear(3, 2)
        h = model(torch.randn(5, 3))
        h[:, 0].sum().backward(retain_graph=True)
        h[:, 1].sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        kept: dict[object, list[Pass]] = {}
        for entry in facts.passes:
            if entry.began.call == "backward" and entry.began.retain_graph and not entry.began.create_graph:
                kept.setdefault(entry.began.site, []).append(entry)
        if not kept:
            return
        nodes = {entry.id: _nodes(facts, entry) for entry in facts.passes}
        for entries in kept.values():
            again = any(
                other.began.seq > entry.began.seq and nodes[entry.id] & nodes[other.id]
                for entry in entries
                for other in facts.passes
            )
            if not again and all(nodes[entry.id] for entry in entries):
                yield self._found(facts, entries)

    def _found(self, facts: Facts, entries: list[Pass]) -> Finding:
        entry = entries[0]
        times = len(entries)
        return self.finding(
            facts,
            facts.place(entry.began.site),
            "retain_graph=True keeps a graph that nothing uses again",
            [
                f"This backward kept the graph of {entry.began.nodes} nodes {times} time{'s' * (times > 1)}; in what "
                "was recorded, no other pass goes through any of those nodes."
            ],
            why="retain_graph=True keeps the saved values of the graph in memory for another pass.",
            fix="Leave retain_graph=True out.",
            evidence=[facts.evidence(one.began, "a backward that keeps its graph") for one in entries[:2]],
            edits=_without(facts, entry),
        )


def _nodes(facts: Facts, entry: Pass) -> set[NodeId]:
    return {node for root in entry.began.root_nodes for node in facts.reached(root)}


def _without(facts: Facts, entry: Pass) -> tuple[Edit, ...]:
    site = facts.site(entry.began.site)
    node = facts.source(site.path).expression(site) if site is not None else None
    if site is None or not isinstance(node, ast.Call) or len(node.keywords) != 1 or node.args:
        return ()
    word = node.keywords[0]
    if word.arg != "retain_graph" or word.lineno != word.end_lineno or word.end_col_offset is None:
        return ()
    line = facts.source(site.path).line(word.lineno).encode()
    first, last = (len(line[:at].decode("utf-8", "replace")) for at in (word.col_offset, word.end_col_offset))
    return (Edit(site.path, word.lineno, first, word.lineno, last, ""),)
