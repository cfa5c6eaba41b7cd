"""WG107: a frozen parameter keeps moving."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import (
    GradReset,
    GradWritten,
    OptimizerStepped,
    RequiresGradChanged,
    SiteId,
    StepsFolded,
    TensorId,
    Update,
)
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.numbers import say, say_number
from whygrad.rules.rule import Rule
from whygrad.rules.steps import real


class FrozenMoves(Rule):
    """A layer that was frozen with requires_grad=False still changes.

    Freezing stops *new* gradients. An old gradient that is still in the buffer is used again at every step, and with
    `zero_grad(set_to_none=False)` a zero stays there: then momentum, Adam's averages and weight decay go on moving
    the parameter. An optimizer only skips parameters whose gradient is None.

    **How to put it right.** Set `p.grad = None` when you freeze, or build the optimizer from the parameters that stay
    trainable.
    """

    code = "WG107"
    slug = "frozen-moves"
    explains = ("WG106", "WG108")
    search = ("frozen layer weights change", "requires_grad False but parameter updated", "freeze layer weight decay")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for step in range(4):
            if step == 2:
                model[0].requires_grad_(False)  # <- here
            optimizer.zero_grad(set_to_none=False)
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for step in range(4):
            if step == 2:
                model[0].requires_grad_(False)
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        groups: dict[SiteId | None, list[tuple[RequiresGradChanged, OptimizerStepped, Update]]] = {}
        frozen: dict[TensorId, RequiresGradChanged] = {}
        for event in facts.events:
            if isinstance(event, RequiresGradChanged):
                if event.to:
                    frozen.pop(event.tensor, None)
                else:
                    frozen[event.tensor] = event
            elif isinstance(event, GradWritten):
                frozen.pop(event.tensor, None)  # of a graph that was built before
            elif isinstance(event, OptimizerStepped):
                for update in event.updates:
                    if update.tensor in frozen and update.changed:
                        freeze = frozen.pop(update.tensor)
                        groups.setdefault(freeze.site, []).append((freeze, event, update))
        for members in groups.values():
            yield self._finding(facts, members)
        yield from self._folded(facts, frozen, set(groups))

    def _folded(
        self, facts: Facts, frozen: dict[TensorId, RequiresGradChanged], told: set[SiteId | None]
    ) -> Iterator[Finding]:
        """Steps that were recorded lightly: a frozen parameter's buffer was not None when they looked at it."""
        if len(facts.optimizers) != 1 or any(change.to for change in facts.of(RequiresGradChanged)):
            return  # another optimizer may have made the steps, or the freezing may have ended meanwhile
        for fold in facts.of(StepsFolded):
            kept = [
                (freeze, buffer)
                for buffer in fold.buffers
                if (freeze := frozen.get(buffer.tensor)) is not None
                and freeze.seq < fold.seq
                and freeze.step <= fold.first
                and fold.optimizer_steps
                and freeze.site not in told
                and (norm := real(buffer.norm_last)) is not None
                and (norm > 0 or _remembers(facts, buffer.tensor))
                and buffer.tensor in facts.held
            ]
            for site in dict.fromkeys(freeze.site for freeze, _ in kept):
                told.add(site)
                freeze, buffer = next(one for one in kept if one[0].site == site)
                name = facts.describe(buffer.tensor)
                built = facts.optimizers[facts.held[buffer.tensor][0]][-1]
                yield self.finding(
                    facts,
                    facts.place(site),
                    f"{name} is stepped on after being frozen",
                    [
                        f"{facts.place(site).where} switched requires_grad off for {name}; in the "
                        f"{fold.optimizer_steps} "
                        f"steps after it {name}.grad was not None but of norm {say_number(real(buffer.norm_last))}.",
                        f"{built.kind} steps every tensor whose gradient is not None.",
                    ],
                    why="An optimizer skips only parameters whose gradient is None; requires_grad stops new gradients.",
                    fix="Set .grad to None when freezing, or leave the parameter out of the optimizer.",
                    evidence=[
                        facts.evidence(freeze, f"requires_grad of {name} was switched off"),
                        facts.evidence(fold, f"steps {fold.first} to {fold.last} found a gradient in its buffer"),
                    ],
                    subjects=[facts.describe(each.tensor) for each, _ in kept],
                )

    def _finding(self, facts: Facts, members: list[tuple[RequiresGradChanged, OptimizerStepped, Update]]) -> Finding:
        freeze, step, update = members[0]
        names = [facts.describe(each.tensor) for _, _, each in members]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        how = f", by {say_number(update.change)}" if update.change is not None else ""
        zeroed = any(
            isinstance(event, GradReset) and event.to == "zero" and event.seq < step.seq
            for event in facts.history(update.tensor)
        )
        kept = (
            "a zero that the reset left"
            if zeroed and not (update.grad and update.grad.magnitude)
            else "the old gradient"
        )
        return self.finding(
            facts,
            freeze.site if freeze.site is not None else step.site or facts.place(None),
            f"{names[0]}{more} moved after being frozen",
            [
                f"{facts.place(freeze.site).where} switched requires_grad off for {names[0]}{more}; the step on "
                f"{facts.place(step.site).where} moved it all the same{how}.",
                f"Its .grad was not None but {say(update.grad)}: {kept}.",
            ],
            why="An optimizer skips only parameters whose gradient is None; requires_grad only stops new gradients.",
            fix="Set .grad to None when freezing, or leave the parameter out of the optimizer.",
            evidence=[
                facts.evidence(freeze, f"requires_grad of {names[0]} was switched off"),
                facts.evidence(step, f"the step moved {names[0]}{how}"),
            ],
            subjects=names,
        )


def _remembers(facts: Facts, tensor: TensorId) -> bool:
    """Whether the optimizer that holds a tensor moves it even with a gradient of zero."""
    for owner in facts.held.get(tensor, ()):
        told = facts.optimizers[owner][-1]
        for group in told.groups:
            if tensor in group.parameters and (
                told.kind != "SGD" or group.options.get("momentum") or group.options.get("weight_decay")
            ):
                return True
    return False
