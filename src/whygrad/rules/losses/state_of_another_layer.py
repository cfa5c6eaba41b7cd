"""WG409: the final state of another layer, or of one direction, than was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygrad.ledger.events import GradWritten, Module, ModuleCalled, Operation, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.flow import constant
from whygrad.rules.losscalls import plain
from whygrad.rules.rule import Rule


class StateOfAnotherLayer(Rule):
    """The upper layers of the LSTM get no gradient: h_n[0] is the state of the first layer.

    `h_n` has the shape (layers * directions, batch, features), first layer first. `h_n[0]` of a stack of layers is the
    state of the lowest one; nothing above it is used. `h_n[-1]` of a bidirectional layer is the backward direction
    alone; the forward one of that layer is unused.

    **How to see it.** A backward reaches the parameters of the layer that was taken and of no other above it.

    **How to put it right.** `h_n[-1]` for the last layer; `torch.cat([h_n[-2], h_n[-1]], dim=1)` for both directions.
    """

    code = "WG409"
    slug = "state-of-another-layer"
    severity = Severity.WARNING
    intended = "only that layer, or that direction, is wanted"
    search = (
        "h_n[0] or h_n[-1]",
        "weight_ih_l1 grad is None",
        "LSTM second layer no gradient",
        "bidirectional h_n concat",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        lstm, head = nn.LSTM(3, 4, num_layers=2, batch_first=True), nn.Linear(4, 1)
        _, (h_n, c_n) = lstm(torch.randn(6, 5, 3))
        feature = h_n[0]  # <- here
        head(feature).pow(2).mean().backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        lstm, head = nn.LSTM(3, 4, num_layers=2, batch_first=True), nn.Linear(4, 1)
        _, (h_n, c_n) = lstm(torch.randn(6, 5, 3))
        head(h_n[-1]).pow(2).mean().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        written = {event.tensor for event in facts.of(GradWritten) if event.after.magnitude}
        told = set()
        for call in facts.of(ModuleCalled):
            module = facts.modules.get(call.module)
            if module is None or module.kind not in ("LSTM", "GRU", "RNN") or len(call.outputs) < 2:
                continue
            taken = _taken(facts, call)
            lacking = _without_gradient(module, written)
            if taken is None or not lacking or module.id in told:
                continue
            told.add(module.id)
            event, index = taken
            name = module.path or f"the {module.kind}"
            count = call.outputs[1].shape[0]
            yield self.finding(
                facts,
                event.site if event.site is not None else facts.place(call.site),
                f"h_n[{index}] leaves {len(lacking)} parameters of {name} without a gradient",
                [
                    f"The state of {name} ({module.config}) holds {count} states, layer by layer; only number {index} "
                    f"is used. No backward gave a gradient to {', '.join(lacking[:4])}"
                    f"{' and others' if len(lacking) > 4 else ''}."
                ],
                why="h_n is ordered from the first layer to the last, and forward before backward in each.",
                fix="Use h_n[-1] for the last layer, or torch.cat([h_n[-2], h_n[-1]], dim=1) for both directions.",
                evidence=[
                    facts.evidence(call, f"{name} gave {count} states"),
                    facts.evidence(event, f"state {index} was taken"),
                ],
                subjects=[name, *(f"{name}.{one}" for one in lacking)],
            )


def _taken(facts: Facts, call: ModuleCalled) -> tuple[Operation, int] | None:
    """The only selection from the states; None where the output itself, or another state, is used too."""
    found: list[tuple[Operation, int]] = []
    for position, output in enumerate(call.outputs[:3]):
        for user in facts.users.get(output.tensor, ()) if output.tensor is not None else ():
            index = constant(user.inputs[1]) if isinstance(user, Operation) and len(user.inputs) == 2 else None
            if position == 0 or not isinstance(user, Operation) or plain(user.function) != "getitem":
                return None
            if type(index) is not int or len(output.shape) != 3:
                return None
            found.append((user, index))
    return found[0] if len(found) == 1 else None


def _without_gradient(module: Module, written: set[TensorId]) -> list[str]:
    """The parameters of whole layers or directions that no backward wrote, where it wrote others."""
    groups: dict[str, list[tuple[str, bool]]] = {}
    for name, tensor in module.parameters:
        group = re.sub(r"^(weight|bias)_(ih|hh|hr)_", "", name)
        groups.setdefault(group, []).append((name, tensor in written))
    reached = [group for group, members in groups.items() if any(wrote for _, wrote in members)]
    if not reached or len(reached) == len(groups):
        return []
    return [name for group, members in groups.items() if group not in reached for name, _ in members]
