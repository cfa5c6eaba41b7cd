"""WG301: training goes on in evaluation mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradReset, ModeChanged, Module, ModuleCalled, OptimizerStepped, StepsFolded, TensorId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.modulecalls import (
    Outermost,
    mode_matters,
    modules_of_pass,
    outermost_calls,
    parts_of,
)
from whygrad.rules.rule import Rule


class EvalLeftOn(Rule):
    """The model trains in evaluation mode: eval() was called and train() was not.

    `eval()` stays in force until someone calls `train()`. From the first validation on, Dropout lets everything
    through and BatchNorm uses its running statistics and no longer updates them, while the optimizer goes on. The
    loss may even look better than before; the model overfits, or its running statistics stay at what they were
    after the first few batches.

    **How to see it.** Backward passes and optimizer steps while the layers were called with `training=False`.

    **How to put it right.** Call `model.train()` after validation, or at the top of every training step or epoch.
    """

    code = "WG301"
    slug = "eval-left-on"
    intended = "the model is to be tuned with dropout off and fixed running statistics"
    search = (
        "model.train() after model.eval()",
        "forgot model.train",
        "running_mean does not change",
        "dropout has no effect in training",
        "num_batches_tracked stays",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        model.train()
        for epoch in range(3):
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.eval()  # <- here
            with torch.no_grad():
                print((model(x) - y).pow(2).mean().item())
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for epoch in range(3):
            model.train()
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                print((model(x) - y).pow(2).mean().item())
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).requires_grad_(False)
        head = nn.Linear(8, 1)
        backbone.eval()
        optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
        for _ in range(3):
            loss = head(backbone(torch.randn(8, 4))).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        switches = [event for event in facts.of(ModeChanged) if not event.training and event.changed]
        if not switches:
            return
        for one in facts.passes:
            if one.began.call != "backward" or not one.written:
                continue
            for outer in _part_of(facts, one):
                found = self._check_call(facts, one, outer, switches)
                if found is not None:
                    yield found

    def _check_call(self, facts: Facts, one: Pass, outer: Outermost, switches: list[ModeChanged]) -> Finding | None:
        for call in outer.all:
            module = facts.modules.get(call.module)
            difference = mode_matters(facts, module)
            if call.training or module is None or not difference:
                continue
            switch = _switched_by(module, call, switches)
            if switch is None:
                continue
            used = _used(facts, one, switch)
            if used is None:
                continue
            earlier = _trained_before(facts, call, switch)
            whole = not any(inner.training for inner in outer.all)
            alone = len(parts_of(facts, switch.module)) == 1
            if alone or (earlier is None and not whole):  # a layer or a part that is frozen on purpose
                continue
            return self._found(facts, one, call, module, difference, switch, earlier, whole)
        return None

    def _found(
        self,
        facts: Facts,
        one: Pass,
        call: ModuleCalled,
        module: Module,
        difference: str,
        switch: ModeChanged,
        earlier: ModuleCalled | None,
        whole: bool,
    ) -> Finding:
        owner = facts.modules[switch.module]
        name = owner.path or f"the {owner.kind}"
        layer = f"{module.path or 'a layer'} ({module.kind})"
        since = facts.place(switch.site).where
        happened = [
            f"{name}.{switch.call}({'' if switch.call == 'eval' else 'False'}) on {since} put {name} into evaluation "
            f"mode; nothing put it back before the backward on {facts.place(one.began.site).where} "
            f"(step {one.began.step}), which trained it.",
            f"In training {layer} {difference}; in this pass it ran with training=False.",
        ]
        if earlier is not None:
            happened.append(f"Earlier, on {facts.place(earlier.site).where}, it was trained with training=True.")
        return self.finding(
            facts,
            switch.site if switch.site is not None else facts.place(call.site),
            f"{name} is trained in evaluation mode",
            happened,
            why="eval() holds until train() is called; leaving the function or the no_grad block does not undo it.",
            fix=f"Call {owner.path or 'model'}.train() before training goes on (after validation, or at the top of "
            "each step).",
            evidence=[
                facts.evidence(switch, f"{name} was put into evaluation mode"),
                facts.evidence(call, f"{layer} was called with training=False"),
                facts.evidence(one.began, "a backward pass trained it"),
            ],
            subjects=[name],
            severity=Severity.ERROR if earlier is not None and whole else Severity.WARNING,
            edits=_edits(facts, one, owner),
        )


def _part_of(facts: Facts, one: Pass) -> Iterator[Outermost]:
    """The outermost calls whose nodes the pass went through."""
    modules = modules_of_pass(facts, one.began)
    earliest = max((other.began.seq for other in facts.passes if other.began.seq < one.began.seq), default=0)
    for outer in outermost_calls(facts):
        recent = earliest < outer.call.seq < one.began.seq
        if recent and outer.call.grad_mode == "on" and modules & {call.module for call in outer.all}:
            yield outer


def _switched_by(module: Module, call: ModuleCalled, switches: list[ModeChanged]) -> ModeChanged | None:
    """The call that put a module into evaluation mode, before `call`."""
    for switch in reversed(switches):
        if switch.seq < call.seq and any(path == module.path for path, _ in switch.changed):
            return switch
    return None


def _used(facts: Facts, one: Pass, switch: ModeChanged) -> TensorId | None:
    """A parameter of what was switched whose gradient of this pass an optimizer used."""
    owned = {tensor for part in parts_of(facts, switch.module) for _, tensor in part.parameters}
    for write in one.written:
        if write.tensor not in owned or write.tensor not in facts.held:
            continue
        step = next(
            (
                event
                for event in facts.of(OptimizerStepped)
                if event.seq > write.seq and any(update.tensor == write.tensor for update in event.updates)
            ),
            None,
        )
        limit = step.seq if step is not None else write.seq + 1
        reset = any(
            isinstance(event, GradReset) and write.seq < event.seq < limit for event in facts.history(write.tensor)
        )
        if (step is not None and not reset) or (
            step is None and any(fold.seq > write.seq for fold in facts.of(StepsFolded))
        ):
            return write.tensor
    return None


def _trained_before(facts: Facts, call: ModuleCalled, switch: ModeChanged) -> ModuleCalled | None:
    for other in facts.of(ModuleCalled):
        if other.seq >= switch.seq:
            return None
        if other.module == call.module and other.training and other.grad_mode == "on":
            return other
    return None


def _edits(facts: Facts, one: Pass, owner: Module) -> list[Edit]:
    """`model.train()` as the first statement of the loop that trains."""
    place = facts.place(one.began.site)
    source = facts.source(place.path)
    loop = source.loop_at(place.line)
    if loop is None or not owner.path or not all(part.isidentifier() for part in owner.path.split(".")):
        return []
    first = loop.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return []
    indent = " " * first.col_offset
    return [
        Edit(
            place.path,
            first.lineno,
            first.col_offset,
            first.lineno,
            first.col_offset,
            f"{owner.path}.train()\n{indent}",
        )
    ]
