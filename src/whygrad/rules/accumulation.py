"""Gradient accumulation as a program does it: a step behind `if (i + 1) % k == 0`, and the passes that it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import GradWritten, OptimizerId, OptimizerStepped, StepsFolded
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.source import Loop, Source
from whygrad.rules.syntax import loops_of


class Guarded(msgspec.Struct, frozen=True):
    """An optimizer that steps behind a test with a remainder (`%`): the test, its loop, the passes that a step uses."""

    optimizer: OptimizerId
    source: Source
    test: ast.If
    loop: Loop
    steps: tuple[OptimizerStepped, ...]
    windows: tuple[tuple[Pass, ...], ...]

    @property
    def per_step(self) -> int | None:
        """How many passes each recorded step used, if all of them used as many, and more than one."""
        counts = {len(window) for window in self.windows}
        return counts.pop() if len(counts) == 1 and counts != {1} and counts != {0} else None


def guarded_steps(facts: Facts) -> Iterator[Guarded]:
    """Every optimizer that accumulates so."""
    for optimizer in facts.optimizers:
        steps = tuple(facts.steps_of(optimizer))
        place = facts.place(steps[0].site) if steps else None
        if place is None or not place.path:
            continue
        source = facts.source(place.path)
        test = _guard(source, place.line)
        loops = loops_of(source, test) if test is not None else []
        if test is not None and loops:
            yield Guarded(optimizer, source, test, loops[0], steps, tuple(_windows(facts, optimizer, steps)))


def total_passes(facts: Facts, optimizer: OptimizerId) -> tuple[int, int] | None:
    """How many passes wrote to what an optimizer holds, and how many steps it made, in the entire run.

    None where another optimizer makes the folded counts ambiguous.
    """
    if len([one for one in facts.optimizers if any(True for _ in facts.steps_of(one))]) > 1:
        return None
    held = [tensor for group in facts.optimizers[optimizer][-1].groups for tensor in group.parameters]
    written = {write.tensor for write in facts.of(GradWritten)}
    tensor = next((one for one in held if one in written), None)
    if tensor is None:
        return None
    passes = sum(write.tensor == tensor for write in facts.of(GradWritten))
    steps = sum(1 for _ in facts.steps_of(optimizer))
    for fold in facts.of(StepsFolded):
        steps += fold.optimizer_steps
        passes += sum(buffer.writes for buffer in fold.buffers if buffer.tensor == tensor)
    return passes, steps


def _guard(source: Source, line: int) -> ast.If | None:
    statement = source.statement(line)
    for outer in source.around(statement) if statement is not None else ():
        if isinstance(outer, ast.If) and any(isinstance(node, ast.Mod) for node in ast.walk(outer.test)):
            return outer if line <= (outer.body[-1].end_lineno or 0) else None
        if isinstance(outer, (ast.For, ast.While, ast.FunctionDef)):
            return None
    return None


def _windows(facts: Facts, optimizer: OptimizerId, steps: tuple[OptimizerStepped, ...]) -> Iterator[tuple[Pass, ...]]:
    held = {tensor for group in facts.optimizers[optimizer][-1].groups for tensor in group.parameters}
    folds = [fold.seq for fold in facts.of(StepsFolded)]
    previous = 0
    for step in steps:
        if not any(previous < seq < step.seq for seq in folds):
            yield tuple(
                each
                for each in facts.passes
                if previous < each.began.seq < step.seq and any(write.tensor in held for write in each.written)
            )
        previous = step.seq
