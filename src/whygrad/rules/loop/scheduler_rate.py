"""WG514: the scheduler is stepped in other units than it counts in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import OptimizerStepped, StepsFolded
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say_number
from whygrad.rules.rule import Rule
from whygrad.rules.schedules import Scheduler, literal, rounds, schedulers
from whygrad.rules.source import Source
from whygrad.rules.syntax import argument, assignments, calls, dotted, loops_of

COLLAPSED = 1e-3
LENGTHS = {
    "OneCycleLR": ("total_steps", "steps_per_epoch"),
    "CosineAnnealingLR": ("T_max",),
    "LinearLR": ("total_iters",),
    "PolynomialLR": ("total_iters",),
}
"""The options in which a schedule is told how long it is."""


class SchedulerRate(Rule):
    """The learning rate collapses, or never changes: the scheduler counts epochs and is stepped per batch, or reversed.

    A scheduler counts the calls of its `step()`. `StepLR(step_size=30)` means thirty *calls*. Called once a batch, it
    divides the rate every thirty batches and is at nothing after the first epoch; a `OneCycleLR` that was told
    `epochs * len(loader)` steps and is called once an epoch never leaves its warm-up.

    **How to put it right.** Step it where its unit ends: in the loop over epochs if its numbers are epochs, next to
    `optimizer.step()` if they are steps.
    """

    code = "WG514"
    slug = "scheduler-rate"
    severity = Severity.WARNING
    search = (
        "learning rate goes to zero too fast",
        "scheduler.step every batch instead of every epoch",
        "OneCycleLR called once per epoch",
        "StepLR decays too quickly",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for epoch in range(6):
            for i in range(8):
                optimizer.zero_grad()
                (model(x[i]) - y[i]).square().mean().backward()
                optimizer.step()
                scheduler.step()  # <- here
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=6 * len(x))
        for epoch in range(6):
            for i in range(8):
                optimizer.zero_grad()
                (model(x[i]) - y[i]).square().mean().backward()
                optimizer.step()
            scheduler.step()  # <- here
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for epoch in range(6):
            for i in range(8):
                optimizer.zero_grad()
                (model(x[i]) - y[i]).square().mean().backward()
                optimizer.step()
            scheduler.step()
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6 * len(x))
        for epoch in range(6):
            for i in range(8):
                optimizer.zero_grad()
                (model(x[i]) - y[i]).square().mean().backward()
                optimizer.step()
                scheduler.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        steps = len(facts.of(OptimizerStepped)) + sum(fold.optimizer_steps for fold in facts.of(StepsFolded))
        if steps < 4:
            return
        for scheduler in schedulers(facts):
            for call in scheduler.steps:
                place = _units(scheduler.source, scheduler, call)
                if place is None:
                    continue
                per_batch, outer = place
                if per_batch:
                    yield from self._too_often(facts, scheduler, call, steps, outer)
                else:
                    yield from self._too_rarely(facts, scheduler, call, steps)

    def _too_often(
        self, facts: Facts, scheduler: Scheduler, call: ast.Call, steps: int, outer: ast.AST | None
    ) -> Iterator[Finding]:
        """Stepped with every optimizer step: does the schedule run out long before the end?"""
        source, kind = scheduler.source, scheduler.kind
        epochs = rounds(source, outer)
        if kind in ("CosineAnnealingLR", "PolynomialLR", "LinearLR"):
            length = literal(
                source, argument(scheduler.made, LENGTHS[kind][0], 1 if kind == "CosineAnnealingLR" else None)
            )
            if length is None or epochs is None or length != epochs or steps < 3 * length:
                return
            said = f"its {LENGTHS[kind][0]} is {length:g}, as many as the loop has epochs"
        else:
            halfway = _factor(source, scheduler, steps // 2)
            if halfway is None or halfway >= COLLAPSED:
                return
            said = f"halfway through the run the rate was down by a factor of {say_number(halfway)}"
        yield self._finding(
            facts, scheduler, call, f"{kind} is stepped once a batch: {steps} times in this run; {said}.",
            f"{kind} is stepped with every batch, and runs out long before the end",
            "Step it once an epoch, or give it its numbers in batches.",
        )  # fmt: skip

    def _too_rarely(self, facts: Facts, scheduler: Scheduler, call: ast.Call, steps: int) -> Iterator[Finding]:
        """Stepped in an outer loop: was it told its length in batches?"""
        for name in LENGTHS.get(scheduler.kind, ()):
            told = argument(scheduler.made, name, 1 if scheduler.kind == "CosineAnnealingLR" else None)
            if told is None:
                continue
            loops = loops_of(scheduler.source, call)
            epochs, length = rounds(scheduler.source, loops[0] if loops else None), literal(scheduler.source, told)
            in_batches = _speaks_of_batches(scheduler.source, told) or (
                epochs is not None and length is not None and length >= 4 * epochs and length <= steps
            )
            if in_batches:
                text = scheduler.source.segment(told)
                yield self._finding(
                    facts, scheduler, call,
                    f"{scheduler.kind} was told a length in batches ({name}={text}) and is stepped "
                    "once an epoch, while "
                    f"the optimizer made {steps} steps in all.",
                    f"{scheduler.kind} counts batches and is stepped once an epoch",
                    "Step it right after optimizer.step(), in the loop over batches.",
                )  # fmt: skip
                return

    def _finding(
        self, facts: Facts, scheduler: Scheduler, call: ast.Call, happened: str, title: str, fix: str
    ) -> Finding:
        rates = [step for step in facts.of(OptimizerStepped) if step.lr]
        seen = (
            f"The rate was {say_number(rates[0].lr[0])} in the first recorded step and "
            f"{say_number(rates[-1].lr[0])} in "
            f"the last ({rates[-1].step})."
        )
        return self.finding(
            facts,
            facts.line(scheduler.source.path, call.lineno),
            title,
            [happened, seen],
            why="A scheduler counts the calls of its step(), whatever they mean.",
            fix=fix,
            evidence=[
                facts.evidence(rates[0], f"a rate of {say_number(rates[0].lr[0])}"),
                facts.evidence(rates[-1], f"a rate of {say_number(rates[-1].lr[0])}"),
            ],
            subjects=[scheduler.name],
        )


def _units(source: Source, scheduler: Scheduler, call: ast.Call) -> tuple[bool, ast.AST | None] | None:
    """Whether a scheduler's step stands in the loop of the optimizer's step, and the loop around that one."""
    optimizer = dotted(argument(scheduler.made, "optimizer", 0))
    stepped = [one for one in calls(source.tree, "step") if dotted(one.func) == f"{optimizer}.step"]
    own = loops_of(source, call)
    for step in stepped:
        loops = loops_of(source, step)
        if own and loops and loops[0] is own[0]:
            return True, loops[1] if len(loops) > 1 else None
        if own and len(loops) > 1 and own[0] in loops[1:]:
            return False, None
    return None


def _factor(source: Source, scheduler: Scheduler, count: int) -> float | None:
    """By what a decaying schedule has multiplied the rate after `count` calls."""
    made = scheduler.made
    if scheduler.kind == "StepLR":
        size, gamma = literal(source, argument(made, "step_size", 1)), literal(source, argument(made, "gamma", 2))
        return None if not size else float((0.1 if gamma is None else gamma) ** (count // size))
    if scheduler.kind == "ExponentialLR":
        gamma = literal(source, argument(made, "gamma", 1))
        return None if gamma is None else float(gamma**count)
    if scheduler.kind == "MultiStepLR":
        stones = argument(made, "milestones", 1)
        gamma = literal(source, argument(made, "gamma", 2))
        if isinstance(stones, (ast.List, ast.Tuple)):
            passed = [at for one in stones.elts if (at := literal(source, one)) is not None and at <= count]
            return float((0.1 if gamma is None else gamma) ** len(passed))
    return None


def _speaks_of_batches(source: Source, node: ast.expr) -> bool:
    """Whether an expression counts batches: it takes the length of something, itself or by a name."""
    if any(True for _ in calls(node, "len")):
        return True
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return any(
        dotted(target) in names and any(True for _ in calls(value, "len"))
        for _, target, value in assignments(source.tree)
    )
