"""WG401: a softmax or sigmoid in front of a loss that applies its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import ModuleCalled, Node, Operation
from whygrad.rules.construction import constructed
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Evidence, Finding, Place, Severity
from whygrad.rules.flow import behind, computed_by, kind_of
from whygrad.rules.losscalls import loss_calls, plain
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source

OWN = {
    "LogSoftmax": "log_softmax",
    "BinaryCrossEntropyWithLogits": "sigmoid",
    "Logsumexp": "logsumexp",
}
"""What these nodes apply to the logits that they are given."""

SQUASHING = {"Softmax": "softmax", "Sigmoid": "sigmoid", "LogSoftmax": "log_softmax", "Relu": "relu"}
FUNCTIONS = {"softmax": "Softmax", "sigmoid": "Sigmoid", "log_softmax": "LogSoftmax", "relu": "Relu"}
LOSSES = {"cross_entropy": "LogSoftmax", "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogits"}


class Squashed(msgspec.Struct, frozen=True, eq=False):
    """Where logits were squashed before a loss that squashes them itself: `by` what, `own` what the loss applies."""

    by: str
    own: str
    place: Place
    module: str
    loss: Place
    evidence: tuple[Evidence, ...]
    source: Source | None = None
    call: ast.Call | None = None


class SoftmaxBeforeLoss(Rule):
    """The loss gets stuck above zero: softmax (or sigmoid) is applied twice.

    `CrossEntropyLoss` and `F.cross_entropy` take logits and apply `log_softmax` themselves; `BCEWithLogitsLoss`
    applies the sigmoid. If the model already ends with a softmax or sigmoid, the loss sees numbers between 0 and 1 as
    logits: for C classes it cannot fall below log(1 + (C - 1)/e) (0.5514 for 3 classes, 0.3133 for 2), and the
    gradient is flat where the model is sure. A `log_softmax` in front changes nothing (it is idempotent) but is idle.

    **How to see it.** In the graph, the loss's own log_softmax rests directly on another softmax.

    **How to put it right.** Remove the softmax or sigmoid from the model and apply it only where probabilities are
    shown; or keep log_softmax and use `NLLLoss`.
    """

    code = "WG401"
    slug = "softmax-before-loss"
    search = (
        "cross entropy loss stuck",
        "loss does not go below 0.55",
        "CrossEntropyLoss softmax in model",
        "BCEWithLogitsLoss sigmoid twice",
        "double softmax",
        "loss plateaus although accuracy is 100 %",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))  # <- here
        loss = nn.CrossEntropyLoss()(model(torch.randn(8, 4)), torch.arange(8) % 3)
        loss.backward()
        """,
        """
        import torch
        import torch.nn.functional as F
        from torch import nn
        torch.manual_seed(0)
        layer = nn.Linear(4, 1)
        probability = torch.sigmoid(layer(torch.randn(8, 4))).squeeze(1)  # <- here
        F.binary_cross_entropy_with_logits(probability, torch.ones(8)).backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        from torch import nn
        torch.manual_seed(0)
        layer, head = nn.Linear(4, 3), nn.Linear(3, 3)
        x, y = torch.randn(8, 4), torch.arange(8) % 3
        F.cross_entropy(layer(x), y).backward()
        F.nll_loss(F.log_softmax(layer(x), dim=1), y).backward()
        F.cross_entropy(head(torch.softmax(layer(x), dim=1)), y).backward()
        F.binary_cross_entropy(torch.sigmoid(layer(x)), torch.ones(8, 3)).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        for found in (*_in_graphs(facts), *_in_calls(facts)):
            key = found.place.path, found.place.line
            if key not in seen:
                seen.add(key)
                yield self._found(facts, found)

    def _found(self, facts: Facts, found: Squashed) -> Finding:
        twice = found.by == found.own
        name = found.module or f"`{found.place.code}`"
        consequence = {
            "softmax": "The loss sees probabilities between 0 and 1 as logits: it cannot approach 0 (for C classes the "
            "floor is log(1 + (C - 1)/e)), and its gradient is flat where the model is sure.",
            "sigmoid": "The loss sees numbers between 0 and 1 as logits: it cannot approach 0, and its gradient is "
            "flat where the model is sure.",
            "log_softmax": "log_softmax of a log_softmax is the same again: the result is right, the first one idle.",
            "relu": "Logits below zero become 0: no class can be ruled out, and those logits get no gradient.",
        }[found.by]
        return self.finding(
            facts,
            found.place,
            f"{found.by} is applied to the logits before a loss that applies {'it' if twice else found.own} itself",
            [f"The loss on {found.loss.where} applied {found.own} to the result of {name}, a {found.by}.", consequence],
            why="Losses on logits do their own normalisation, in a numerically stable way.",
            fix=f"Give the loss the logits: remove the {found.by} here, and apply it only where probabilities are "
            "needed.",
            evidence=found.evidence,
            subjects=[name],
            severity={"log_softmax": Severity.NOTE, "relu": Severity.WARNING}.get(found.by, Severity.ERROR),
            edits=_edits(found),
        )


def _in_graphs(facts: Facts) -> Iterator[Squashed]:
    """Nodes of a loss whose input comes straight from a squashing node."""
    for node in facts.nodes.values():
        own = OWN.get(kind_of(node))
        if own is None or not node.edges or not _in_loss(facts, node):
            continue
        inner = behind(facts, node.edges[0].node)
        if inner is None or kind_of(inner) not in SQUASHING:
            continue
        by = SQUASHING[kind_of(inner)]
        if inner.site == node.site and inner.module == node.module:  # one expression of a library made both
            continue
        yield _squashed(facts, by, own, inner.site, inner.module, node.site, [
            facts.evidence(inner, f"{inner.name}: {by}"),
            facts.evidence(node, f"{node.name} rests on it"),
        ])  # fmt: skip


def _in_loss(facts: Facts, node: Node) -> bool:
    """Whether a log_softmax is that of a loss: an nll_loss takes it, or the loss module or function made it."""
    if kind_of(node) != "LogSoftmax":
        return kind_of(node) != "Logsumexp" or "log_prob" in facts.place(node.site).code
    module = facts.modules.get(node.module) if node.module is not None else None
    if module is not None and module.kind == "CrossEntropyLoss":
        return True
    site = facts.site(node.site)
    return site is not None and any(
        isinstance(event, Operation) and plain(event.function) == "cross_entropy" for event in facts.of_site(node.site)
    )


def _in_calls(facts: Facts) -> Iterator[Squashed]:
    """Calls of a loss whose prediction is the result of a squashing function or module (runs without a backward)."""
    if facts.passes:
        return
    for call in loss_calls(facts):
        own = LOSSES.get(call.kind)
        maker = computed_by(facts, call.prediction)
        if own is None or maker is None:
            continue
        module = None
        if isinstance(maker, ModuleCalled):
            by = {"Softmax": "softmax", "Sigmoid": "sigmoid"}.get(facts.modules[maker.module].kind)
            module = maker.module
        else:
            by = {"softmax": "softmax", "sigmoid": "sigmoid"}.get(plain(maker.function))
        if by is not None:
            yield _squashed(facts, by, OWN[own], maker.site, module, call.call.site, [
                facts.evidence(maker, f"{by} was applied"),
                facts.evidence(call.call, f"{call.kind} took the result"),
            ])  # fmt: skip


def _squashed(facts, by, own, site, module_id, loss_site, evidence) -> Squashed:  # type: ignore[no-untyped-def]
    module = facts.modules.get(module_id) if module_id is not None else None
    if module is not None and module.kind.lower().replace("_", "") == by.replace("_", ""):
        built = constructed(facts, module)
        if built is not None:
            name = module.path or module.kind
            return Squashed(
                by, own, built.place, name, facts.place(loss_site), tuple(evidence), built.source, built.call
            )
    return Squashed(by, own, facts.place(site), "", facts.place(loss_site), tuple(evidence))


def _edits(found: Squashed) -> list[Edit]:
    """Take the layer out of the list of layers that it stands in."""
    if found.call is None or found.source is None:
        return []
    parent = found.source.parents.get(found.call)
    if not isinstance(parent, (ast.Call, ast.List, ast.Tuple)):
        return []
    members = parent.args if isinstance(parent, ast.Call) else parent.elts
    if found.call not in members:
        return []
    index = members.index(found.call)
    if index == 0:
        return []
    before = members[index - 1]
    if before.end_lineno is None or before.end_col_offset is None or found.call.end_lineno is None:
        return []
    end = found.call.end_lineno, found.call.end_col_offset or 0
    return [Edit(found.source.path, before.end_lineno, before.end_col_offset, *end, "")]
