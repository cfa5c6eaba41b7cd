"""WG606: a ReLU that gives 0 for every element."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import DataChanged
from whygrad.rules.constructors import constructor
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place, Severity
from whygrad.rules.flat import RELUS, Flat, flats, satisfied
from whygrad.rules.lost import names_of
from whygrad.rules.numerics.saturated_at_start import _of_leaf
from whygrad.rules.rule import Rule


class DeadRelu(Rule):
    """Dead ReLU: a layer is silent for every sample, and its gradient is exactly zero.

    Where every pre-activation is negative, ReLU gives 0 and its slope is 0: the layer before it gets a gradient of
    exactly zero and can never come back. Causes: a large negative bias, inputs that are all negative, a learning rate
    that threw the weights away.

    **How to see it.** The weights' gradient is 0 in every step; the next layer's weights get 0 too, its bias does not.

    **How to put it right.** Initialise the bias with 0 and scale the inputs, lower the learning rate, or use LeakyReLU
    or GELU, which have a slope everywhere.
    """

    code = "WG606"
    slug = "dead-relu"
    severity = Severity.WARNING
    search = ("dead ReLU", "dying ReLU", "gradient zero after ReLU", "activations all zero")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
        torch.nn.init.constant_(first.bias, -100.0)  # <- here
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        x = torch.randn(8, 4)
        for _ in range(3):
            loss = (second(torch.relu(first(x))) - 1).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
        torch.nn.init.constant_(first.bias, 0.1)
        x = torch.randn(8, 4)
        loss = (second(torch.relu(first(x))) - 1).pow(2).mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for flat in flats(facts):
            if satisfied(flat) and not _behind_layer(facts, flat):
                continue
            if flat.kind in RELUS and _of_leaf(facts, flat) is None:
                yield self._found(facts, flat)

    def _found(self, facts: Facts, flat: Flat) -> Finding:
        names = names_of(facts, flat.leaves)
        relu = facts.place(flat.node.site)
        seen = "" if flat.proven else " (its values were not recorded; nothing else on the way can be flat)"
        return self.finding(
            facts,
            _cause(facts, flat),
            f"{names} gets a gradient of exactly 0: the ReLU behind it is silent",
            [
                f"Every way back to {names} passes the ReLU in `{relu.code}` ({relu.where}): it gave 0 for every "
                f"element, and its slope is 0 there{seen}.",
                f"{facts.describe(flat.write.tensor)}.grad is 0 in every recorded pass.",
            ],
            why="ReLU has slope 0 for negative inputs, so a layer whose outputs are all negative cannot change them.",
            fix="Start the bias at 0 and scale the inputs, or use LeakyReLU or GELU.",
            evidence=[
                facts.evidence(flat.node, f"{flat.node.name} lets nothing through"),
                facts.evidence(flat.write, f"{facts.describe(flat.write.tensor)}.grad is all zeros"),
            ],
            subjects=[facts.describe(one) for one in flat.leaves],
            severity=Severity.NOTE if satisfied(flat) else None,
        )


def _behind_layer(facts: Facts, flat: Flat) -> bool:
    """Whether the ReLU was applied to a layer's output, not to the margin of a hinge loss."""
    layers = ("Addmm", "Convolution", "Mm", "NativeBatchNorm")
    inputs = [facts.nodes.get(edge.node) for edge in flat.node.edges if edge.node is not None]
    return all(node is not None and node.name.startswith(layers) for node in inputs)


def _cause(facts: Facts, flat: Flat) -> Place:
    """The line that initialised one of the leaves by hand, else the ReLU."""
    for change in facts.of(DataChanged):
        if change.tensor in flat.leaves and change.site is not None and change.seq < flat.entry.began.seq:
            return facts.place(change.site)
    return constructor(facts, flat.node.module) or facts.place(flat.node.site)
