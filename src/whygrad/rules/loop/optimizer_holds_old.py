"""WG506: the optimizer steps tensors that the model no longer uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import GradWritten, Optimizer, OptimizerStepped, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place
from whygrad.rules.memo import once
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import argument, calls, dotted
from whygrad.rules.untrained import is_parameter, paths_held


class Successor(msgspec.Struct, frozen=True):
    """A parameter that gets gradients in the place of one that an optimizer holds."""

    tensor: TensorId
    old: TensorId
    where: str
    write: GradWritten
    optimizer: Optimizer


class OptimizerHoldsOld(Rule):
    """The optimizer was built before the layer was replaced, so it steps tensors that nothing uses.

    An optimizer holds tensors, not names. A head that is replaced after the optimizer was built, a model that is
    deep-copied, `load_state_dict(..., assign=True)`, or a new `nn.Parameter` in an old place leave the optimizer with
    the old tensors: those get no gradients, are skipped at every step, and the new ones never move.

    **How to put it right.** Replace, copy and load first; build the optimizer last, from the model that is trained.
    """

    code = "WG506"
    slug = "optimizer-holds-old"
    explains = ("WG504", "WG221")
    search = (
        "replaced model.fc does not train",
        "optimizer created before changing the last layer",
        "deepcopy model optimizer parameters",
        "load_state_dict assign=True optimizer",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
        model[2] = nn.Linear(4, 1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import copy
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1)  # <- here
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
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
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
        model[2] = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        groups: dict[int, list[Successor]] = {}
        for one in successors(facts).values():
            groups.setdefault(one.optimizer.id, []).append(one)
        for members in groups.values():
            first = members[0]
            built = facts.optimizers[first.optimizer.id][0]
            names = [facts.describe(one.tensor) for one in members]
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            step = next(step for step in facts.steps_of(built.id) if step.seq > first.write.seq)
            yield self.finding(
                facts,
                _blame(facts, built),
                f"the optimizer holds other tensors than the ones that get gradients in {names[0]}{more}",
                [
                    f"{names[0]}{more} got gradients ({say(first.write.after)}, "
                    f"{facts.place(first.write.site).where}); "
                    f"the optimizer of {facts.place(built.site).where} does not hold them.",
                    f"It still holds {len(members)} tensors that no backward reaches, and skipped them "
                    f"on {facts.place(step.site).where}.",
                ],
                why="An optimizer keeps the tensors that it was built with, whatever the model's names refer to later.",
                fix="Build the optimizer last, from the parameters of the model that is trained.",
                evidence=[
                    facts.evidence(built, f"{built.kind} was built"),
                    facts.evidence(first.write, f"{names[0]}.grad = {say(first.write.after)}, held by no optimizer"),
                    facts.evidence(step, f"the step skipped {len(step.skipped)} tensors without a gradient"),
                ],
                subjects=names,
            )


@once
def successors(facts: Facts) -> dict[TensorId, Successor]:
    """Parameters that took, or look like, the place of tensors that an optimizer holds and no pass ever wrote to."""
    if facts.partial:
        return {}
    steps = facts.of(OptimizerStepped)
    written = {write.tensor: write for write in facts.of(GradWritten)}
    found: dict[TensorId, Successor] = {}
    for told in facts.optimizers.values():
        optimizer = told[-1]
        own = [step for step in steps if step.optimizer == optimizer.id]
        held = [tensor for group in optimizer.groups for tensor in group.parameters]
        last = own[-1].seq if own else 0
        recent = {tensor for tensor in held if tensor in written and written[tensor].seq > _previous(own)}
        dead = [tensor for tensor in held if tensor not in recent and any(tensor in step.skipped for step in own[-1:])]
        if not dead:
            continue
        waiting = [
            write
            for tensor, write in written.items()
            if tensor not in facts.held and write.seq < last and is_parameter(facts, tensor) and write.after.magnitude
        ]
        whole = not recent
        for write in waiting:
            old = _predecessor(facts, write.tensor, dead, whole)
            if old is not None:
                dead.remove(old)
                where = next(iter(paths_held(facts, write.tensor)), "")
                found[write.tensor] = Successor(write.tensor, old, where, write, optimizer)
    return found


def _previous(steps: list[OptimizerStepped]) -> int:
    return steps[-2].seq if len(steps) > 1 else 0


def _predecessor(facts: Facts, tensor: TensorId, dead: list[TensorId], whole: bool) -> TensorId | None:
    """The dead tensor whose place a tensor has: by the module path, or, where the entire set is dead, by the shape."""
    places = paths_held(facts, tensor)
    for old in dead:
        if places & paths_held(facts, old):
            return old
    shape = facts.tensors[tensor].shape
    if whole:
        return next((old for old in dead if facts.tensors[old].shape == shape), None)
    return None


def _blame(facts: Facts, built: Optimizer) -> Place:
    """The line to change: a load with `assign=True`, else where the optimizer was built."""
    place = facts.place(built.site)
    source = facts.source(place.path)
    load = _assigning_load(source, place.line)
    return facts.line(place.path, load.lineno) if load is not None else place


def _assigning_load(source: Source, after: int) -> ast.Call | None:
    for call in calls(source.tree, "load_state_dict"):
        given = argument(call, "assign")
        if call.lineno > after and isinstance(given, ast.Constant) and given.value is True and dotted(call.func):
            return call
    return None
