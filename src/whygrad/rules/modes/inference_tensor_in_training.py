"""WG308: tensors made under inference_mode meet autograd."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradModeChanged, ModuleCalled, Operation, Raised, SiteId, TensorId
from whygrad.rules.facts import Facts, inputs_of
from whygrad.rules.finding import Edit, Finding, Place
from whygrad.rules.rule import Rule


class InferenceTensorInTraining(Rule):
    """Tensors made under inference_mode cannot take part in training.

    `torch.inference_mode()` is `no_grad` and more: what is made inside has no version counter and is marked for
    good. Outside, such a tensor can be read, but not saved for backward ("Inference tensors cannot be saved for
    backward"), not written in place ("Inplace update to inference tensor outside InferenceMode is not allowed"), and
    not made to require grad ("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed").

    **How to see it.** The error is raised where the tensor is used; the cause is the block where it was made.

    **How to put it right.** Use `torch.no_grad()` for what training will use later: cached features, frozen
    backbones, targets, replay buffers. Or `.clone()` the tensor after the block.
    """

    code = "WG308"
    slug = "inference-tensor-in-training"
    search = (
        "Inference tensors cannot be saved for backward",
        "Inplace update to inference tensor outside InferenceMode is not allowed",
        "inference_mode vs no_grad",
        "Setting requires_grad=True on inference tensor",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        backbone, head = nn.Linear(6, 8).requires_grad_(False), nn.Linear(8, 2)
        data = torch.randn(20, 6)
        with torch.inference_mode():  # <- here
            features = torch.relu(backbone(data))
        loss = head(features).pow(2).mean()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        backbone, head = nn.Linear(6, 8).requires_grad_(False), nn.Linear(8, 2)
        data = torch.randn(20, 6)
        with torch.no_grad():
            features = torch.relu(backbone(data))
        head(features).pow(2).mean().backward()
        with torch.inference_mode():
            print(head(torch.relu(backbone(data))).sum())
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            text = raised.text.lower()
            if "inference tensor" not in text and "inferencemode" not in text:
                continue
            entered = [
                event
                for event in facts.of(GradModeChanged)
                if event.entered and event.mode == "inference" and event.seq < raised.seq
            ]
            if not entered:
                continue
            tensor, block = _origin(facts, raised, entered)
            what = facts.describe(tensor) if tensor is not None else "a tensor"
            place = _written(facts, block.site)
            yield self.finding(
                facts,
                place,
                f"{what} was made under inference_mode and is used in training",
                [
                    f"The inference_mode on {place.where} made {what}; using it on "
                    f"{facts.place(raised.site).where} raised: {raised.text.split('. ')[0]}."
                ],
                why="Inference tensors have no version counter and stay outside autograd for good.",
                fix="Use torch.no_grad() instead of torch.inference_mode(), or clone() the tensor after the block.",
                evidence=[
                    facts.evidence(block, "inference mode was entered"),
                    facts.evidence(raised, "the tensor was used where autograd records"),
                ],
                subjects=[what],
                edits=_edits(facts, place),
            )


def _origin(facts: Facts, raised: Raised, entered: list[GradModeChanged]) -> tuple[TensorId | None, GradModeChanged]:
    """The inference tensor, and the block that made it."""
    failed = [call for call in facts.of(ModuleCalled) if call.error and call.seq < raised.seq]
    given: list[TensorId] = []
    if failed and raised.text[:60] in failed[-1].error:
        given = list(inputs_of(failed[-1]))
    else:
        before = [event for event in facts.of(Operation) if event.seq < raised.seq]
        given = [tensor for event in reversed(before[-20:]) for tensor in event.outputs]
    for tensor in given:
        for _, maker in [(tensor, facts.makers.get(tensor)), *facts.upstream(tensor, 50)]:
            if maker is None:
                continue
            mode = maker.grad_mode if isinstance(maker, ModuleCalled) else maker.no_node
            if "inference" in mode:
                block = next((event for event in reversed(entered) if event.seq < maker.seq), None)
                if block is not None:
                    return tensor, block
    return None, entered[-1]


def _written(facts: Facts, site: SiteId | None) -> Place:
    """The line that says inference_mode: that of the block, or the decorator of the function that was called."""
    place = facts.place(site)
    source = facts.source(place.path)
    if not place.path or "inference_mode" in source.line(place.line):
        return place
    decorated = [
        (node, one)
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for one in node.decorator_list
        if "inference_mode" in source.segment(one)
    ]
    called = [one for node, one in decorated if f"{node.name}(" in place.code] or [one for _, one in decorated]
    return facts.line(place.path, called[0].lineno) if called else place


def _edits(facts: Facts, place: Place) -> list[Edit]:
    """`inference_mode` becomes `no_grad` on the line of the block."""
    line = facts.source(place.path).line(place.line) if place.path else ""
    at = line.find("inference_mode")
    if at < 0 or "inference_mode(False" in line:
        return []
    return [Edit(place.path, place.line, at, place.line, at + len("inference_mode"), "no_grad")]
