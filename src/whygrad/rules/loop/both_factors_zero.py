"""WG507: two factors of a product are zero, so neither ever gets a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import DataChanged, GradWritten, Node, NodeId, OptimizerStepped, TensorId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding, Place
from whygrad.rules.numbers import say_number
from whygrad.rules.rule import Rule
from whygrad.rules.steps import is_zero

PRODUCTS = ("Mm", "Mul", "Addmm", "Bmm", "Baddbmm", "Linear", "Mv", "Dot", "Convolution", "Addmv", "Addbmm")


class BothFactorsZero(Rule):
    """Two factors start at zero, and neither ever leaves it.

    In a product `A @ B` the gradient of each factor contains the other. If both are zero, both gradients are exactly
    zero, in every step: a saddle point that no optimizer leaves. It happens to low-rank adapters with both matrices
    at zero, to a zero gate in front of a zero output layer, and to a network whose layers are all zeroed.

    **How to see it.** The gradients are not None, they are 0 in every entry, from the first step on.

    **How to put it right.** Start only one of the two at zero: that keeps the product zero, and gives the other one
    a gradient.
    """

    code = "WG507"
    slug = "both-factors-zero"
    search = (
        "LoRA gradients are zero",
        "adapter never leaves zero",
        "gradient exactly zero not None",
        "zero initialization network does not learn",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        down = torch.nn.Parameter(torch.zeros(4, 2))  # <- here
        up = torch.nn.Parameter(torch.zeros(2, 3))
        optimizer = torch.optim.Adam([down, up], lr=0.05)
        x, y = torch.randn(8, 4), torch.randn(8, 3)
        for _ in range(3):
            loss = (x @ down @ up - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        down = torch.nn.Parameter(torch.randn(4, 2) * 0.1)
        up = torch.nn.Parameter(torch.zeros(2, 3))
        bias = torch.nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.Adam([down, up, bias], lr=0.05)
        x, y = torch.randn(8, 4), torch.randn(8, 3)
        for _ in range(3):
            loss = (x @ down @ up + bias - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        stuck = {tensor: writes for tensor, writes in _zero_gradients(facts).items() if _stays_zero(facts, tensor)}
        if len(stuck) < 2:
            return
        done: set[TensorId] = set()
        for each in facts.passes[:20]:
            zeros = [write.tensor for write in each.written if write.tensor in stuck and write.tensor not in done]
            if len(zeros) < 2:
                continue
            for one, other, node in _multiplied(facts, each, zeros):
                if one in done or other in done:
                    continue
                done |= {one, other}
                yield self._finding(facts, one, other, node, stuck)

    def _finding(
        self, facts: Facts, one: TensorId, other: TensorId, node: Node, stuck: dict[TensorId, list[GradWritten]]
    ) -> Finding:
        first, second = sorted((one, other), key=lambda tensor: _born(facts, tensor)[0])
        names = facts.describe(first), facts.describe(second)
        writes = stuck[first]
        return self.finding(
            facts,
            _born(facts, first)[1],
            f"{names[0]} and {names[1]} are both zero, and so are their gradients",
            [
                f"Every entry of {names[0]} and of {names[1]} is 0; {facts.place(node.site).where} multiplies them.",
                f"All {len(writes)} recorded gradients of each were exactly {say_number(0)}, so neither moved.",
            ],
            why="The gradient of each factor of a product contains the other factor: zero times anything.",
            fix=f"Start only one of them at zero; give {names[0]} small random values.",
            evidence=[
                facts.evidence(writes[0], f"{names[0]}.grad is zero in every entry"),
                facts.evidence(stuck[second][0], f"{names[1]}.grad is zero in every entry"),
                facts.evidence(writes[-1], f"{names[0]}.grad is still zero"),
            ],
            subjects=names,
        )


def _zero_gradients(facts: Facts) -> dict[TensorId, list[GradWritten]]:
    """Leaves that got at least two gradients (one where nothing was ever stepped), all of them exactly zero."""
    needed = 2 if facts.of(OptimizerStepped) else 1
    found: dict[TensorId, list[GradWritten]] = {}
    for write in facts.of(GradWritten):
        found.setdefault(write.tensor, []).append(write)
    return {
        tensor: writes
        for tensor, writes in found.items()
        if len(writes) >= needed and all(is_zero(write.after) for write in writes)
    }


def _stays_zero(facts: Facts, tensor: TensorId) -> bool:
    """Whether the leaf itself is zero in every entry, at the start and after each step that was measured."""
    known = facts.tensors.get(tensor)
    writes = [change for change in facts.of(DataChanged) if change.tensor == tensor]
    start = writes[-1].after if writes else known.value if known is not None else None
    if not is_zero(start):
        return False
    updates = [update for step in facts.of(OptimizerStepped) for update in step.updates if update.tensor == tensor]
    return all(not update.changed for update in updates)


def _multiplied(facts: Facts, each: Pass, zeros: list[TensorId]) -> Iterator[tuple[TensorId, TensorId, Node]]:
    """Pairs of leaves that reach one product by different operands."""
    root = next((node for node in each.began.root_nodes if node is not None), None)
    wanted = set(zeros)
    memo: dict[NodeId, frozenset[TensorId]] = {}
    for node in facts.reached(root).values():
        if node.name.startswith(PRODUCTS):
            sides = [_leaves(facts, edge.node, wanted, memo) | ({edge.leaf} & wanted) for edge in node.edges]
            for index, left in enumerate(sides):
                for right in sides[index + 1 :]:
                    for one in left:
                        for other in right:
                            if one != other and one is not None and other is not None:
                                yield one, other, node


def _leaves(
    facts: Facts, node: NodeId | None, wanted: set[TensorId], memo: dict[NodeId, frozenset[TensorId]]
) -> frozenset[TensorId]:
    if node is None:
        return frozenset()
    if node not in memo:
        memo[node] = frozenset(
            edge.leaf
            for inner in facts.reached(node).values()
            for edge in inner.edges
            if edge.leaf is not None and edge.leaf in wanted
        )
    return memo[node]


def _born(facts: Facts, tensor: TensorId) -> tuple[int, Place]:
    """When and where the leaf got its zeros."""
    writes = [change for change in facts.of(DataChanged) if change.tensor == tensor]
    if writes:
        return writes[-1].seq, facts.place(writes[-1].site)
    known = facts.tensors[tensor]
    return known.seq, facts.place(known.site)
