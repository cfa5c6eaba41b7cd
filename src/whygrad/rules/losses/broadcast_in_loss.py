"""WG412: prediction and target are broadcast against each other."""

from __future__ import annotations

import math
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Operation, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Evidence, Finding, Severity
from whygrad.rules.flow import constant
from whygrad.rules.losscalls import loss_calls, plain, shape_of
from whygrad.rules.rule import Rule

ELEMENTWISE_LOSSES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"}
)
DIFFERENCES = frozenset({"sub", "rsub", "sub_"})
PRODUCTS = frozenset({"mul"})
COMPARISONS = frozenset({"eq", "ne"})
REDUCING = frozenset({"mean", "sum", "item", "nanmean"})
EXPANDING = frozenset({"unsqueeze", "view", "reshape", "expand", "getitem"})
ONWARD = frozenset({"pow", "square", "abs", "mul", "float", "sqrt", "neg", "div", "long", "int", "log", "exp", "add"})


class BroadcastInLoss(Rule):
    """The loss compares every prediction with every target: shapes (N, 1) and (N,) are broadcast to (N, N).

    A model's output of shape (N, 1) minus a target of shape (N,) raises nothing: broadcasting makes an N x N table of
    all differences. The mean over it is small at the mean of the targets, so the model learns a constant. The built-in
    losses warn ("Using a target size that is different to the input size"); arithmetic by hand says nothing. The
    same happens to `log_prob * advantage`, and to `(prediction == label).mean()`.

    **How to see it.** The result of an elementwise operation has more elements than either operand.

    **How to put it right.** Give both the same shape: `prediction.squeeze(1)` or `target.unsqueeze(1)`.
    """

    code = "WG412"
    slug = "broadcast-in-loss"
    intended = "all pairs are meant"
    search = (
        "Using a target size that is different to the input size",
        "This will likely lead to incorrect results due to broadcasting",
        "regression predicts the mean",
        "mse loss shape (N,1) and (N,)",
        "network outputs constant value",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        x, y = torch.randn(8, 4), torch.randn(8)
        loss = ((model(x) - y) ** 2).mean()  # <- here
        loss.backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        criterion = torch.nn.MSELoss()
        x, y = torch.randn(8, 4), torch.randn(8)
        loss = criterion(model(x), y)  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        x, y = torch.randn(8, 4), torch.randn(8)
        loss = ((model(x).squeeze(1) - y) ** 2).mean()
        loss.backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        points = torch.randn(8, 2, requires_grad=True)
        score = torch.nn.Linear(2, 1)
        loss = (points[:, None] - points[None, :]).pow(2).sum()
        s = score(points)
        (loss + (s - s.T).pow(2).mean() + (s * torch.ones(1, 3)).mean()).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for call in loss_calls(facts):
            if call.kind in ELEMENTWISE_LOSSES:
                one, other = shape_of(facts, call.prediction), shape_of(facts, call.target)
                if one is not None and other is not None and _grows(one, other):
                    yield self._found(facts, call.call, one, other, call.kind, Severity.ERROR)
        for event in facts.of(Operation):
            name = plain(event.function)
            if name not in DIFFERENCES | PRODUCTS | COMPARISONS or len(event.inputs) != 2 or not event.outputs:
                continue
            first, second = event.inputs[0].tensor, event.inputs[1].tensor
            if first is None or second is None or first == second:
                continue
            one, other = shape_of(facts, first), shape_of(facts, second)
            if one is None or other is None or not _column_and_row(one, other):
                continue
            if _meant(facts, first, second) or not _becomes_number(facts, event):
                continue
            if name in COMPARISONS:
                if _prediction(facts, first) != _prediction(facts, second):
                    yield self._found(facts, event, one, other, name, Severity.WARNING)
            elif _trained(facts, first) != _trained(facts, second):
                severity = Severity.ERROR if name in DIFFERENCES else Severity.WARNING
                yield self._found(facts, event, one, other, name, severity)

    def _found(
        self,
        facts: Facts,
        event: Operation | ModuleCalled,
        first: tuple[int, ...],
        second: tuple[int, ...],
        name: str,
        severity: Severity,
    ) -> Finding:
        result = _broadcast(first, second) or ()
        count, larger = math.prod(result), max(math.prod(first), math.prod(second))
        evidence: list[Evidence] = [facts.evidence(event, f"{name} of shapes {first} and {second} gives {result}")]
        return self.finding(
            facts,
            event.site if event.site is not None else facts.place(None),
            f"shapes {first} and {second} are broadcast to {result}",
            [
                f"The {name} of {first} and {second} has {count} elements, where each operand has at most {larger}: "
                "every prediction meets every target, not its own."
            ],
            why="Broadcasting stretches a dimension of size 1, and adds missing dimensions in front.",
            fix="Give both the same shape, for instance prediction.squeeze(1) or target.unsqueeze(1).",
            evidence=evidence,
            subjects=[facts.describe(one) for one in event.outputs[:1]] if isinstance(event, Operation) else [],
            severity=severity,
        )


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...] | None:
    length = max(len(first), len(second))
    padded = [(1,) * (length - len(shape)) + shape for shape in (first, second)]
    result = []
    for one, other in zip(*padded, strict=True):
        if one != other and 1 not in (one, other):
            return None
        result.append(max(one, other))
    return tuple(result)


