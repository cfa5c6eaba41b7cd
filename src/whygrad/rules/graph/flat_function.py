"""WG217: round, sign or floor stands between the parameters and the loss."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.flat import JUMPS, flats, satisfied
from whygrad.rules.lost import names_of
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule


class FlatFunction(Rule):
    """The gradient is exactly zero: round, sign, floor or ceil has slope 0 everywhere.

    `torch.round`, `sign`, `floor`, `ceil` and `trunc` are differentiable for autograd, with a slope of 0. The gradient
    is not None, it is a tensor of zeros, so nothing warns and nothing before that line is trained.

    **How to put it right.** A straight-through estimator, `x + (torch.round(x) - x).detach()`; or a smooth version
    while training (`tanh` for `sign`, noise for rounding).
    """

    code = "WG217"
    slug = "flat-function"
    intended = "the part before it is trained by another loss"
    search = ("round gradient zero", "sign gradient zero", "floor gradient zero", "quantization gradient zero")
    wrong = (
        """
        import torch
        w = torch.tensor([0.4, 1.6], requires_grad=True)
        b = torch.tensor([0.1, 0.2], requires_grad=True)
        loss = (torch.round(w) + b - 1.5).pow(2).sum()  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        w = torch.tensor([0.4, 1.6], requires_grad=True)
        hard = w + (torch.round(w) - w).detach()
        loss = (hard - 1.5).pow(2).sum()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for flat in flats(facts):
            if flat.kind not in JUMPS or satisfied(flat):
                continue
            names = names_of(facts, flat.leaves)
            place = facts.place(flat.node.site)
            yield self.finding(
                facts,
                place,
                f"the gradient of {names} is exactly 0: {flat.kind.lower()} has no slope",
                [
                    f"Every way from the loss ({say(flat.entry.began.root_value)}) back to {names} passes "
                    f"`{place.code}`: {flat.reason}.",
                    f"{facts.describe(flat.write.tensor)}.grad is 0 in all {flat.write.after.count} elements, in every "
                    "recorded pass.",
                ],
                why="A function that is constant between its jumps has slope 0, and backward multiplies by it.",
                fix="Use a straight-through estimator, x + (f(x) - x).detach(), or a smooth function.",
                evidence=[
                    facts.evidence(flat.node, f"{flat.node.name}: {flat.reason}"),
                    facts.evidence(flat.write, f"{facts.describe(flat.write.tensor)}.grad is all zeros"),
                ],
                subjects=[facts.describe(leaf) for leaf in flat.leaves],
            )
