"""WG511: gradients are computed, and no step uses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradReturned, GradWritten, OptimizerId, OptimizerStepped, StepsFolded, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.loop.optimizer_holds_old import successors
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import uses
from whygrad.rules.syntax import dotted
from whygrad.rules.untrained import untrained

OFTEN = 3


class NothingStepped(Rule):
    """Gradients are there, and the parameters never move: the step is missing, early, or finds nothing.

    Three ways lead here. `optimizer.step()` is never called. It is called before `backward()`, so that it uses the
    gradient of the batch before (and nothing the first time). Or the gradients come from `torch.autograd.grad`, which
    *returns* them and leaves `.grad` at None, so that the optimizer skips every parameter.

    **How to put it right.** Call `zero_grad()`, `backward()`, `step()` in this order; assign `p.grad = g` for gradients
    from `torch.autograd.grad`.
    """

    code = "WG511"
    slug = "nothing-stepped"
    severity = Severity.WARNING
    search = (
        "optimizer.step not called",
        "autograd.grad then optimizer.step nothing happens",
        "loss constant parameters do not change",
        "step before backward",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()  # <- here
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            grads = torch.autograd.grad(loss, list(model.parameters()))  # <- here
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            loss = (model(x) - y).square().mean()
            grads = torch.autograd.grad(loss, list(model.parameters()))
            for parameter, grad in zip(model.parameters(), grads):
                parameter.grad = grad
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        folded = any(fold.optimizer_steps for fold in facts.of(StepsFolded))
        for optimizer in facts.optimizers:
            held = {tensor for group in facts.optimizers[optimizer][-1].groups for tensor in group.parameters}
            steps = list(facts.steps_of(optimizer))
            if not steps:
                if not folded:
                    yield from self._never(facts, optimizer, held)
            elif not any(update.grad is not None for step in steps for update in step.updates):
                yield from self._returned(facts, held, steps)
            elif (first := steps[0]).skipped and not first.updates:
                yield from self._early(facts, held, first)

    def _never(self, facts: Facts, optimizer: OptimizerId, held: set[TensorId]) -> Iterator[Finding]:
        writes = [write for write in facts.of(GradWritten) if write.tensor in held]
        by_hand = set(uses(facts)) & held
        passes = {write.backward: write for write in writes}
        if len(passes) < OFTEN or by_hand:
            return
        last = writes[-1]
        place = facts.place(last.site)
        if facts.source(place.path).loop_at(place.line) is None and not place.site:
            return
        name = facts.describe(last.tensor)
        yield self.finding(
            facts,
            place,
            "no optimizer ever steps",
            [
                f"{len(passes)} backward passes wrote gradients (the last: {name}.grad = {say(last.after)}); the "
                f"{facts.optimizers[optimizer][0].kind} that holds these parameters was never stepped.",
            ],
            why="backward() only fills .grad; step() moves the parameters.",
            fix="Call optimizer.step() after backward().",
            evidence=[
                facts.evidence(facts.optimizers[optimizer][0], "the optimizer was built"),
                facts.evidence(last, f"{name}.grad = {say(last.after)}"),
            ],
            subjects=[facts.describe(tensor) for tensor in held],
        )

    def _returned(self, facts: Facts, held: set[TensorId], steps: list[OptimizerStepped]) -> Iterator[Finding]:
        back = next((one for one in facts.of(GradReturned) if one.tensor in held and one.value is not None), None)
        if back is None or any(write.tensor in held for write in facts.of(GradWritten)):
            return
        name = facts.describe(back.tensor)
        yield self.finding(
            facts,
            facts.place(back.site),
            "autograd.grad returns the gradients, and the optimizer looks for them in .grad",
            [
                f"{facts.place(back.site).where} returned {say(back.value)} for {name} and left its .grad at None.",
                f"All {len(steps)} recorded steps skipped all {len(held)} parameters.",
            ],
            why="torch.autograd.grad leaves the buffers alone; optimizers read nothing but .grad.",
            fix="Call loss.backward(), or assign each returned gradient to its parameter's .grad before step().",
            evidence=[
                facts.evidence(back, f"a gradient for {name} was returned, not stored"),
                facts.evidence(steps[0], f"the step skipped {len(steps[0].skipped)} parameters"),
            ],
            subjects=[facts.describe(tensor) for tensor in held],
            severity=Severity.ERROR,
        )

    def _early(self, facts: Facts, held: set[TensorId], first: OptimizerStepped) -> Iterator[Finding]:
        later = next((write for write in facts.of(GradWritten) if write.tensor in held and write.seq > first.seq), None)
        if later is None or successors(facts) or untrained(facts):
            return
        stepped, written = facts.place(first.site), facts.place(later.site)
        source = facts.source(stepped.path)
        loop = source.loop_at(stepped.line)
        if loop is None or loop is not source.loop_at(written.line) or not stepped.line < written.line:
            return
        if any(isinstance(outer, ast.If) for outer in _above(facts, stepped.path, stepped.line, loop)):
            return
        name = facts.describe(later.tensor)
        yield self.finding(
            facts,
            stepped,
            "the step comes before the backward",
            [
                f"The first step ({stepped.where}) found no gradient and skipped all {len(first.skipped)} parameters; "
                f"{written.where} wrote {name}.grad = {say(later.after)} after it.",
                "Each later step uses the gradient of the round before.",
            ],
            why="step() uses what is in .grad when it runs.",
            fix="Move step() below backward().",
            evidence=[
                facts.evidence(first, "the step skipped everything"),
                facts.evidence(later, f"{name}.grad was written after it"),
            ],
            subjects=[facts.describe(tensor) for tensor in held],
        )


def _above(facts: Facts, path: str, line: int, loop: ast.AST) -> Iterator[ast.AST]:
    source = facts.source(path)
    statement = source.statement(line)
    for outer in source.around(statement) if statement is not None else ():
        if outer is loop or dotted(outer):
            return
        yield outer
