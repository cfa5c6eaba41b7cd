"""WG417: weights or a mask are applied to a loss that was already reduced to one number."""

from __future__ import annotations

import math
from collections.abc import Iterator

from whygrad.ledger.events import Operation, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.losscalls import LossCall, loss_calls, numbers_of, plain, shape_of
from whygrad.rules.numbers import say_number
from whygrad.rules.rule import Rule

REDUCTIONS = frozenset({"mean", "sum"})


class WeightsAfterReduction(Rule):
    """Sample weights or a mask have no effect: the loss was reduced before they were applied.

    With `reduction="mean"` (the default) a loss is one number. Multiplying it by a vector of weights, or by a mask,
    and averaging again gives that number times the mean weight: every sample counts the same, and the padding counts.

    **How to see it.** A loss of shape () is multiplied by a tensor with an element for each sample.

    **How to put it right.** `F.mse_loss(prediction, target, reduction="none")`, then the weights, then
    `(loss * weight).sum() / weight.sum()`.
    """

    code = "WG417"
    slug = "weights-after-reduction"
    search = (
        "sample weights no effect",
        "loss mask has no effect",
        "reduction='none' weighted loss",
        "masked loss includes padding",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        x, y, weight = torch.randn(8, 4), torch.randn(8, 1), torch.rand(8, 1)
        loss = (F.mse_loss(model(x), y) * weight).mean()  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        x, y, weight = torch.randn(8, 4), torch.randn(8, 1), torch.rand(8, 1)
        loss = (F.mse_loss(model(x), y, reduction="none") * weight).sum() / weight.sum()
        loss = loss * torch.tensor([0.5])
        loss.sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        calls = {call.output: call for call in loss_calls(facts) if call.output is not None}
        for event in facts.of(Operation):
            if plain(event.function) != "mul" or len(event.inputs) != 2 or not event.outputs:
                continue
            for loss, weight in ((0, 1), (1, 0)):
                reduced, many = event.inputs[loss].tensor, event.inputs[weight].tensor
                if reduced is None or many is None or shape_of(facts, reduced) != ():
                    continue
                shape, samples = shape_of(facts, many), _samples(facts, reduced, calls)
                if shape is None or samples is None or math.prod(shape) < 2 or facts.tensors[many].requires_grad:
                    continue
                if not _is_a_weight(shape, samples) or not _averaged(facts, event):
                    continue
                yield self._found(facts, event, many, shape, calls.get(reduced), reduced)

    def _found(
        self,
        facts: Facts,
        event: Operation,
        many: TensorId,
        shape: tuple[int, ...],
        call: LossCall | None,
        reduced: TensorId,
    ) -> Finding:
        weights = numbers_of(facts, many)
        mean = f" (here {say_number(sum(weights) / len(weights))})" if weights else ""
        name = facts.describe(many)
        maker = call.call if call is not None else facts.makers[reduced]
        return self.finding(
            facts,
            event.site if event.site is not None else facts.place(maker.site),
            f"{name} multiplies a loss that is already one number: it weights nothing",
            [
                f"The loss on {facts.place(maker.site).where} was reduced to one number; multiplying it by {name} of "
                f"shape {shape} and reducing again gives that number times the mean (or sum) of {name}{mean}."
            ],
            why="A mean over samples cannot be weighted afterwards.",
            fix='Compute the loss with reduction="none", multiply, and divide the sum by the sum of the weights.',
            evidence=[
                facts.evidence(maker, "the loss was reduced to shape ()"),
                facts.evidence(event, f"multiplied by shape {shape}"),
            ],
            subjects=[name],
        )


def _samples(facts: Facts, reduced: TensorId, calls: dict[TensorId, LossCall]) -> tuple[int, ...] | None:
    """The shape of what a number was reduced from: of a loss's prediction, or the operand of a mean or sum."""
    call = calls.get(reduced)
    if call is not None:
        return shape_of(facts, call.prediction)
    maker = facts.makers.get(reduced)
    if isinstance(maker, Operation) and plain(maker.function) == "mean" and maker.inputs and maker.node is not None:
        return shape_of(facts, maker.inputs[0].tensor)
    return None


def _is_a_weight(shape: tuple[int, ...], samples: tuple[int, ...]) -> bool:
    """Whether a tensor has an element for each sample (or each element) of the loss."""
    count = math.prod(shape)
    return bool(samples) and (count == samples[0] or shape == samples or shape == samples[: len(shape)])


def _averaged(facts: Facts, event: Operation) -> bool:
    """Whether the product is reduced again right away."""
    return any(
        isinstance(user, Operation) and plain(user.function) in REDUCTIONS
        for user in facts.users.get(event.outputs[0], ())
    )
