"""WG608: the gradient grows layer by layer."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.constructors import initialised
from whygrad.rules.depths import Layer, layers
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.rule import Rule

DEEP = 4
LARGE = 1e4


class ExplodingGradient(Rule):
    """Exploding gradient: its norm grows at every layer on the way back, and the first update throws the weights away.

    Weights that are too large multiply the gradient by more than 1 at each layer. In a deep or recurrent chain the
    product grows beyond all bounds: the loss jumps, then becomes NaN. Clipping hides it; the scale of the weights makes
    it.

    **How to see it.** The norm of the gradient layer by layer, and how large it is against the weight.

    **How to put it right.** Initialise with a variance of 1 / fan-in (Xavier, Kaiming), use normalisation layers, clip
    the gradient in recurrent networks.
    """

    code = "WG608"
    slug = "exploding-gradient"
    severity = Severity.WARNING
    search = ("exploding gradient", "gradient norm very large", "loss explodes", "init too large")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(10)])
        for layer in model:
            nn.init.normal_(layer.weight, 0.0, 1.0)  # <- here
        loss = model(torch.randn(4, 32)).sum()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(10)])
        for layer in model:
            nn.init.xavier_normal_(layer.weight)
        loss = model(torch.randn(4, 32)).pow(2).mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        for entry in facts.passes:
            if entry.began.site in seen:
                continue
            chain = layers(facts, entry)
            if len(chain) >= DEEP and _explodes(facts, chain):
                seen.add(entry.began.site)
                yield self._found(facts, entry, chain)

    def _found(self, facts: Facts, entry: Pass, chain: list[Layer]) -> Finding:
        first = max(chain, key=lambda layer: layer.rms)
        name = facts.describe(first.weight)
        weight = facts.value(first.weight, entry.began.seq)
        size = weight.magnitude if weight is not None else None
        norm = first.write.after.magnitude or 0.0
        against = f", against a weight of norm {size:.3g}" if size is not None else ""
        return self.finding(
            facts,
            initialised(facts, first.weight, entry.began.seq) or facts.place(entry.began.site),
            f"the gradient explodes: {name}.grad has a norm of {norm:.2g}",
            [
                f"In the backward on {facts.place(entry.began.site).where} the gradient of {name} has a norm of "
                f"{norm:.3g}{against}; that of {facts.describe(chain[-1].weight)} has "
                f"{chain[-1].write.after.magnitude or 0.0:.3g}.",
            ],
            why="Backward multiplies by each layer's weights; weights that are too large make the product grow.",
            fix="Initialise with a variance of 1 / fan-in (Xavier, Kaiming), normalise, or clip the gradient.",
            evidence=[
                facts.evidence(first.write, f"{name}.grad has a norm of {norm:.3g}"),
                facts.evidence(chain[-1].write, "the gradient nearer to the loss"),
            ],
            subjects=[name],
        )


def _explodes(facts: Facts, chain: list[Layer]) -> bool:
    """Whether a gradient is huge against its own weight, and grew over the chain or is huge all along it."""
    largest = max(chain, key=lambda layer: layer.rms)
    value = facts.value(largest.weight, largest.write.seq)
    size = value.magnitude if value is not None else None
    norm = largest.write.after.magnitude or 0.0
    return norm > LARGE * max(1.0, size or 1.0)
