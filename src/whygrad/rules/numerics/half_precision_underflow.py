"""WG703: a gradient is too small for float16."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradWritten
from whygrad.rules.constructors import made_at
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.flat import flats
from whygrad.rules.flow import is_zero
from whygrad.rules.numbers import say
from whygrad.rules.replays import function_of, items, slopes
from whygrad.rules.rule import Rule

SMALLEST = 6e-8
"""The smallest number above 0 that float16 has."""


class HalfPrecisionUnderflow(Rule):
    """float16 gradients are zero: they underflow, and no loss scaling is used.

    float16 has no numbers between 0 and 6e-8. Gradients that are smaller become exactly 0 on their way, and the
    parameter does not move, although in float32 it would.

    **How to see it.** The gradient is 0 in float16 and not in float32; here the recorded operations were computed again
    in float64.

    **How to put it right.** Scale the loss (`torch.amp.GradScaler`), or use bfloat16, which has the range of float32.
    """

    code = "WG703"
    slug = "half-precision-underflow"
    search = ("fp16 gradient zero", "float16 underflow", "GradScaler needed", "half precision does not train")
    wrong = (
        """
        import torch
        w = torch.tensor([1e-4, 2e-4], dtype=torch.float16, requires_grad=True)  # <- here
        loss = (w * w * 1e-4).sum()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        w = torch.tensor([1e-4, 2e-4], dtype=torch.bfloat16, requires_grad=True)
        loss = (w * w * 1e-4).sum()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        flat = {leaf for one in flats(facts) for leaf in one.leaves}
        seen = set()
        for write in facts.of(GradWritten):
            known = facts.tensors[write.tensor]
            if known.dtype != "float16" or write.tensor in seen or write.tensor in flat or not is_zero(write.after):
                continue
            seen.add(write.tensor)
            if (true := _true_slopes(facts, write)) and any(true):
                yield self._found(facts, write, true)

    def _found(self, facts: Facts, write: GradWritten, true: list[float]) -> Finding:
        name = facts.describe(write.tensor)
        largest = max(true, key=abs)
        return self.finding(
            facts,
            made_at(facts, write.tensor) or facts.place(write.site),
            f"the gradient of {name} underflows in float16",
            [
                f"{name}.grad is {say(write.after)}; the same operations in float64 give up to {largest:.3g}. "
                f"float16 has nothing between 0 and {SMALLEST:g}.",
            ],
            why="What is smaller than the smallest float16 becomes exactly 0 on its way back.",
            fix="Scale the loss with torch.amp.GradScaler, or use bfloat16.",
            evidence=[facts.evidence(write, f"{name}.grad is all zeros")],
            subjects=[name],
        )


def _true_slopes(facts: Facts, write: GradWritten) -> list[float] | None:
    """The gradient in float64, where the recorded operations can be computed again."""
    entry = next((one for one in facts.passes if one.id == write.backward), None)
    if entry is None or len(entry.began.roots) != 1 or entry.began.gradient is not None:
        return None
    value = items(facts.value(write.tensor, write.seq))
    function = function_of(facts, (write.tensor,), entry.began.roots[0], entry.began.seq)
    return slopes(function, write.tensor, [1.0]) if function is not None and value is not None else None
