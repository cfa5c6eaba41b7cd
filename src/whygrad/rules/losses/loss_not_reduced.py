"""WG414: backward of a loss that is not one number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import BackwardBegan, ModuleCalled, Operation, Raised, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Place
from whygrad.rules.losscalls import loss_calls, shape_of
from whygrad.rules.rule import Rule


class LossNotReduced(Rule):
    """grad can be implicitly created only for scalar outputs: the loss is not one number.

    `backward()` without an argument starts from a single number. A loss with `reduction="none"`, a per-sample loss,
    or a forgotten `.mean()` gives a tensor, and PyTorch does not guess how its elements are to be weighted.

    **How to put it right.** Reduce it: `loss.mean().backward()`. Or say the weights: `loss.backward(gradient=w)`.
    """

    code = "WG414"
    slug = "loss-not-reduced"
    search = (
        "grad can be implicitly created only for scalar outputs",
        "reduction='none' backward",
        "backward of a vector",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        loss = (model(torch.randn(8, 4)) - 1).pow(2)  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        loss = (model(torch.randn(8, 4)) - 1).pow(2)
        loss.backward(gradient=torch.full((8, 1), 0.125))
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            if "grad can be implicitly created only for scalar outputs" not in raised.text:
                continue
            root = _root(facts, raised)
            shape = shape_of(facts, root)
            maker = facts.makers.get(root) if root is not None else None
            call = next((one for one in loss_calls(facts) if one.output == root and root is not None), None)
            place: Place = facts.place(maker.site if maker is not None else raised.site)
            if call is not None and call.built is not None and call.option("reduction") == "none":
                place = call.built.place
            name = facts.describe(root) if root is not None else "the loss"
            yield self.finding(
                facts,
                place,
                f"{name} is not one number: backward() does not know how to weight its elements",
                [
                    f"backward() on {facts.place(raised.site).where} started from {name}"
                    f"{f' of shape {shape}' if shape is not None else ''} and raised: {raised.text}."
                ],
                why="Without a gradient argument, backward starts with 1, which fits a single number only.",
                fix="Reduce the loss with .mean() or .sum(), or pass backward(gradient=...).",
                evidence=[facts.evidence(raised, raised.text)],
                subjects=[name],
                edits=_edits(facts, raised),
            )


def _root(facts: Facts, raised: Raised) -> TensorId | None:
    """The tensor whose backward raised: that of the pass, or the last one of several elements before it."""
    for began in reversed(facts.of(BackwardBegan)):
        if began.seq < raised.seq and began.site == raised.site and began.roots:
            return began.roots[0]
    place = facts.place(raised.site)
    name = place.code.partition(".backward")[0]
    found = facts.ledger.find(name) if name.isidentifier() else ()
    if found:
        return found[0]
    for event in reversed(facts.events):
        if event.seq < raised.seq and isinstance(event, (Operation, ModuleCalled)):
            outputs = event.outputs if isinstance(event, Operation) else [one.tensor for one in event.outputs]
            for output in outputs:
                known = facts.tensors.get(output) if output is not None else None
                if known is not None and known.requires_grad and known.shape not in ((), (1,)):
                    return known.id
    return None


def _edits(facts: Facts, raised: Raised) -> list[Edit]:
    """`.mean()` before `.backward()`."""
    place = facts.place(raised.site)
    source = facts.source(place.path)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == "backward" and node.lineno == place.line:
            owner = node.value
            if owner.end_lineno is not None and owner.end_col_offset is not None:
                at = owner.end_lineno, owner.end_col_offset
                return [Edit(place.path, *at, *at, ".mean()")]
    return []
