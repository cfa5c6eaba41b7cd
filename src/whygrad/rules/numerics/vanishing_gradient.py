"""WG607: the gradient shrinks layer by layer until the first layers get nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from whygrad.ledger.events import Node
from whygrad.rules.constructors import constructor, made_at
from whygrad.rules.depths import Layer, layers
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding, Place, Severity
from whygrad.rules.rule import Rule

RATIO = 1e-6
DEEP = 4
SATURATING = ("Sigmoid", "Tanh", "Softmax")


class VanishingGradient(Rule):
    """Vanishing gradient: the first layers do not learn.

    Each sigmoid multiplies the gradient by at most 1/4, each tanh by at most 1, and weights that are small make it
    smaller still. In a deep chain the product reaches the first layers as almost nothing: they keep their random start
    while the last ones train.

    **How to see it.** The norm of the gradient, layer by layer: it falls by a factor at each one.

    **How to put it right.** ReLU or GELU with Kaiming initialisation, normalisation layers, residual connections; for
    recurrent networks gates (LSTM, GRU).
    """

    code = "WG607"
    slug = "vanishing-gradient"
    severity = Severity.WARNING
    search = (
        "vanishing gradient",
        "first layers do not learn",
        "deep sigmoid network",
        "gradient norm zero early layers",
    )
    explains = ("WG508",)
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        layers = []
        for _ in range(12):
            layers += [nn.Linear(4, 4), nn.Sigmoid()]  # <- here
        model = nn.Sequential(*layers)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = (model(torch.randn(8, 4)) - 1).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        layers = []
        for _ in range(12):
            layers += [nn.Linear(16, 16), nn.ReLU()]
        model = nn.Sequential(*layers, nn.Linear(16, 1))
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            loss = (model(torch.randn(8, 16)) - 1).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        found: dict[object, list[tuple[Pass, list[Layer]]]] = {}
        for entry in facts.passes:
            chain = layers(facts, entry)
            if len(chain) >= DEEP:
                found.setdefault(entry.began.site, []).append((entry, chain))
        for told in found.values():
            if all(_vanishes(chain) for _, chain in told):
                yield self._found(facts, *told[0])

    def _found(self, facts: Facts, entry: Pass, chain: list[Layer]) -> Finding:
        first, last = chain[0], chain[-1]
        steepest = min(pairwise(chain), key=lambda pair: pair[0].rms / pair[1].rms if pair[1].rms else 1.0)
        names = [facts.describe(layer.weight) for layer in (first, last, steepest[0], steepest[1])]
        factor = (first.rms / last.rms) ** (1 / (len(chain) - 1))
        return self.finding(
            facts,
            _place(facts, entry, chain),
            f"the gradient vanishes: {names[0]} gets {first.rms / last.rms:.1g} of what {names[1]} gets",
            [
                f"Root mean square of the gradient: {first.rms:.2g} for {names[0]}, {last.rms:.2g} for {names[1]}, "
                f"{len(chain)} layers apart: a factor of {factor:.2g} for each layer.",
                f"The largest fall is between {names[3]} and {names[2]}.",
            ],
            why="Backward multiplies by each slope and each weight; many factors below 1 leave nothing.",
            fix="Use ReLU or GELU with a matching initialisation, normalisation layers, or residual connections.",
            evidence=[
                facts.evidence(first.write, f"{names[0]}.grad has a root mean square of {first.rms:.2g}"),
                facts.evidence(last.write, f"{names[1]}.grad has {last.rms:.2g}"),
            ],
            subjects=[names[0]],
        )  # fmt: skip


def _vanishes(chain: list[Layer]) -> bool:
    """Whether the gradient falls over the chain, not at one layer alone, down to almost nothing."""
    if not chain[0].rms or not chain[-1].rms or chain[0].rms > RATIO * chain[-1].rms:
        return False
    falls = sum(earlier.rms < later.rms for earlier, later in pairwise(chain))
    return falls >= 0.7 * (len(chain) - 1)


def _place(facts: Facts, entry: Pass, chain: list[Layer]) -> Place:
    """Where the activation that shrinks it was built, else the first layer."""
    for root in entry.began.root_nodes:
        nodes: list[Node] = list(facts.reached(root).values())
        for kind in SATURATING:
            several = [node for node in nodes if node.name.startswith(kind)]
            if len(several) >= DEEP - 1:
                return constructor(facts, several[0].module) or facts.place(several[0].site)
    return constructor(facts, chain[0].module) or made_at(facts, chain[0].weight) or facts.place(entry.began.site)
