"""WG418: elements that a mask set to zero, or padding, count in a mean."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Operation, TensorId
from whygrad.rules.construction import Construction, keyword_added
from whygrad.rules.facts import Facts, inputs_of
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.flow import computed_by
from whygrad.rules.losscalls import CLASS_LOSSES, LossCall, loss_calls, numbers_of, plain, shape_of
from whygrad.rules.rule import Rule


class PaddingInTheMean(Rule):
    """Padding counts in the mean: the mask zeroes elements, but the mean still divides by all of them.

    `(loss * mask).mean()` divides by the number of all elements. A batch with much padding gets a small loss and a
    small gradient, whatever its real elements say. The same happens where a mean over time runs over padded positions,
    and where a loss over tokens does not ignore the padding index that the embedding has.

    **How to see it.** The mask holds zeros, and the mean's divisor is the number of all elements.

    **How to put it right.** `(loss * mask).sum() / mask.sum()`; `ignore_index=pad` for `CrossEntropyLoss`.
    """

    code = "WG418"
    slug = "padding-in-the-mean"
    severity = Severity.WARNING
    intended = "the masked elements are to count as elements of loss zero"
    search = (
        "masked loss mean divide by mask.sum()",
        "padding tokens in cross entropy",
        "ignore_index padding_idx",
        "mean pooling ignores attention mask",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        x, y = torch.randn(4, 5, 3), torch.randn(4, 5)
        mask = (torch.arange(5) < torch.tensor([[5], [2], [3], [1]])).float()
        loss = ((model(x).squeeze(-1) - y).pow(2) * mask).mean()  # <- here
        loss.backward()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        embedding, head = nn.Embedding(6, 4, padding_idx=0), nn.Linear(4, 6)
        tokens = torch.tensor([[3, 2, 5, 0, 0], [1, 4, 0, 0, 0]])
        logits = head(embedding(tokens[:, :-1]))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        x, y = torch.randn(4, 5, 3), torch.randn(4, 5)
        mask = (torch.arange(5) < torch.tensor([[5], [2], [3], [1]])).float()
        loss = ((model(x).squeeze(-1) - y).pow(2) * mask).sum() / mask.sum()
        loss.backward()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        embedding, head = nn.Embedding(6, 4, padding_idx=0), nn.Linear(4, 6)
        tokens = torch.tensor([[3, 2, 5, 0, 0], [1, 4, 0, 0, 0]])
        logits = head(embedding(tokens[:, :-1]))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        yield from self._masked(facts)
        padding = _padding(facts)
        if padding:
            for call in loss_calls(facts):
                yield from self._not_ignored(facts, call, padding)

    def _masked(self, facts: Facts) -> Iterator[Finding]:
        roots = {root for one in facts.passes for root in one.began.roots}
        for event in facts.of(Operation):
            if plain(event.function) != "mean" or event.node is None or not event.inputs:
                continue
            if len(event.inputs) > 1 and any(one.keyword != "dtype" for one in event.inputs[1:]):
                continue
            product = facts.makers.get(event.inputs[0].tensor) if event.inputs[0].tensor is not None else None
            if not isinstance(product, Operation) or plain(product.function) != "mul" or len(product.inputs) != 2:
                continue
            masks = [
                (one.tensor, numbers)
                for one in product.inputs
                if one.tensor is not None and (numbers := _mask(facts, one.tensor)) is not None
            ]
            if len(masks) != 1 or not _in_a_loss(facts, event.outputs[0], roots) or _divided(facts, event, masks[0][0]):
                continue
            mask, numbers = masks[0]
            other = next((one.tensor for one in product.inputs if one.tensor != mask), None)
            if other is None or not _like(shape_of(facts, mask), shape_of(facts, other)):
                continue
            yield self._mean(facts, event, mask, numbers)

    def _mean(self, facts: Facts, event: Operation, mask: TensorId, numbers: list[float]) -> Finding:
        ones, count = int(sum(numbers)), len(numbers)
        name, text = facts.describe(mask), facts.name(mask) or "mask"
        return self.finding(
            facts,
            event.site if event.site is not None else facts.place(None),
            f"the mean divides by all {count} elements, {count - ones} of them masked out",
            [
                f"{name} has {ones} ones and {count - ones} zeros. The mean divides by all elements: the loss, and its "
                f"gradient, are {ones}/{count} = {ones / count:.3g} of the mean over the elements that count."
            ],
            why="A mask sets elements to zero; it does not take them out of the count.",
            fix=f"Divide by the mask: (loss * {text}).sum() / {text}.sum().",
            evidence=[facts.evidence(event, f"a mean over {count} elements, {ones} of them not masked")],
            subjects=[name],
        )

    def _not_ignored(self, facts: Facts, call: LossCall, padding: dict[int, str]) -> Iterator[Finding]:
        if call.kind not in CLASS_LOSSES or call.option("reduction") != "mean" or call.weight is not None:
            return
        targets = numbers_of(facts, call.target)
        ignored = call.option("ignore_index")
        shape = shape_of(facts, call.prediction)
        if not targets or not isinstance(ignored, int) or shape is None or len(shape) < 2:
            return
        for index, embedding in padding.items():
            found = targets.count(index)
            if index == ignored or not found or not _same_tokens(facts, call, embedding):
                continue
            rows = next((one for one in facts.modules.values() if one.path == embedding), None)
            if rows is None or not rows.config.startswith(f"{shape[1]},"):
                continue
            yield self.finding(
                facts,
                call.built.place if call.built is not None else call.call.site or facts.place(None),
                f"the padding (index {index}) counts in the loss: {found} of {len(targets)} targets",
                [
                    f"{embedding} has padding_idx={index}; {found} of {len(targets)} targets are {index}, and "
                    f"{call.kind} ignores only {ignored}: the model is trained to predict padding."
                ],
                why="padding_idx concerns the embedding; the loss has an ignore_index of its own.",
                fix=f"Pass ignore_index={index}.",
                evidence=[facts.evidence(call.call, f"{found} of {len(targets)} targets were {index}")],
                subjects=[embedding],
                edits=_ignore(facts, call, index),
            )
            return


def _mask(facts: Facts, tensor: TensorId) -> list[float] | None:
    """The elements of a mask: zeros and ones, both, and no result of training."""
    known = facts.tensors.get(tensor)
    if known is None or known.requires_grad:
        return None
    numbers = numbers_of(facts, tensor)
    if numbers is None or set(numbers) != {0.0, 1.0}:
        return None
    maker = computed_by(facts, tensor)
    if isinstance(maker, Operation) and plain(maker.function) in ("bernoulli", "one_hot", "bernoulli_"):
        return None
    return numbers


def _like(mask: tuple[int, ...] | None, other: tuple[int, ...] | None) -> bool:
    """Whether the mask covers the elements: the same shape, or one value for each of several."""
    return mask is not None and other is not None and len(mask) <= len(other) and mask == other[: len(mask)]


def _in_a_loss(facts: Facts, tensor: TensorId, roots: set[TensorId]) -> bool:
    queue = [tensor]
    for current in queue:
        if current in roots:
            return True
        for user in facts.users.get(current, ()):
            if isinstance(user, Operation) and len(queue) < 20:
                queue.extend(one for one in user.outputs if one not in queue)
    return False


def _divided(facts: Facts, event: Operation, mask: TensorId) -> bool:
    """Whether the mean is divided by the mean of the mask, which puts the count right."""
    for user in facts.users.get(event.outputs[0], ()):
        if isinstance(user, Operation) and plain(user.function) == "div" and len(user.inputs) == 2:
            divisor = user.inputs[1].tensor
            if divisor is not None and any(mask == one for one in _inputs(facts, divisor)):
                return True
    return False


def _inputs(facts: Facts, tensor: TensorId) -> list[TensorId]:
    return [one for _, maker in facts.upstream(tensor, 20) for one in inputs_of(maker)]


def _padding(facts: Facts) -> dict[int, str]:
    """The padding indices of the embeddings that ran."""
    ran = {call.module for call in facts.of(ModuleCalled)}
    found = {}
    for module in facts.modules.values():
        told = re.search(r"padding_idx=(\d+)", module.config) if module.kind == "Embedding" else None
        if told is not None and module.id in ran and module.path:
            found[int(told[1])] = module.path
    return found


def _same_tokens(facts: Facts, call: LossCall, embedding: str) -> bool:
    """Whether the prediction was computed from that embedding."""
    if call.prediction is None:
        return False
    return any(
        isinstance(maker, ModuleCalled) and facts.modules[maker.module].path == embedding
        for _, maker in facts.upstream(call.prediction, 300)
    ) or any(
        isinstance(maker, ModuleCalled) and embedding.startswith(f"{facts.modules[maker.module].path}.")
        for _, maker in facts.upstream(call.prediction, 50)
    )


def _ignore(facts: Facts, call: LossCall, index: int) -> list[Edit]:
    if call.built is not None:
        return [keyword_added(call.built, f"ignore_index={index}")]
    site = facts.site(call.call.site)
    source = facts.source_of(call.call.site)
    node = source.expression(site) if site is not None else None
    if not isinstance(node, ast.Call):
        return []
    return [keyword_added(Construction(source, node, facts.place(call.call.site)), f"ignore_index={index}")]
