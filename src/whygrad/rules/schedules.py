"""Learning rate schedulers as the program's text makes and steps them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.rules.facts import Facts
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, calls, dotted, number_of, ran

KINDS = frozenset(
    {"StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "OneCycleLR", "LambdaLR", "MultiplicativeLR",
     "LinearLR", "ConstantLR", "PolynomialLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ReduceLROnPlateau",
     "SequentialLR", "ChainedScheduler"}
)  # fmt: skip


class Scheduler(msgspec.Struct, frozen=True):
    """A scheduler: the call that makes it, the name that it gets, the calls of its `step()`."""

    source: Source
    name: str
    made: ast.Call
    steps: tuple[ast.Call, ...]

    @property
    def kind(self) -> str:
        return callee(self.made)


def schedulers(facts: Facts) -> Iterator[Scheduler]:
    """Every scheduler that the program made and gave a name."""
    for path in facts.ledger.sources():
        source = facts.source(path)
        for _, target, value in assignments(source.tree):
            name = dotted(target)
            if isinstance(value, ast.Call) and callee(value) in KINDS and name and ran(facts, source, value):
                steps = tuple(call for call in calls(source.tree, "step") if dotted(call.func) == f"{name}.step")
                yield Scheduler(source, name, value, steps)


def literal(source: Source, node: ast.expr | None) -> float | None:
    """The number that an expression is: a literal, a name that is only ever given one literal, a product of such."""
    if node is None:
        return None
    number = number_of(node)
    if number is not None:
        return number
    if isinstance(node, ast.Name):
        given = {number_of(value) for _, target, value in assignments(source.tree) if dotted(target) == node.id}
        return given.pop() if len(given) == 1 else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Div)):
        left, right = literal(source, node.left), literal(source, node.right)
        if left is None or right is None:
            return None
        return left * right if isinstance(node.op, ast.Mult) else left / right if right else None
    return None


def rounds(source: Source, loop: ast.AST | None) -> float | None:
    """How often a loop over `range(n)` runs, where n is a number."""
    if not isinstance(loop, ast.For) or callee(loop.iter) not in ("range", "trange"):
        return None
    call = loop.iter
    assert isinstance(call, ast.Call)
    ends = [literal(source, argument) for argument in call.args[:2]]
    if None in ends or not ends:
        return None
    numbers = [end for end in ends if end is not None]
    return numbers[0] if len(numbers) == 1 else numbers[1] - numbers[0]
