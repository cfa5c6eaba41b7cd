"""WG602: the forward is finite and a slope on the way back is not."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.nonfinite import DECOMPOSITIONS, culprit, symptom
from whygrad.rules.numerics.unselected_branch import is_masked
from whygrad.rules.rule import Rule
from whygrad.rules.slopes import told

INSTEAD = {
    "Sqrt": "Add a small number inside: torch.sqrt(x + 1e-12).",
    "Pow": "Add a small number to the base, or clamp it away from 0.",
    "Div": "Add a small number to the divisor, or clamp it away from 0.",
    "Log": "Clamp the argument: torch.log(x.clamp(min=1e-12)); or use log_softmax, logsigmoid, logsumexp.",
    "Acos": "Keep the argument inside: x.clamp(-1 + 1e-6, 1 - 1e-6); or use atan2.",
    "Asin": "Keep the argument inside: x.clamp(-1 + 1e-6, 1 - 1e-6); or use atan2.",
    "Atan2": "Keep the two arguments from being 0 together.",
}


class InfiniteSlope(Rule):
    """The loss is finite and the gradient is NaN or infinite: sqrt at 0, x**0.5, acos at 1, a distance of 0.

    Some functions are finite where their slope is not: `sqrt` and `x**0.5` at 0 (so a distance between equal points, or
    the standard deviation of equal values), `acos` at 1, `atan2(0, 0)`, `norm` of a zero vector under a power. Backward
    multiplies by that slope: infinity, or NaN where the other factor is 0. One such element spreads to all weights.

    **How to see it.** `loss` is finite, `p.grad` is not. Anomaly mode names the backward function; the ledger names the
    line and the element.

    **How to put it right.** Keep the argument away from the point: `torch.sqrt(x + eps)`, `x.clamp(min=eps)`, or use
    the squared distance.
    """

    code = "WG602"
    slug = "infinite-slope"
    search = (
        "NaN gradient sqrt zero", "SqrtBackward0 returned nan values", "norm gradient nan", "acos gradient nan",
        "PowBackward0 returned nan", "gradient nan loss finite",
    )  # fmt: skip
    wrong = (
        """
        import torch
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([1.0, 3.0])
        distance = ((a - b) ** 2).sqrt()  # <- here
        distance.sum().backward()
        """,
        """
        import torch
        a = torch.tensor([1.0, 0.0], requires_grad=True)
        b = torch.tensor([1.0, 0.0])
        angle = torch.acos((a * b).sum())  # <- here
        angle.backward()
        """,
    )
    right = (
        """
        import torch
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([1.0, 3.0])
        distance = ((a - b) ** 2 + 1e-12).sqrt()
        distance.sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        found = symptom(facts)
        guilty = culprit(facts, found) if found is not None else None
        if found is None or guilty is None or is_masked(guilty):
            return
        kind = guilty.node.name.partition("Backward")[0]
        if kind in DECOMPOSITIONS:
            return
        yield self.finding(
            facts,
            facts.place(guilty.node.site),
            f"the gradient is not finite: {guilty.reason.partition(',')[0]}",
            told(facts, found, guilty),
            why="Backward multiplies by the slope of each operation; an infinite one spoils everything before it.",
            fix=INSTEAD.get(kind, "Keep the argument away from that point: clamp it, or add a small number."),
            evidence=[
                facts.evidence(guilty.node, f"{guilty.node.name}: {guilty.reason}"),
                facts.evidence(found.write or found.entry.began, "the gradient is not finite"),
            ],
            subjects=[facts.describe(found.write.tensor)] if found.write is not None else [],
        )  # fmt: skip
