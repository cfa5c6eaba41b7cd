"""The weights of a chain of layers, in the order in which values pass them, with the size of their gradients."""

from __future__ import annotations

import math

import msgspec

from whygrad.ledger.events import GradWritten, ModuleCalled, ModuleId, TensorId
from whygrad.rules.facts import Facts, Pass


class Layer(msgspec.Struct, frozen=True):
    """A layer's weight, and the root mean square of its gradient in one pass."""

    module: ModuleId
    weight: TensorId
    write: GradWritten
    rms: float


def layers(facts: Facts, entry: Pass) -> list[Layer]:
    """The layers that a pass reached, in the order in which they were first called before it."""
    written = {write.tensor: write for write in entry.written}
    found: dict[ModuleId, Layer] = {}
    for call in facts.of(ModuleCalled):
        if call.seq > entry.began.seq:
            break
        module = facts.modules.get(call.module)
        if module is None or call.module in found:
            continue
        for _, tensor in module.parameters:
            known, write = facts.tensors.get(tensor), written.get(tensor)
            if known is None or write is None or len(known.shape) < 2 or write.before is not None:
                continue
            size = write.after.magnitude
            if size is not None and math.isfinite(size):
                found[call.module] = Layer(call.module, tensor, write, size / math.sqrt(max(1, write.after.count)))
            break
    return list(found.values())
