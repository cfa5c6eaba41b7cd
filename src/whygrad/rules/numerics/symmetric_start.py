"""WG609: all units of a layer start equal, and stay equal."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import DataChanged, GradWritten, TensorId
from whygrad.ledger.values import Value
from whygrad.rules.constructors import initialised
from whygrad.rules.depths import layers
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.flow import is_zero
from whygrad.rules.numbers import say_number
from whygrad.rules.rule import Rule


class SymmetricStart(Rule):
    """All hidden units learn the same: the weights were initialised with one constant.

    Units that start with equal weights compute the same, get the same gradient and stay equal for ever: a layer of a
    hundred units works like one. `zeros_`, `ones_` and `constant_` on the weights of a hidden layer do this (on a bias
    or on the last layer they do no harm).

    **How to see it.** The rows of the weight's gradient are identical.

    **How to put it right.** Initialise the weights at random: `nn.init.xavier_uniform_`, `kaiming_normal_`.
    """

    code = "WG609"
    slug = "symmetric-start"
    search = ("symmetric initialization", "all neurons identical", "constant init", "zero weight initialization")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
        nn.init.constant_(model[2].weight, 0.5)
        nn.init.constant_(model[0].weight, 0.5)  # <- here
        nn.init.zeros_(model[0].bias)
        loss = (model(torch.randn(8, 4)) - 1).pow(2).mean()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
        nn.init.zeros_(model[2].weight)
        nn.init.zeros_(model[0].bias)
        loss = (model(torch.randn(8, 4)) - torch.tensor([1.0, 2.0])).pow(2).mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        writes: dict[TensorId, list[GradWritten]] = {}
        for write in facts.of(GradWritten):
            writes.setdefault(write.tensor, []).append(write)
        for tensor, told in writes.items():
            shape = facts.tensors[tensor].shape
            if len(shape) != 2 or shape[0] < 2 or tensor not in facts.owners:
                continue
            start = facts.value(tensor, told[0].seq)
            if not _layer(facts, tensor) or not (
                _constant(facts, tensor, told[0].seq) or (start and equal_rows(start))
            ):
                continue
            whole = all(one.after.items is not None for one in told)
            same = all(equal_rows(one.after) and not is_zero(one.after) for one in told)
            if same if whole else (not is_zero(told[0].after) and _next_alike(facts, tensor, told[0])):
                yield self._found(facts, tensor, told, start)

    def _found(self, facts: Facts, tensor: TensorId, told: list[GradWritten], start: Value | None) -> Finding:
        name = facts.describe(tensor)
        units, width = facts.tensors[tensor].shape
        row = (start.items or ())[:width] if start is not None else ()
        shown = ", ".join(say_number(one) for one in row[:4])
        begins = f"starts as [{shown}{', ...' if len(row) > 4 else ''}]" if row else "was filled with one constant"
        write = told[0]
        return self.finding(
            facts,
            initialised(facts, tensor, write.seq) or facts.place(write.site),
            f"the {units} units of {name} start equal and stay equal",
            [
                f"Every row of {name} {begins}, "
                + (
                    f"and in all {len(told)} recorded passes every row of its gradient is the same: "
                    if write.after.items is not None
                    else "and the next layer takes all units with equal weights, so their gradients are the same: "
                )
                + "the units can never differ.",
            ],
            why="Equal units compute the same and get the same gradient; only a random start tells them apart.",
            fix="Initialise the weights at random (nn.init.xavier_uniform_, kaiming_normal_).",
            evidence=[facts.evidence(write, f"the rows of {name}.grad are identical")],
            subjects=[name],
        )


def equal_rows(value: Value) -> bool:
    """Whether all rows of a matrix are the same, element by element."""
    if value.items is None or len(value.shape) != 2 or value.shape[0] < 2:
        return False
    width = value.shape[1]
    rows = {tuple(_rounded(one) for one in value.items[at : at + width]) for at in range(0, len(value.items), width)}
    return len(rows) == 1


CONSTANTS = ("constant_", "zeros_", "ones_", "fill_", "zero_")


def _constant(facts: Facts, tensor: TensorId, before: int) -> bool:
    """Whether the last write into a weight filled it with one number."""
    writes = [change for change in facts.of(DataChanged) if change.tensor == tensor and change.seq < before]
    return bool(writes) and writes[-1].by.endswith(CONSTANTS)


def _next_alike(facts: Facts, tensor: TensorId, write: GradWritten) -> bool:
    """Whether the next layer takes all units alike: its weight has equal columns."""
    entry = next((one for one in facts.passes if one.id == write.backward), None)
    chain = [layer.weight for layer in layers(facts, entry)] if entry is not None else []
    at = chain.index(tensor) + 1 if tensor in chain else len(chain)
    if at >= len(chain) or facts.tensors[chain[at]].shape[-1] != facts.tensors[tensor].shape[0]:
        return False
    if _constant(facts, chain[at], write.seq):
        return True
    following = facts.value(chain[at], write.seq)
    if following is None or following.items is None or len(following.shape) != 2:
        return False
    width = following.shape[1]
    return all(len(set(following.items[row : row + width])) == 1 for row in range(0, len(following.items), width))


def _rounded(item: object) -> object:
    return float(f"{item:.5g}") if isinstance(item, float) else item


def _layer(facts: Facts, tensor: TensorId) -> bool:
    """Whether the tensor is the weight of a layer that maps features, not a table of vectors."""
    kinds = {facts.modules[owner.module].kind for owner in facts.owners.get(tensor, ())}
    return not kinds & {"Embedding", "EmbeddingBag"}
