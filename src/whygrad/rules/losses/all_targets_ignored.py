"""WG411: a loss that is a mean over no targets."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from whygrad.ledger.events import NodeId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.losscalls import CLASS_LOSSES, LossCall, loss_calls, numbers_of
from whygrad.rules.rule import Rule


class AllTargetsIgnored(Rule):
    """The loss is NaN for a batch in which every target is ignored.

    With `reduction="mean"`, `cross_entropy` and `nll_loss` divide by the number of targets that are not
    `ignore_index` (-100). A batch with none of them is 0/0 = NaN. The gradients of that batch are zero (or NaN in
    other releases), but the number poisons every running average that it is added to.

    **How to see it.** One batch's loss is NaN, and all its targets are `ignore_index`.

    **How to put it right.** Sum the losses and divide by the number of valid targets, at least 1:
    `F.cross_entropy(logits, labels, reduction="sum") / (labels != -100).sum().clamp(min=1)`; or skip such batches.
    """

    code = "WG411"
    slug = "all-targets-ignored"
    explains = ("WG601", "WG602", "WG603", "WG604", "WG605")
    search = (
        "cross_entropy nan ignore_index",
        "loss nan one batch all labels -100",
        "epoch loss nan padding",
        "NLLLoss nan",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        logits = torch.randn(3, 4, requires_grad=True)
        labels = torch.tensor([-100, -100, -100])
        loss = F.cross_entropy(logits, labels)  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        logits = torch.randn(3, 4, requires_grad=True)
        labels = torch.tensor([-100, -100, -100])
        loss = F.cross_entropy(logits, labels, reduction="sum") / (labels != -100).sum().clamp(min=1)
        loss.backward()
        """,
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        logits = torch.randn(3, 4, requires_grad=True)
        F.cross_entropy(logits, torch.tensor([-100, 1, -100])).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for call in loss_calls(facts):
            if call.kind not in CLASS_LOSSES or call.option("reduction") != "mean":
                continue
            targets = numbers_of(facts, call.target)
            ignored = call.option("ignore_index")
            if not targets or not isinstance(ignored, int) or any(target != ignored for target in targets):
                continue
            if call.value is not None and math.isfinite(call.value):
                continue
            yield self._found(facts, call, len(targets), ignored)

    def _found(self, facts: Facts, call: LossCall, count: int, ignored: int) -> Finding:
        target = facts.describe(call.target)
        result = facts.describe(call.output) if call.output is not None else "the loss"
        node: NodeId | None = getattr(call.call, "node", None)
        return self.finding(
            facts,
            call.call.site if call.call.site is not None else facts.place(None),
            f"the mean over no targets is NaN: all {count} targets are ignored",
            [
                f"All {count} targets of one call ({target}) are {ignored}, the ignore_index; the mean over the others "
                f"divides 0 by 0{': the loss is nan' if call.value is None or math.isnan(call.value) else ''}."
            ],
            why='reduction="mean" divides by the number of targets that are not ignored.',
            fix='Use reduction="sum" and divide by the number of valid targets clamped to at least 1, or skip the '
            "batch.",
            evidence=[facts.evidence(call.call, f"{call.kind} of {count} targets, all {ignored}, gave nan")],
            subjects=[result, *([f"node {node}"] if node is not None else [])],
            edits=_edits(facts, call, ignored),
        )


def _edits(facts: Facts, call: LossCall, ignored: int) -> list[Edit]:
    """The sum over the count of valid targets instead of the mean."""
    site = facts.site(call.call.site)
    source = facts.source_of(call.call.site)
    node = source.expression(site) if site is not None else None
    if not isinstance(node, ast.Call) or call.built is not None or len(node.args) != 2 or node.end_lineno is None:
        return []
    if any(keyword.arg in ("reduction", None) for keyword in node.keywords) or node.end_col_offset is None:
        return []
    target = source.segment(node.args[1])
    divided = f', reduction="sum") / ({target} != {ignored}).sum().clamp(min=1)'
    end, column = node.end_lineno, node.end_col_offset
    if isinstance(source.parents.get(node), (ast.Attribute, ast.BinOp)):
        start = Edit(source.path, node.lineno, node.col_offset, node.lineno, node.col_offset, "(")
        return [start, Edit(source.path, end, column - 1, end, column, divided + ")")]
    return [Edit(source.path, end, column - 1, end, column, divided)]
