"""WG513: the scheduler steps before the optimizer."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradChanged, Optimizer, OptimizerStepped, Warned
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.schedules import schedulers
from whygrad.rules.syntax import argument, calls, dotted, loops_of

TEXT = "`lr_scheduler.step()` before `optimizer.step()`"


class SchedulerBeforeOptimizer(Rule):
    """Detected call of `lr_scheduler.step()` before `optimizer.step()`.

    A scheduler sets the rate for the *next* step. If it runs before the optimizer has made its first one, the first
    value of the schedule is skipped: a warm-up starts at its second value, a decay is one step early all along.

    **How to put it right.** Call `optimizer.step()` first, then `scheduler.step()`.
    """

    code = "WG513"
    slug = "scheduler-before-optimizer"
    severity = Severity.WARNING
    search = (
        "Detected call of `lr_scheduler.step()` before `optimizer.step()`",
        "skip the first value of the learning rate schedule",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            scheduler.step()  # <- here
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
            scheduler.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        if any(change.by == "unscale_" for change in facts.of(GradChanged)):  # a scaler skips steps that overflow
            return
        warned = next((one for one in facts.of(Warned) if TEXT in one.text and one.site is not None), None)
        step = next(iter(facts.of(OptimizerStepped)), None)
        place = facts.place(warned.site) if warned is not None else _above(facts)
        if place is None:
            return
        later = (
            f"The first optimizer step came after it ({facts.place(step.site).where})"
            if step
            else "No optimizer stepped"
        )
        rate = f", with a rate of {step.lr[0]:.4g}." if step and step.lr else "."
        met = [facts.evidence(warned, "PyTorch warned of the order")] if warned is not None else []
        yield self.finding(
            facts,
            place,
            "the scheduler steps before the optimizer",
            [f"{place.where} moved the schedule on before any step had used its first value.", later + rate],
            why="A scheduler's step sets the rate for the optimizer's next step.",
            fix="Call optimizer.step() before scheduler.step().",
            evidence=[*met, *([facts.evidence(step, "the first optimizer step")] if step is not None else [])],
        )


def _above(facts: Facts) -> Place | None:
    """A scheduler's step that stands above the optimizer's in one loop, where nothing decides whether it runs.

    The first recorded step must show a rate other than the optimizer was built with.
    """
    for scheduler in schedulers(facts):
        source = scheduler.source
        optimizer = dotted(argument(scheduler.made, "optimizer", 0))
        built = next((told[0] for told in facts.optimizers.values() if told[-1].name == optimizer), None)
        first = next(iter(facts.steps_of(built.id)), None) if built is not None else None
        if built is None or first is None or not first.lr or first.lr[0] in _rates(built):
            continue
        stepped = [call for call in calls(source.tree, "step") if dotted(call.func) == f"{optimizer}.step"]
        for call in scheduler.steps:
            loops = loops_of(source, call)
            free = loops and source.parents.get(source.parents.get(call, call)) is loops[0]
            if free and any(call.lineno < one.lineno and loops[0] in loops_of(source, one) for one in stepped):
                return facts.line(source.path, call.lineno)
    return None


def _rates(built: Optimizer) -> list[object]:
    return [group.options.get("lr") for group in built.groups]