def _grows(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Whether the result has more elements than either."""
    result = _broadcast(first, second)
    return result is not None and math.prod(result) > max(math.prod(first), math.prod(second))


def _column_and_row(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """(…, N, 1) and (…, N): the same numbers but for one dimension, which broadcasting sets against another."""
    longer, shorter = sorted((first, second), key=len, reverse=True)
    if not shorter or len(longer) != len(shorter) + 1 or 1 not in longer:
        return False
    squeezed = [longer[:i] + longer[i + 1 :] for i, size in enumerate(longer) if size == 1]
    return shorter in squeezed and _grows(first, second)


def _meant(facts: Facts, first: TensorId, second: TensorId) -> bool:
    """Whether a dimension was put in on purpose (`x[:, None]`, `unsqueeze`, `keepdim=True`), or both are one thing."""
    bases = []
    for tensor in (first, second):
        maker = facts.makers.get(tensor)
        base = tensor
        if isinstance(maker, Operation):
            name = plain(maker.function)
            if name == "unsqueeze" or any(one.keyword == "keepdim" and one.constant for one in maker.inputs):
                return True
            if name == "getitem" and len(maker.inputs) > 1 and _adds_dimension(maker):
                return True
            if name in EXPANDING and maker.inputs and maker.inputs[0].tensor is not None:
                base = maker.inputs[0].tensor
        bases.append(base)
    return bases[0] == bases[1]


def _adds_dimension(maker: Operation) -> bool:
    index = maker.inputs[1]
    items = index.items if index.items is not None else (index,)
    return any(item.tensor is None and constant(item) is None for item in items)


def _becomes_number(facts: Facts, event: Operation) -> bool:
    """Whether the table is reduced to one number."""
    queue = [event.outputs[0]]
    for current in queue:
        if len(queue) > 30:
            return False
        for user in facts.users.get(current, ()):
            if not isinstance(user, Operation) or not user.outputs:
                continue
            shape = shape_of(facts, user.outputs[0])
            if plain(user.function) in REDUCING:
                return shape == ()
            if plain(user.function) in ONWARD:
                queue.append(user.outputs[0])
    return False


def _trained(facts: Facts, tensor: TensorId) -> bool:
    known = facts.tensors.get(tensor)
    return known is not None and known.requires_grad


def _prediction(facts: Facts, tensor: TensorId) -> bool:
    """Whether a tensor was computed by a module."""
    return any(isinstance(maker, ModuleCalled) for _, maker in facts.upstream(tensor, 50))
