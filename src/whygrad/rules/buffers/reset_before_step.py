"""WG102: the gradients are reset between backward and step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradReset, GradWritten, OptimizerStepped, SiteId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import Buffer, back_from
from whygrad.rules.syntax import dotted


class ResetBeforeStep(Rule):
    """The optimizer steps with empty gradients: they are reset before it can use them.

    `optimizer.step()` uses what is in `.grad` at that moment. If `zero_grad()` runs after `backward()` and before
    `step()`, there is nothing left: parameters are skipped (or moved by weight decay and momentum alone), and the
    loss stays flat. The same happens if `step()` stands before `backward()` and after `zero_grad()`.

    **How to put it right.** Keep the order `zero_grad()`, `backward()`, `step()`.
    """

    code = "WG102"
    slug = "reset-before-step"
    explains = ("WG508", "WG507", "WG108", "WG113")
    search = ("zero_grad between backward and step", "loss does not change", "optimizer.step has no effect")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.zero_grad()  # <- here
            optimizer.step()
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            optimizer.step()  # <- here
            loss.backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        for optimizer, built in facts.optimizers.items():
            held = [tensor for group in built[-1].groups for tensor in group.parameters]
            previous = 0
            for step in facts.steps_of(optimizer):
                last = [(tensor, *_last(facts, tensor, previous, step.seq)) for tensor in held]
                fresh = any(isinstance(event, GradWritten) for _, event, _ in last)
                lost = [
                    (tensor, write, event)
                    for tensor, event, write in last
                    if isinstance(event, GradReset) and write is not None and write.after.magnitude
                ]
                previous = step.seq
                if lost and not fresh and lost[0][2].site not in told:
                    told.add(lost[0][2].site)
                    yield self._finding(facts, step, lost)

    def _finding(
        self, facts: Facts, step: OptimizerStepped, lost: list[tuple[TensorId, GradWritten, GradReset]]
    ) -> Finding:
        _, write, reset = lost[0]
        name = facts.describe(write.tensor)
        early = _steps_first(facts, step, write, reset)
        left = "None" if reset.to == "none" else "zero"
        at = step.site if early else reset.site
        return self.finding(
            facts,
            at if at is not None else facts.place(step.site),
            "the step comes before the backward, and after the reset"
            if early
            else "the gradients are reset before the optimizer uses them",
            [
                f"{facts.place(write.site).where} wrote {name}.grad = {say(write.after)}; "
                f"{facts.place(reset.site).where} ({reset.by}) reset it, and the step on "
                f"{facts.place(step.site).where} found {left}.",
                f"So it was for all {len(lost)} parameters with a gradient.",
            ],
            why="step() uses what is in .grad at that moment.",
            fix="Keep the order zero_grad(), backward(), step().",
            evidence=[
                facts.evidence(write, f"{name}.grad = {say(write.after)}"),
                facts.evidence(reset, f"{name}.grad was reset by {reset.by}"),
                facts.evidence(step, f"the step found {left}"),
            ],
            subjects=[facts.describe(one.tensor) for _, one, _ in lost],
            edits=() if early else _edits(facts, write, reset),
        )


def _last(facts: Facts, tensor: TensorId, after: int, before: int) -> tuple[Buffer | None, GradWritten | None]:
    """The last that happened to a buffer between two steps, and the last write before that."""
    last: Buffer | None = None
    for event in back_from(facts, tensor, before):
        if event.seq <= after:
            break
        if last is not None and isinstance(event, GradWritten):
            return last, event
        last = last or event
    return last, None


def _steps_first(facts: Facts, step: OptimizerStepped, write: GradWritten, reset: GradReset) -> bool:
    """Whether reset and step both stand above the backward in one loop: it is the step that is early."""
    stepped, written, emptied = (facts.place(one.site) for one in (step, write, reset))
    source = facts.source(stepped.path)
    same = source.loop_at(stepped.line) is not None and source.loop_at(stepped.line) is source.loop_at(written.line)
    return same and emptied.line < stepped.line < written.line


def _edits(facts: Facts, write: GradWritten, reset: GradReset) -> list[Edit]:
    """Move the reset above the backward, where both are statements of their own in one block."""
    here, there = facts.place(reset.site), facts.place(write.site)
    source = facts.source(here.path)
    moved, before = source.statement(here.line), source.statement(there.line)
    if (
        not isinstance(moved, ast.Expr)
        or before is None
        or here.path != there.path
        or not isinstance(moved.value, ast.Call)
    ):
        return []
    if source.parents.get(moved) is not source.parents.get(before) or not dotted(moved.value.func):
        return []
    indent = source.line(before.lineno)[: before.col_offset]
    end = moved.end_lineno or moved.lineno
    return [
        Edit(here.path, before.lineno, 0, before.lineno, 0, f"{indent}{source.segment(moved)}\n"),
        Edit(here.path, moved.lineno, 0, end + 1, 0, ""),
    ]
