"""WG221: an optimizer holds a parameter that no loss of the run was computed from."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, ModuleId, OptimizerStepped, Tensor, TensorId
from whygrad.rules.constructors import constructor, made_at
from whygrad.rules.facts import Facts, inputs_of
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.lost import names_of
from whygrad.rules.memo import once
from whygrad.rules.rule import Rule


@once
def used(facts: Facts) -> frozenset[TensorId]:
    """What the roots of all passes were computed from: tensors, and parameters of the modules that made them."""
    found: set[TensorId] = set()
    for root in {root for entry in facts.passes for root in entry.began.roots}:
        for current, _ in facts.flow.upstream(root):
            found.add(current)
            maker = facts.makers.get(current)
            if isinstance(maker, ModuleCalled):
                known = facts.modules.get(maker.module)
                found |= {tensor for _, tensor in (known.parameters if known is not None else ())}
            elif maker is not None:
                found |= set(inputs_of(maker))
    return frozenset(found)


class ParameterInNoLoss(Rule):
    """A layer is in the optimizer and gets no gradient: no loss was computed from it.

    The layer was made in the constructor and is not used in `forward`, or it is called and its result goes nowhere:
    overwritten by the next line, or left out of the sum of losses. Its `.grad` stays None, the optimizer skips it.
    (With several GPUs, DistributedDataParallel raises "Expected to have finished reduction" and names
    `find_unused_parameters`.)

    **How to put it right.** Use the result; or take the layer out of the model and the optimizer.
    """

    code = "WG221"
    slug = "parameter-in-no-loss"
    severity = Severity.WARNING
    intended = "the part is used in another phase of the training"
    search = ("find_unused_parameters", "parameter grad None", "unused parameter", "layer not used in forward")
    wrong = (
        """
        import torch
        first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        for _ in range(3):
            x = torch.randn(5, 3)
            h = first(x)  # <- here
            h = torch.relu(x)
            loss = second(h).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        for step in range(4):
            x = torch.randn(5, 3)
            loss = second(first(x) if step > 1 else x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        groups: dict[ModuleId | None, list[TensorId]] = {}
        for tensor in facts.of(Tensor):
            if self._unused(facts, tensor):
                owners = facts.owners.get(tensor.id)
                groups.setdefault(owners[0].module if owners else None, []).append(tensor.id)
        for module, tensors in groups.items():
            yield self._found(facts, module, tensors)

    def _unused(self, facts: Facts, tensor: Tensor) -> bool:
        if tensor.id not in facts.trained or tensor.id in facts.reached_leaves:
            return False
        if not tensor.leaf or not facts.flow.requires_grad(tensor.id):
            return False
        names = facts.ledger.names(tensor.id)
        replaced = not facts.owners.get(tensor.id) and any("." in name for name in names)
        if facts.frozen(tensor.id) or not names or replaced:
            return False
        return bool(facts.passes) and tensor.id not in used(facts)

    def _found(self, facts: Facts, module: ModuleId | None, tensors: list[TensorId]) -> Finding:
        names = names_of(facts, tensors)
        calls = [call for call in facts.of(ModuleCalled) if call.module == module] if module is not None else []
        uses = [made for tensor in tensors for made in facts.flow.uses.get(tensor, ())]
        skips = sum(1 for step in facts.of(OptimizerStepped) if set(tensors) & set(step.skipped))
        known = facts.modules.get(module) if module is not None else None
        who = (known.path or known.kind) if known is not None else names
        used = calls[0].site if calls else (uses[0].site if uses else None)
        if used is not None:
            place = facts.place(used)
            story = f"`{place.code}` ({place.where}) used {who}, and no backward of this run starts from anything that "
            story += "was computed from the result."
        else:
            place = (constructor(facts, module) if known is not None else made_at(facts, tensors[0])) or facts.place(
                None
            )
            story = f"{who} was never used in this run."
        return self.finding(
            facts,
            place,
            f"{names} gets no gradient: no loss is computed from it",
            [story, f"The optimizer skipped {names} in {skips} recorded steps: .grad is None."],
            why="A gradient goes back along the way that the value took; this one led to no loss.",
            fix="Use the result in the loss, or take the layer out.",
            evidence=[
                *([facts.evidence(calls[0], f"{who} was called")] if calls else []),
                *(facts.evidence(step, f"the step skipped {names}") for step in facts.of(OptimizerStepped)[:1]),
            ],
            subjects=[facts.describe(tensor) for tensor in tensors],
            severity=None if used is not None else Severity.NOTE,
        )
