"""WG512: the learning rate is zero."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import OptimizerStepped
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place
from whygrad.rules.numbers import say, say_number
from whygrad.rules.rule import Rule
from whygrad.rules.schedules import schedulers

STEPS = 3


class RateZero(Rule):
    """The gradients are fine and the parameters do not move: the learning rate is 0.

    An optimizer with `lr=0`, a warm-up that never leaves its first value (`epoch // 10` with integers, a factor of 0),
    or a schedule that has run out multiplies every step by zero.

    **How to put it right.** Set a rate, or correct the function that gives the factor.
    """

    code = "WG512"
    slug = "rate-zero"
    explains = ("WG508",)
    search = (
        "learning rate is 0",
        "lr=0 parameters do not update",
        "LambdaLR returns 0",
        "warmup learning rate stays zero",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step // 100)  # <- here
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(5):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
            warmup.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 100))
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(5):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
            warmup.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for optimizer in facts.optimizers:
            steps = [step for step in facts.steps_of(optimizer) if step.lr]
            idle = [step for step in steps if not any(step.lr) and _has_gradient(step)]
            told = not any(group.options.get("lr") for group in facts.optimizers[optimizer][0].groups)
            if len(idle) >= (1 if told else STEPS) and idle == steps[: len(idle)]:
                yield self._finding(facts, idle, len(idle) == len(steps))

    def _finding(self, facts: Facts, idle: list[OptimizerStepped], always: bool) -> Finding:
        built = facts.optimizers[idle[0].optimizer][0]
        update = next(update for update in idle[0].updates if update.grad is not None and update.grad.magnitude)
        name = facts.describe(update.tensor)
        return self.finding(
            facts,
            self._place(facts, idle[0]),
            "the learning rate is 0",
            [
                f"In {'all' if always else 'the first'} {len(idle)} recorded steps the rate was "
                f"{say_number(0.0)}; {name} did "
                f"not move, although its gradient was {say(update.grad)}.",
            ],
            why="A step is the rate times a direction.",
            fix="Give the optimizer a rate, or correct the schedule's factor.",
            evidence=[
                facts.evidence(built, f"{built.kind} was built with a rate of {_rates(facts, idle[0])}"),
                facts.evidence(idle[-1], "a step with rate 0"),
            ],
            subjects=[facts.describe(each.tensor) for each in idle[0].updates],
        )

    def _place(self, facts: Facts, step: OptimizerStepped) -> Place:
        """The schedule that set the rate to zero, else the optimizer."""
        built = facts.optimizers[step.optimizer][0]
        if any(group.options.get("lr") or group.options.get("initial_lr") for group in built.groups):
            for scheduler in schedulers(facts):
                return facts.line(scheduler.source.path, scheduler.made.lineno)
        return facts.place(built.site if built.site is not None else step.site)


def _has_gradient(step: OptimizerStepped) -> bool:
    return any(update.grad is not None and update.grad.magnitude for update in step.updates)


def _rates(facts: Facts, step: OptimizerStepped) -> str:
    groups = facts.optimizers[step.optimizer][0].groups
    return ", ".join(str(group.options.get("lr")) for group in groups)
