"""Parameters that get gradients and that nothing moves: which, and why."""

from __future__ import annotations

import msgspec

from whygrad.ledger.events import (
    DataChanged,
    GradWritten,
    Module,
    ModuleCalled,
    ModuleId,
    Optimizer,
    OptimizerStepped,
    RequiresGradChanged,
    TensorId,
)
from whygrad.rules.facts import Facts
from whygrad.rules.memo import once


class Untrained(msgspec.Struct, frozen=True):
    """A leaf that got gradients, is held by no optimizer, and was not moved; `write` is one of its gradients.

    `beside` is an optimizer that stepped other leaves of the same pass.
    """

    tensor: TensorId
    write: GradWritten
    beside: Optimizer


@once
def untrained(facts: Facts) -> tuple[Untrained, ...]:
    """Every such leaf, in the order in which they got gradients."""
    stepped = {step.optimizer: step for step in facts.of(OptimizerStepped)}
    if not stepped or facts.partial:
        return ()
    moved = {change.tensor for change in facts.of(DataChanged)}
    found: dict[TensorId, Untrained] = {}
    for each in facts.passes:
        owners = [owner for write in each.written for owner in facts.held.get(write.tensor, ()) if owner in stepped]
        used = next((owner for owner in owners if stepped[owner].seq > each.began.seq), None)
        if used is None:
            continue
        for write in each.written:
            if write.tensor not in facts.held and write.tensor not in moved and write.after.magnitude:
                found[write.tensor] = Untrained(write.tensor, write, facts.optimizers[used][-1])
    return tuple(found.values())


def is_parameter(facts: Facts, tensor: TensorId) -> bool:
    """Whether a tensor is an `nn.Parameter`."""
    known = facts.tensors.get(tensor)
    return tensor in facts.owners or (known is not None and known.origin == "parameter")


def thawed_by(facts: Facts, tensor: TensorId, after: int) -> RequiresGradChanged | None:
    """What made a tensor trainable after an event."""
    changes = [one for one in facts.of(RequiresGradChanged) if one.tensor == tensor and one.seq > after and one.to]
    return changes[0] if changes else None


@once
def descriptions(facts: Facts) -> dict[ModuleId, list[Module]]:
    """How each module was described, in order: again whenever it got another path or other parameters."""
    told: dict[ModuleId, list[Module]] = {}
    for module in facts.of(Module):
        told.setdefault(module.id, []).append(module)
    return told


def paths_held(facts: Facts, tensor: TensorId) -> set[str]:
    """The places in which modules ever held a tensor (`model.head.weight`)."""
    return {f"{module.path}.{name}" for module in facts.of(Module) for name, one in module.parameters if one == tensor}


def calls_of_owner(facts: Facts, tensor: TensorId) -> list[ModuleCalled]:
    """The calls of the modules that hold a parameter themselves."""
    owners = {owner.module for owner in facts.owners.get(tensor, ())}
    return [call for call in facts.of(ModuleCalled) if call.module in owners]
