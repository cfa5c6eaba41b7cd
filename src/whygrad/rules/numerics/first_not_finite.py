"""WG604: the loss is NaN or infinite; the operation that gave it first."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import NotFinite, Operation
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding
from whygrad.rules.nonfinite import Origin, has, origin, symptom
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule

LOSSES = ("cross_entropy", "nll_loss")


class FirstNotFinite(Rule):
    """The loss is NaN or inf: the first operation that gave it.

    `log(0)`, `0/0`, the square root of a negative number, `exp` of a large one, the standard deviation of a single
    sample, a softmax row in which everything is masked with `-inf`, `inf - inf`: the value is not finite in the
    forward already. Everything computed from it is not finite either, one update makes every weight NaN, and anomaly
    mode is silent as long as the backward itself gives numbers.

    **How to see it.** `torch.isfinite(loss)` is False; look for the first intermediate that is not finite.

    **How to put it right.** Use the stable form: `log_softmax`, `logsigmoid`, `logsumexp`, `binary_cross_entropy_with
    _logits`; clamp the argument; guard an empty or single-element batch; check the data for NaN.
    """

    code = "WG604"
    slug = "first-not-finite"
    search = (
        "loss is nan", "loss becomes inf", "log of zero", "division by zero nan", "softmax nan -inf mask",
        "std of one sample nan", "exp overflow", "nan after first step",
    )  # fmt: skip
    wrong = (
        """
        import torch
        p = torch.tensor([0.0, 1.0], requires_grad=True)
        entropy = p * torch.log(p)  # <- here
        loss = -entropy.sum()
        loss.backward()
        """,
        """
        import torch
        scores = torch.zeros(2, 3, requires_grad=True)
        mask = torch.tensor([[True, True, False], [False, False, False]])
        masked = scores.masked_fill(~mask, float("-inf"))
        weights = masked.softmax(dim=1)  # <- here
        loss = weights.sum()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        p = torch.tensor([0.0, 1.0], requires_grad=True)
        entropy = p * torch.log(p.clamp(min=1e-9))
        (-entropy.sum()).backward()
        """,
        """
        import torch
        scores = torch.zeros(2, 3, requires_grad=True)
        mask = torch.tensor([[True, True, False], [False, True, False]])
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=1)
        (weights * torch.arange(3.0)).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        found = symptom(facts)
        if found is None or not found.root:
            return
        first = origin(facts, found.entry)
        if first is None:
            yield from self._read_off(facts, found.entry)
            return
        operation = first.operation
        if operation is not None and operation.function.rpartition(".")[2] in LOSSES:
            return
        root = say(found.entry.began.root_value)
        where = facts.place(found.entry.began.site).where
        if operation is None:
            known = facts.tensors[first.tensor]
            name = facts.describe(first.tensor)
            yield self.finding(
                facts,
                facts.place(known.site),
                f"{name} holds NaN or infinity from the start",
                [f"{name} has {first.value.nan} NaN and {first.value.inf} infinite elements when it is first seen.",
                 f"The backward on {where} starts from {root}, which was computed from it."],
                why="NaN spreads to everything that is computed from it.",
                fix="Clean the data (torch.nan_to_num, or drop those rows) before it enters the model.",
                evidence=[facts.evidence(known, f"{name} is not finite")],
                subjects=[name],
            )  # fmt: skip
            return
        place = facts.place(operation.site)
        reason = reason_of(operation, first)
        yield self.finding(
            facts,
            place,
            f"the loss is {root}: {reason}",
            [
                f"`{place.code}` ({place.where}) is the first to give NaN or infinity: {first.value.nan} NaN and "
                f"{first.value.inf} infinite of {first.value.count} elements, from inputs that are finite.",
                f"The backward on {where} starts from {root}, which was computed from it.",
            ],
            why="NaN and infinity spread to everything that is computed from them, and to every weight in one update.",
            fix="Clamp the argument, or use the stable form of the function; guard the case that has no data.",
            evidence=[
                facts.evidence(operation, f"gave {say(first.value)}"),
                facts.evidence(found.entry.began, f"a backward from {root}"),
            ],
            subjects=[facts.describe(first.tensor)],
        )

    def _read_off(self, facts: Facts, entry: Pass) -> Iterator[Finding]:
        """Where the forward's values were not recorded: what the nodes had saved tells the first that is not finite."""
        told = next((one for one in facts.of(NotFinite) if one.backward == entry.id), None)
        node = facts.nodes.get(told.node) if told is not None and told.node is not None else None
        if told is None or node is None or not told.certain or node.site is None:
            return
        place = facts.place(node.site)
        kind = node.name.partition("Backward")[0].lower()
        count = f"{told.value.nan} NaN and {told.value.inf} infinite elements" if told.value is not None else "NaN"
        root = say(entry.began.root_value)
        yield self.finding(
            facts,
            place,
            f"the loss is {root}: {kind} is the first to give NaN or infinity",
            [
                f"The result of {kind} in `{place.code}` ({place.where}) holds {count}; what it was given is finite.",
                f"The backward on {facts.place(entry.began.site).where} starts from {root}, computed from it.",
            ],
            why="NaN and infinity spread to everything that is computed from them, and to every weight in one update.",
            fix="Clamp the argument, or use the stable form of the function; guard the case that has no data.",
            evidence=[
                facts.evidence(told, f"{node.name} is the first whose result is not finite"),
                facts.evidence(entry.began, f"a backward from {root}"),
            ],
            subjects=[],
        )


def reason_of(operation: Operation, first: Origin) -> str:
    """Why an operation gave what is not finite, in a clause."""
    plain = operation.function.rpartition(".")[2].strip("_")
    given = first.inputs[0] if first.inputs else None
    divisor = first.inputs[-1] if first.inputs else None
    if plain.startswith("log") and plain not in ("logsumexp", "log_softmax", "logsigmoid"):
        zero = has(given, 0.0) if given is not None else not first.value.nan
        return "log of 0" if zero else "log of a negative number"
    if plain in ("div", "truediv", "true_divide", "reciprocal") and divisor is not None and has(divisor, 0.0):
        return "a division by 0"
    if plain in ("sqrt", "rsqrt", "pow", "asin", "acos", "acosh", "atanh") and first.value.nan:
        return f"{plain} of a number outside its domain"
    if plain in ("std", "var", "std_mean", "var_mean"):
        return f"the {plain} of a single value is not defined"
    if plain in ("mean", "nanmean") and given is not None and given.count == 0:
        return "the mean of nothing is not defined"
    if "softmax" in plain:
        return "a softmax over entries that are all -inf"
    if first.value.inf and not first.value.nan:
        return f"{plain} overflows {_dtype(first.value)}"
    return f"{plain} gives NaN"


def _dtype(value: Value) -> str:
    return value.dtype
