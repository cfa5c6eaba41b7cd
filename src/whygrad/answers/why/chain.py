"""How a gradient comes about: the chain rule with the recorded values, or the expressions on the way back."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.answers.derive import Derivation, Status, derive
from whygrad.answers.why.answer import Sentence
from whygrad.answers.why.buffer import Buffer
from whygrad.answers.why.passes import nodes_reached, pass_of
from whygrad.answers.why.words import joined, quoted
from whygrad.ledger import Ledger
from whygrad.ledger.events import GradWritten, Node, NodeId, Site, SiteId

NODES = 300
"""Graphs of more nodes are not derived: it would take long, and fill pages."""

HOOK = "BackwardHookFunction"

STATIONS = 5
"""Expressions on the way back that are named."""


def explain_chain(ledger: Ledger, buffer: Buffer) -> list[Sentence]:
    """Why the last backward brought just this number."""
    if not buffer.writes or buffer.changes:
        return []
    written = buffer.writes[-1]
    entry = pass_of(ledger, written.backward)
    if entry is None or written.hooked:
        return []
    hooked = [node for node in nodes_reached(ledger, entry) if _is_hook(ledger.node(node))]
    if hooked:
        place = quoted(ledger, _site(ledger.node(hooked[0])))
        text = f"A module's backward hook was at work at {place}, and may have changed what arrived."
        return [Sentence(text, (entry.seq, written.seq))]
    derivation = _derived(ledger, written) if entry.began.nodes <= NODES else None
    if derivation is not None and derivation.symbolic:
        return [Sentence(_symbolic(derivation, last=len(buffer.steps) > 1), (written.seq,))]
    stations = _outermost(ledger, list(dict.fromkeys(_way(ledger, written))))
    if len(stations) < 2:
        return []
    shown = stations if len(stations) <= STATIONS else [*stations[:2], None, *stations[-2:]]
    way = [f"{len(stations) - 4} more" if site is None else quoted(ledger, site) for site in shown]
    what = f"what backward #{written.backward} brought" if len(buffer.steps) > 1 else "it"
    text = f"On its way back from the root {what} passed {joined(way)}; each multiplied it by its own slope."
    if derivation is not None and derivation.status is Status.AGREES and derivation.observed_text:
        text += " Central differences give the same."
    return [Sentence(text, (entry.seq, written.seq))]


def _is_hook(node: Node | None) -> bool:
    """Whether it is the node that PyTorch puts around a module with a full backward hook."""
    return node is not None and node.name.startswith(HOOK)


def _site(node: Node | None) -> SiteId | None:
    return node.site if node is not None else None


def _outermost(ledger: Ledger, way: list[SiteId | None]) -> list[SiteId | None]:
    """Of expressions inside each other the outermost; the last is the one that used the leaf."""
    kept: list[SiteId | None] = []
    for place in way:
        site, around = ledger.site(place), ledger.site(kept[-1]) if kept else None
        if site is None or (around is not None and is_within(site, around) and place != way[-1]):
            continue
        kept.append(place)
    return kept


def is_within(inner: Site, outer: Site) -> bool:
    return (
        inner.path == outer.path
        and (inner.line, inner.column) >= (outer.line, outer.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


def _derived(ledger: Ledger, written: GradWritten) -> Derivation | None:
    """The derivation; an answer stands without one, too."""
    try:
        return derive(ledger, written)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None


def _symbolic(derivation: Derivation, *, last: bool) -> str:
    """`By the chain rule d/dw (2*w - 1)^2 = 2*(2*w - 1) * 2 = 4*(2*w - 1) = 20 at w = 3.`"""
    at = f" at {derivation.point}" if derivation.point else ""
    text = f"{'For the last of them, by' if last else 'By'} the chain rule {derivation.equation()}{at}"
    if derivation.status is Status.AGREES:
        return f"{text}."
    return f"{text}; the observed {derivation.observed_text} is not that."


def _way(ledger: Ledger, written: GradWritten) -> Iterator[SiteId | None]:
    """The expressions from the root to the leaf, along the first term."""
    entry = pass_of(ledger, written.backward)
    if entry is None or not written.contributions:
        return
    above = nodes_reached(ledger, entry)
    climb: list[NodeId] = []
    current = written.contributions[0].node
    while current is not None and current not in climb:
        climb.append(current)
        current = above.get(current)
    for node in reversed(climb):
        known = ledger.node(node)
        if known is not None and known.site is not None:
            yield known.site
