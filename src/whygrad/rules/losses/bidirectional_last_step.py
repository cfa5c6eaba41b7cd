"""WG407: the last step's output of a bidirectional layer as the feature of the sequence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Operation, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.flow import constant, through_rearranging
from whygrad.rules.losscalls import plain, shape_of
from whygrad.rules.rule import Rule

FULL = {"slice": [None, None, None]}


class BidirectionalLastStep(Rule):
    """The backward half of a bidirectional LSTM's last output has seen one step only.

    `output[:, -1]` is the last position. There the forward direction has read the whole sequence, but the backward
    direction, which starts at the end, has read a single element: its half of the feature ignores all the others. At
    position 0 it is the other way round.

    **How to see it.** The feature is the whole width of one end of a bidirectional output.

    **How to put it right.** Join the final states of both directions, `torch.cat([h_n[-2], h_n[-1]], dim=1)`, or
    `output[:, -1, :hidden]` and `output[:, 0, hidden:]`, or pool over time.
    """

    code = "WG407"
    slug = "bidirectional-last-step"
    severity = Severity.WARNING
    intended = "the second half is meant to depend on the last element alone"
    search = (
        "bidirectional LSTM last output",
        "output[:, -1] bidirectional",
        "BiLSTM sentence representation h_n concat",
        "backward direction only sees last token",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        gru = nn.GRU(3, 4, batch_first=True, bidirectional=True)
        head = nn.Linear(8, 1)
        output, state = gru(torch.randn(2, 6, 3))
        feature = output[:, -1, :]  # <- here
        head(feature).sum().backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        gru = nn.GRU(3, 4, batch_first=True, bidirectional=True)
        head = nn.Linear(8, 1)
        output, state = gru(torch.randn(2, 6, 3))
        head(torch.cat([state[0], state[1]], dim=1)).sum().backward()
        output, state = gru(torch.randn(2, 6, 3))
        head(torch.cat([output[:, -1, :4], output[:, 0, 4:]], dim=1)).sum().backward()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        gru = nn.GRU(3, 4, batch_first=True)
        head = nn.Linear(4, 1)
        output, state = gru(torch.randn(2, 6, 3))
        head(output[:, -1]).sum().backward()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        gru = nn.GRU(3, 4, batch_first=True, bidirectional=True)
        head = nn.Linear(8, 1)
        output, state = gru(torch.randn(2, 3, 3))
        sum(head(output[:, t]).sum() for t in (0, 1, -1)).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for call in facts.of(ModuleCalled):
            module = facts.modules.get(call.module)
            if module is None or module.kind not in ("LSTM", "GRU", "RNN") or not call.outputs:
                continue
            if "bidirectional=True" not in module.config or len(call.outputs[0].shape) != 3:
                continue
            output = call.outputs[0].tensor
            if output is None:
                continue
            time = 1 if "batch_first=True" in module.config else 0
            taken = list(_taken(facts, output, time, call.outputs[0].shape))
            ends = {end for _, end in taken}
            if len(ends) != 1 or "a part" in ends or call.outputs[0].shape[time] < 2:
                continue
            event, end = taken[0]
            if not _whole_width(facts, event.outputs[0], call.outputs[0].shape[2]):
                continue
            yield self._found(facts, call, event, end, call.outputs[0].shape, time)

    def _found(
        self, facts: Facts, call: ModuleCalled, event: Operation, end: str, shape: tuple[int, ...], time: int
    ) -> Finding:
        name = facts.modules[call.module].path or f"the {facts.modules[call.module].kind}"
        half = shape[2] // 2
        lacking, other = ("backward", "second") if end == "last" else ("forward", "first")
        return self.finding(
            facts,
            event.site if event.site is not None else facts.place(call.site),
            f"the {lacking} half of this feature has seen one step of {shape[time]}",
            [
                f"{name} is bidirectional: its output {shape} on {facts.place(call.site).where} has {half} numbers of "
                "each direction a step.",
                f"This takes the {end} step of it. There the {lacking} direction has read one element, so the {other} "
                f"{half} numbers of the feature do not depend on the other {shape[time] - 1}.",
            ],
            why="The backward direction begins at the end of the sequence: its final state is at position 0.",
            fix="Use the final states of both directions: torch.cat([h_n[-2], h_n[-1]], dim=1).",
            evidence=[
                facts.evidence(call, f"{name} gave outputs of both directions"),
                facts.evidence(event, f"the {end} step was taken, both halves"),
            ],
            subjects=[name],
        )


def _taken(facts: Facts, output: TensorId, time: int, shape: tuple[int, ...]) -> Iterator[tuple[Operation, str]]:
    """The selections of one step from the output: the operation, and which end."""
    for user in facts.users.get(output, ()):
        if not isinstance(user, Operation) or not user.outputs:
            continue
        name = plain(user.function)
        if name == "getitem" and len(user.inputs) > 1:
            end = _end(user, time, shape)
            if end:
                yield user, end
        elif name == "select" and len(user.inputs) == 3 and constant(user.inputs[1]) in (time, time - 3):
            yield user, _which(constant(user.inputs[2]), shape[time])


def _end(user: Operation, time: int, shape: tuple[int, ...]) -> str:
    index = user.inputs[1]
    items = index.items if index.items is not None else (index,)
    values = [constant(item) for item in items]
    if len(values) > time and isinstance(values[time], int):
        if any(value != FULL and not _ellipsis(value) for place, value in enumerate(values) if place != time):
            return "a part"
        return _which(values[time], shape[time])
    tensors = [item.tensor for item in items]
    if len(items) == 2 and all(tensor is not None for tensor in tensors):
        return "last" if re.search(r"-\s*1\b", items[time].code) else "a part"
    return ""


def _ellipsis(value: object) -> bool:
    return value == {"ellipsis": True}


def _which(value: object, length: int) -> str:
    if not isinstance(value, int):
        return "a part"
    if value in (-1, length - 1):
        return "last"
    return "first" if value in (0, -length) else "a part"


def _whole_width(facts: Facts, taken: TensorId, width: int) -> bool:
    """Whether both halves of the selected step are used: something other than a slice of one half takes it."""
    shape = shape_of(facts, taken)
    if shape is None or shape[-1] != width:
        return False
    halves = set()
    used = False
    for tensor in through_rearranging(facts, taken):
        kept = shape_of(facts, tensor)
        if kept is None or kept[-1:] != (width,):
            halves.add(tensor)
            continue
        for user in facts.users.get(tensor, ()):
            narrower = isinstance(user, Operation) and any(
                (shape_of(facts, one) or (width,))[-1] != width and plain(user.function) == "getitem"
                for one in user.outputs
            )
            used = used or not narrower
    return used or len(halves) != 1
