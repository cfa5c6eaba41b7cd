"""WG605: a bound or a saturated activation lets no gradient through from the first step on."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import TensorId
from whygrad.rules.constructors import initialised
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place
from whygrad.rules.flat import BOUNDS, CURVES, RELUS, Flat, flats, satisfied
from whygrad.rules.flow import through_rearranging
from whygrad.rules.lost import names_of
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.terms import tensors_of


class SaturatedAtStart(Rule):
    """A parameter keeps its start value for ever: it begins outside the clamp, or where the activation is flat.

    `clamp`, `hardtanh` and `relu` pass a gradient of 0 for what lies outside, `sigmoid` and `tanh` for arguments so
    large that the result is exactly 0 or 1. A parameter that starts there gets zeros in every step: it is in the
    optimizer, its `.grad` is not None, and it can never come in.

    **How to see it.** The gradient is 0 in every step, and the value before the bound is outside of it.

    **How to put it right.** Start inside the range, or use a bound with a slope everywhere: a scaled sigmoid, softplus,
    a penalty on what lies outside.
    """

    code = "WG605"
    slug = "saturated-at-start"
    search = (
        "parameter never changes", "clamp gradient zero", "learnable scale stuck", "gradient zero outside clamp range",
        "sigmoid saturated gradient zero",
    )  # fmt: skip
    wrong = (
        """
        import torch
        scale = torch.nn.Parameter(torch.tensor(0.001))  # <- here
        shift = torch.nn.Parameter(torch.tensor(0.0))
        optimizer = torch.optim.SGD([scale, shift], lr=0.1)
        x = torch.randn(6)
        for _ in range(4):
            loss = (x * scale.clamp(0.01, 1.0) + shift - 1.0).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        gate = torch.full((3,), -200.0, requires_grad=True)  # <- here
        w = torch.ones(3, requires_grad=True)
        loss = (torch.sigmoid(gate) * w + w - 2.0).pow(2).sum()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        scale = torch.nn.Parameter(torch.tensor(0.1))
        optimizer = torch.optim.SGD([scale], lr=0.1)
        x = torch.randn(6)
        for _ in range(4):
            loss = (x * scale.clamp(0.01, 1.0) - 1.0).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for flat in flats(facts):
            bounded = flat.kind in BOUNDS + CURVES or (flat.kind in RELUS and _of_leaf(facts, flat) is not None)
            if bounded and flat.proven and not satisfied(flat):
                yield self._found(facts, flat)

    def _found(self, facts: Facts, flat: Flat) -> Finding:
        names = names_of(facts, flat.leaves)
        leaf = _of_leaf(facts, flat)
        at: Place | None = initialised(facts, leaf, flat.entry.began.seq) if leaf is not None else None
        place = facts.place(flat.node.site)
        count = sum(1 for entry in facts.passes if any(write.tensor in flat.leaves for write in entry.written))
        given = tensors_of(flat.operation.inputs) if flat.operation is not None else []
        value = say(facts.value(given[0], flat.operation.seq)) if given and flat.operation is not None else "?"
        gave = say(flat.operation.value) if flat.operation is not None else "?"
        return self.finding(
            facts,
            at or place,
            f"{names} cannot learn: its value lies where `{place.code}` is flat",
            [
                f"`{place.code}` ({place.where}) was given {value} and gave {gave}: {flat.reason}.",
                f"The gradient of {names} is exactly 0 in all {count} recorded passes, and so it stays where it is.",
            ],
            why="Outside its bounds the function is constant, so moving the parameter a little changes nothing.",
            fix="Start inside the range, or use a bound that has a slope everywhere (a scaled sigmoid, softplus).",
            evidence=[
                facts.evidence(flat.node, f"{flat.node.name}: {flat.reason}"),
                facts.evidence(flat.write, f"{facts.describe(flat.write.tensor)}.grad is all zeros"),
            ],
            subjects=[facts.describe(one) for one in flat.leaves],
        )


def _of_leaf(facts: Facts, flat: Flat) -> TensorId | None:
    """The leaf that the flat operation was applied to, directly or rearranged."""
    if flat.operation is None:
        return None
    for given in tensors_of(flat.operation.inputs):
        for tensor in through_rearranging(facts, given):
            if tensor in flat.leaves:
                return tensor
    return None
