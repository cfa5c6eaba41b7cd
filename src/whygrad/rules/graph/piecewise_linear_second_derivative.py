"""WG208: the second derivative of a piecewise linear network is zero."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradReturned, Module, Node, NodeId, SiteId
from whygrad.rules.constructors import constructor
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding, Place
from whygrad.rules.flow import is_zero
from whygrad.rules.rule import Rule

LINEAR_PIECES = ("Relu", "LeakyRelu", "Hardtanh", "Threshold", "Clamp", "Abs", "Prelu", "Maximum", "Hardshrink")
"""Activations whose second derivative is zero wherever it exists, as PyTorch names their nodes."""

CURVED = ("Tanh", "Sigmoid", "Softplus", "Silu", "Gelu", "Elu", "Exp", "Log", "Sin", "Cos", "Softmax", "Mish", "Pow")
"""Nodes that have a second derivative."""


class PiecewiseLinearSecondDerivative(Rule):
    """The second derivative of the network is exactly zero: its activation is piecewise linear.

    A network of linear layers and ReLU (LeakyReLU, Hardtanh, abs, clamp) is linear between its kinks, so u'' is zero
    almost everywhere. A physics-informed loss that contains u'' does not depend on the weights through it: the residual
    never falls and the gradients of the weights are zero. Nothing raises.

    **How to see it.** The result of the second `torch.autograd.grad` is all zeros.

    **How to put it right.** Use a smooth activation: `nn.Tanh`, `nn.SiLU`, `nn.Softplus`, `nn.GELU`, a sine.
    """

    code = "WG208"
    slug = "piecewise-linear-second-derivative"
    intended = "the second derivative is only looked at, not trained"
    search = (
        "PINN second derivative zero", "u_xx is zero", "ReLU second derivative", "Hessian of ReLU network zero",
        "residual loss does not decrease",
    )  # fmt: skip
    wrong = (
        """
        import torch
        from torch import nn
        net = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))  # <- here
        x = torch.linspace(-1, 1, 16).unsqueeze(1).requires_grad_(True)
        u = net(x)
        u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
        loss = (u_xx + torch.sin(x)).pow(2).mean()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        x = torch.linspace(-1, 1, 16).unsqueeze(1).requires_grad_(True)
        u = net(x)
        u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
        loss = (u_xx + torch.sin(x)).pow(2).mean()
        loss.backward()
        """,
        """
        import torch
        from torch import nn
        critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
        mixed = torch.randn(6, 2, requires_grad=True)
        slope = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
        penalty = (slope.norm(dim=1) - 1).pow(2).mean()
        penalty.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen: set[SiteId | None] = set()
        for entry in facts.passes:
            if entry.began.site in seen or entry.began.call != "autograd.grad" or not entry.returned:
                continue
            if not all(back.value is not None and is_zero(back.value) for back in entry.returned):
                continue
            kinks = _kinks(facts, entry)
            used = any(output for output in _results(facts, entry))
            if kinks and used:
                seen.add(entry.began.site)
                yield self._found(facts, entry, kinks)

    def _found(self, facts: Facts, entry: Pass, kinks: list[Node]) -> Finding:
        node = kinks[0]
        module = facts.modules.get(node.module) if node.module is not None else None
        if module is not None and module.kind.lower() != node.name.partition("Backward")[0].lower():
            module = None
        place = self._place(facts, node, module)
        where = facts.place(entry.began.site).where
        back: GradReturned = entry.returned[0]
        kind = module.kind if module is not None else node.name.partition("Backward")[0]
        same = [one for one in facts.passes if one.began.site == entry.began.site]
        return self.finding(
            facts,
            place,
            f"the second derivative is zero everywhere: {kind} is piecewise linear",
            [
                f"The gradient that autograd.grad on {where} returned for {facts.describe(back.tensor)} is 0 in all "
                f"{back.value.count if back.value else 0} elements, in each of {len(same)} recorded calls.",
                f"It was the derivative of a derivative, and every way in that network passes {kind}, "
                "whose slope is constant on either side of its kink.",
            ],
            why="Between its kinks the network is linear in its input, so its second derivative is 0.",
            fix="Use a smooth activation (Tanh, SiLU, Softplus) in a network that is differentiated twice.",
            evidence=[
                facts.evidence(node, f"{node.name} is part of the graph that was differentiated twice"),
                facts.evidence(back, "the second derivative is all zeros"),
            ],
            subjects=[facts.describe(back.tensor)],
        )

    def _place(self, facts: Facts, node: Node, module: Module | None) -> Place:
        built = constructor(facts, node.module) if module is not None else None
        return built or facts.place(node.site)


def _results(facts: Facts, entry: Pass) -> Iterator[int]:
    """What was computed from the gradients that a pass returned: operations that took them."""
    for user in facts.of_site(entry.began.site):
        for output in user.outputs:
            yield from (1 for _ in facts.users.get(output, ()))


def _kinks(facts: Facts, entry: Pass) -> list[Node]:
    """The piecewise linear activations, if the root is a derivative and nothing on the way is curved."""
    nodes: dict[NodeId, Node] = {}
    for root in entry.began.root_nodes:
        nodes.update(facts.reached(root))
    twice = any("BackwardBackward" in node.name for node in nodes.values())
    if not twice:
        return []
    names = [node.name for node in nodes.values()]
    if any(name.startswith(CURVED) for name in names):
        return []
    pieces = [node for node in nodes.values() if node.name.startswith(LINEAR_PIECES)]
    forward = [_forward(facts, node) for node in pieces]
    return [node for node in forward if node is not None]


def _forward(facts: Facts, node: Node) -> Node | None:
    """The node of the activation itself, for one of its derivative."""
    kind, _, rest = node.name.partition("Backward")
    if "Backward" not in rest:
        return node
    named = ("Relu", "Hardtanh", "Threshold") if kind == "Threshold" else (kind,)
    for other in facts.nodes.values():
        own, _, end = other.name.partition("Backward")
        if own in named and "Backward" not in end and other.seq < node.seq:
            return other
    return None
