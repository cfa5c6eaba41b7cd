"""WG306: the running statistics of a frozen BatchNorm go on moving."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import (
    DataChanged,
    ModeChanged,
    Module,
    ModuleCalled,
    OptimizerStepped,
    RequiresGradChanged,
    SiteId,
    TensorId,
)
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.modulecalls import inside_path, outermost_calls, tracks_statistics
from whygrad.rules.rule import Rule


class FrozenStatisticsMove(Rule):
    """The frozen backbone changes: its BatchNorm statistics keep moving.

    `requires_grad_(False)` keeps the optimizer away from weight and bias. `running_mean` and `running_var` are no
    parameters: every forward in training mode moves them, so the features of a "frozen" part drift. And what
    `bn.eval()` froze, the next `model.train()` unfreezes, since `train()` goes through all submodules.

    **How to see it.** A BatchNorm with frozen parameters is called with `training=True`.

    **How to put it right.** Call `backbone.eval()` after every `model.train()`, or override `train()` in the model so
    that it puts the frozen part back into evaluation mode.
    """

    code = "WG306"
    slug = "frozen-statistics-move"
    severity = Severity.WARNING
    intended = "the statistics are to adapt to the new data while the weights stay"
    search = (
        "freeze BatchNorm",
        "requires_grad False but BatchNorm changes",
        "frozen backbone running_mean changes",
        "model.train() resets bn.eval()",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
        model[:2].requires_grad_(False)
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.01)
        model[1].eval()
        for epoch in range(3):
            model.train()  # <- here
            loss = model(torch.randn(8, 4) + 5).pow(2).mean()
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
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
        model[:2].requires_grad_(False)
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.01)
        for epoch in range(3):
            model.train()
            model[1].eval()
            loss = model(torch.randn(8, 4) + 5).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        steps = facts.of(OptimizerStepped)
        if not steps:
            return
        updated = {update.tensor for step in steps for update in step.updates}
        written = {event.tensor for event in facts.of(DataChanged) if event.seq > steps[0].seq}
        for outer in outermost_calls(facts):
            for call in outer.all:
                module = facts.modules.get(call.module)
                if module is None or not call.training or not tracks_statistics(module):
                    continue
                reset = _reset(facts, module, call)
                parameters = [tensor for _, tensor in module.parameters]
                frozen = bool(parameters) and not any(
                    tensor in updated or tensor in written or _requires_grad(facts, tensor, call.seq)
                    for tensor in parameters
                )
                if not _in_training(facts, outer.call, module, updated, written):
                    continue
                if frozen or (reset is not None and reset[0].module == module.id):
                    yield self._found(facts, call, module, reset, frozen)

    def _found(
        self,
        facts: Facts,
        call: ModuleCalled,
        module: Module,
        reset: tuple[ModeChanged, ModeChanged] | None,
        frozen: bool,
    ) -> Finding:
        name = module.path or f"the {module.kind}"
        evidence = [facts.evidence(call, f"{name} ran with training=True: its running statistics moved")]
        happened = [
            f"{name} ({module.kind}) was called with training=True on {facts.place(call.site).where}: it normalised "
            "with the batch and moved running_mean and running_var."
        ]
        freeze = _frozen_at(facts, module)
        if frozen:
            happened.append("Its weight and bias require no gradient and no step changed them in this run.")
        if reset is not None:
            froze, thawed = reset
            happened.append(
                f"It was put into evaluation mode on {facts.place(froze.site).where}; train() on "
                f"{facts.place(thawed.site).where} undid that."
            )
            evidence += [facts.evidence(froze, f"{name} was put into evaluation mode")]
            evidence += [facts.evidence(thawed, "train() put it back into training mode")]
            at = thawed.site
        else:
            told = _told_to_train(facts, module, call, freeze)
            at = told.site if told is not None else freeze or call.site
        return self.finding(
            facts,
            at if at is not None else facts.place(call.site),
            f"the statistics of {name} move although it is frozen",
            happened,
            why="Running statistics are buffers: requires_grad does not reach them, and train() goes through all "
            "submodules.",
            fix="Put the frozen part into evaluation mode after every train(), for instance by overriding train() in "
            "the model.",
            evidence=evidence,
            subjects=[name],
        )


def _reset(facts: Facts, module: Module, call: ModuleCalled) -> tuple[ModeChanged, ModeChanged] | None:
    """An eval() of a part that holds the module, and the train() of more than that part that undid it."""
    thawed = None
    for event in reversed(facts.of(ModeChanged)):
        if event.seq > call.seq or not any(path == module.path for path, _ in event.changed):
            continue
        owner = facts.modules.get(event.module)
        if thawed is None:
            if not event.training:
                return None
            thawed = event
        elif not event.training and owner is not None:
            whole = facts.modules.get(thawed.module)
            smaller = whole is not None and owner.id != whole.id and not inside_path(whole.path, owner.path)
            return (event, thawed) if smaller else None
    return None


def _requires_grad(facts: Facts, tensor: TensorId, before: int) -> bool:
    known = facts.tensors.get(tensor)
    state = known is not None and known.requires_grad
    for event in facts.of(RequiresGradChanged):
        if event.tensor == tensor and event.seq < before:
            state = event.to
    return state


def _in_training(
    facts: Facts, top: ModuleCalled, module: Module, updated: set[TensorId], written: set[TensorId]
) -> bool:
    """Whether the call is of something that is trained in part: other parameters of the program are updated."""
    if module.id == top.module and not updated:
        return False
    owner = facts.modules.get(top.module)
    siblings = {
        tensor
        for one in facts.modules.values()
        if owner is not None and inside_path(one.path, owner.path)
        for _, tensor in one.parameters
    }
    return not siblings & written


def _frozen_at(facts: Facts, module: Module) -> SiteId | None:
    tensors = {tensor for _, tensor in module.parameters}
    return next(
        (event.site for event in facts.of(RequiresGradChanged) if event.tensor in tensors and not event.to), None
    )


def _told_to_train(facts: Facts, module: Module, call: ModuleCalled, freeze: SiteId | None) -> ModeChanged | None:
    """The last train() before the call that reached the module, if it came after the freezing."""
    frozen = next((event.seq for event in facts.of(RequiresGradChanged) if event.site == freeze), 0)
    for event in reversed(facts.of(ModeChanged)):
        owner = facts.modules.get(event.module)
        reaches = owner is not None and (owner.id == module.id or inside_path(module.path, owner.path))
        if frozen < event.seq < call.seq and event.training and reaches:
            return event
    return None
