"""A small scalar graph as one expression, its derivative in steps, and the derivative's value.

Small: every tensor on the way has one element, or all of them are elementwise over one short vector (its
sums and means included). Everything else is left to central differences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from whygrad.answers.derive.builders import BUILDERS, Call, NotSymbolicError, Term, without_ones
from whygrad.answers.derive.chain import differentiate
from whygrad.answers.derive.expression import (
    Expression,
    Symbol,
    TooLargeError,
    add,
    evaluate,
    mentions,
    multiply,
    number,
    simplify,
    total,
)
from whygrad.answers.derive.graph import Ref, Result, Slot, Step
from whygrad.answers.derive.numbers import listed, shortest
from whygrad.answers.derive.operations.table import Array
from whygrad.answers.derive.printing import text
from whygrad.answers.derive.replay import Replay
from whygrad.ledger.events import TensorId

VECTOR_LIMIT = 8
"""A vector of more elements is not shown element by element."""

STEP_LIMIT = 40
TEXT_LIMIT = 100

NAME = re.compile(r"[A-Za-z_][\w.\[\]\"']*")
"""Names of tensors that can stand in an expression."""

CUT = re.compile(r"[A-Za-z_][\w.]*\.(detach\(\)|data)")
"""Cuts whose own text says what they are, such as `w.detach()`."""


class Formula(msgspec.Struct, frozen=True):
    """The derivative of an expression: as the chain rule gives it, simplified, and its value.

    `values` are the symbols' values, the target's first. `notes` say where a branch was decided by a value.
    """

    target: str
    function: Expression
    raw: Expression
    simple: Expression
    value: Array
    values: dict[str, Array]
    notes: tuple[str, ...]

    def steps(self) -> tuple[str, ...]:
        """`2*(2*w - 1) * 2`, then `4*(2*w - 1)`; one step where they are the same."""
        return tuple(dict.fromkeys((text(self.raw), text(self.simple))))


def formula(replay: Replay, name: Callable[[TensorId], str]) -> Formula:
    """The derivative of what the backward differentiated.

    Raises NotSymbolicError where the graph is not small enough to be written down.
    """
    try:
        return _Builder(replay, name).formula()
    except (TooLargeError, ValueError, OverflowError, ZeroDivisionError):
        raise NotSymbolicError from None


class _Builder(msgspec.Struct):
    replay: Replay
    name: Callable[[TensorId], str]
    live: frozenset[Slot] = frozenset()
    expressions: dict[Slot, Expression] = {}
    values: dict[str, Array] = {}
    notes: list[str] = []

    def formula(self) -> Formula:
        replay = self.replay
        if len(replay.moving) > STEP_LIMIT or len(replay.graph.targets) != 1 or replay.target.size > VECTOR_LIMIT:
            raise NotSymbolicError
        self.live = replay.graph.live()
        slot = replay.graph.targets[0]
        name = self.name(replay.graph.tensors[slot])
        target = self.symbol(slot, name if NAME.fullmatch(name) else "x")
        for step in replay.graph.steps:
            self.step(step, target)
        function = add(*(self.root(root.slot, root.weight) for root in replay.graph.roots))
        raw = differentiate(function, target)
        simple = simplify(raw)
        if max(len(text(function)), len(text(raw)), len(text(simple))) > TEXT_LIMIT:
            raise NotSymbolicError
        slopes = self.checked(function, raw, simple)
        kept = {target.name: self.values[target.name]}
        for name, value in self.values.items():
            if mentions(simple, Symbol(name, value.size > 1)) and not name.startswith("["):
                kept[name] = value
        return Formula(target.name, function, raw, simple, slopes, kept, tuple(dict.fromkeys(self.notes)))

    def checked(self, function: Expression, raw: Expression, simple: Expression) -> Array:
        """The derivative's value; the expression must have the value that the replay has, and be smooth there."""
        replay = self.replay
        shape = replay.target.shape
        forward = float(np.asarray(evaluate(function, self.values)).item())
        if not np.isclose(forward, replay.weighed(replay.values), rtol=1e-6, atol=1e-9 * max(replay.size, 1e-30)):
            raise NotSymbolicError
        slopes = np.broadcast_to(evaluate(raw, self.values), shape)
        value = np.broadcast_to(evaluate(simple, self.values), shape)
        if not (np.all(np.isfinite(value)) and np.allclose(slopes, value, rtol=1e-9, atol=1e-12)):
            raise NotSymbolicError
        if replay.kink() is not None:
            raise NotSymbolicError
        return value

    def root(self, slot: Slot, weight: Array | None) -> Expression:
        value = self.replay.values[slot]
        expression = self.expression(slot)
        if value.size == 1:
            return expression if weight is None else multiply(number(shortest(float(weight.item()))), expression)
        if weight is None or np.all(weight == 1):
            return total("sum", value.size, expression)
        return total("sum", value.size, multiply(self.named("gradient", weight), expression))

    # --- symbols and constants ------------------------------------------------------------------------

    def symbol(self, slot: Slot, name: str) -> Symbol:
        """The value in a slot under a name."""
        symbol = self.named(name, self.replay.values[slot])
        self.expressions[slot] = symbol
        return symbol

    def named(self, name: str, value: Array) -> Symbol:
        """A symbol for a value; two values of one name are told apart."""
        plain, count = name, 1
        while name in self.values and not np.array_equal(self.values[name], value):
            count += 1
            name = f"{plain}_{count}"
        self.values[name] = value
        return Symbol(name, value.size > 1)

    def expression(self, slot: Slot) -> Expression:
        known = self.expressions.get(slot)
        if known is not None:
            return known
        if slot in self.live:
            raise NotSymbolicError
        return self.constant(slot)

    def constant(self, slot: Slot) -> Expression:
        """A value that does not depend on the target: by name if it has one, else as a number."""
        value = self.replay.values[slot]
        if not 0 < value.size <= VECTOR_LIMIT:
            raise NotSymbolicError
        name = self.name(self.replay.graph.tensors[slot])
        label = self.replay.graph.labels.get(slot, "")
        if NAME.fullmatch(name):
            return self.symbol(slot, name)
        if CUT.fullmatch(label):
            return self.symbol(slot, label)
        if np.all(value == value.ravel()[0]):
            return number(shortest(float(value.ravel()[0])))
        return self.symbol(slot, listed(value))

    # --- steps ----------------------------------------------------------------------------------------

    def step(self, step: Step, target: Symbol) -> None:
        """Give the step's result an expression. One that does not depend on the target may go without."""
        results = [result for result in step.results if result is not None and result.flows]
        if not results or any(result.slot in self.expressions for result in results):
            return
        try:
            self.build(step, results, target)
        except (NotSymbolicError, TooLargeError, ValueError):
            if any(result.slot in self.live for result in results):
                raise NotSymbolicError from None

    def build(self, step: Step, results: list[Result], target: Symbol) -> None:
        if step.function is None:
            self.gradient(step, results)
            return
        build = BUILDERS.get(step.name) or BUILDERS.get(step.name.removesuffix("_"))
        if build is None or len(results) != 1 or results[0] is not step.results[0]:
            raise NotSymbolicError
        value = self.replay.values[results[0].slot]
        if value.size > VECTOR_LIMIT:
            raise NotSymbolicError
        operands = [self.operand(argument) for argument in step.arguments]
        keywords = {
            name: self.operand(argument) if isinstance(argument, Ref) else argument
            for name, argument in step.keywords.items()
        }
        terms = [item for item in [*operands, *keywords.values()] if isinstance(item, Term)]
        self.check_shapes(terms, value, target)
        self.expressions[results[0].slot] = build(Call(operands, keywords, value, self.notes))

    def gradient(self, step: Step, results: list[Result]) -> None:
        """`autograd.grad` of one number by leaves: the derivative as an expression again."""
        outputs, inputs = (_each(argument) for argument in step.arguments[:2])
        if len(step.arguments) != 2 or set(step.keywords) - {"create_graph", "retain_graph"} or len(outputs) != 1:
            raise NotSymbolicError
        function = self.expression(outputs[0].slot)
        if self.replay.values[outputs[0].slot].size != 1 or len(inputs) != len(step.results):
            raise NotSymbolicError
        for slot, result in zip(inputs, step.results, strict=True):
            by = self.expression(slot.slot)
            if result in results and result is not None:
                if not isinstance(by, Symbol) or by.vector:
                    raise NotSymbolicError
                self.expressions[result.slot] = simplify(differentiate(function, by))

    def operand(self, argument: Any) -> Any:
        """A tensor as a term; constants as they are."""
        if isinstance(argument, Ref):
            return Term(self.expression(argument.slot), self.replay.values[argument.slot])
        return argument

    def check_shapes(self, terms: Sequence[Term], value: Array, target: Symbol) -> None:
        """Vectors must lie side by side, and no element may depend on the other elements of the target."""
        shapes = {without_ones(term.value) for term in terms if not term.single}
        if value.size > 1:
            shapes.add(without_ones(value))
        if len(shapes) > 1:
            raise NotSymbolicError
        singles = [term.expression for term in terms if term.single]
        if target.vector and value.size > 1 and any(mentions(single, target) for single in singles):
            raise NotSymbolicError


def _each(argument: Any) -> list[Ref]:
    found = list(argument) if isinstance(argument, list | tuple) else [argument]
    if not all(isinstance(item, Ref) for item in found):
        raise NotSymbolicError
    return found
