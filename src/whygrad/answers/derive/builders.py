"""How each operation of a small graph is written as an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from whygrad.answers.derive.expression import (
    ONE,
    Expression,
    Number,
    Piece,
    add,
    apply,
    divide,
    multiply,
    negative,
    number,
    power,
    total,
)
from whygrad.answers.derive.numbers import shown
from whygrad.answers.derive.operations.table import Array
from whygrad.answers.derive.printing import text


class NotSymbolicError(Exception):
    """The graph is not small, or has an operation that has no place in an expression."""


class Term(msgspec.Struct, frozen=True):
    """An operand of a step: its expression, and the value that it has."""

    expression: Expression
    value: Array

    @property
    def single(self) -> bool:
        return self.value.size == 1


class Call(msgspec.Struct, frozen=True):
    """A step with its operands as terms: what a builder turns into an expression."""

    operands: list[Any]
    keywords: dict[str, Any]
    value: Array
    notes: list[str]

    def get(self, position: int, keyword: str, default: Any = None) -> Any:
        if position < len(self.operands):
            return self.operands[position]
        return self.keywords.get(keyword, default)

    def expression(self, position: int, keyword: str = "other") -> Expression:
        return _expression_of(self.get(position, keyword))

    def term(self, position: int = 0) -> Term:
        operand = self.get(position, "other")
        if not isinstance(operand, Term):
            raise NotSymbolicError
        return operand

    def only(self, *keywords: str) -> None:
        """Refuse a call with keyword arguments other than these."""
        if any(self.keywords.get(keyword) is not None for keyword in self.keywords.keys() - set(keywords)):
            raise NotSymbolicError

    def decided(self, said: str, chosen: Expression, since: str) -> Expression:
        """A function in pieces, of which the recorded value decides which one it is."""
        self.notes.append(f"{said} is {text(chosen)} here: {since}")
        return Piece(said, chosen)


def _expression_of(operand: Any) -> Expression:
    if isinstance(operand, Term):
        return operand.expression
    if isinstance(operand, bool | int | float):
        return number(operand)
    raise NotSymbolicError


def without_ones(value: Array) -> tuple[int, ...]:
    return tuple(size for size in value.shape if size != 1)


Builder = Callable[[Call], Expression]


def _one(function: str) -> Builder:
    return lambda call: apply(function, call.expression(0))


def _two(combine: Callable[[Expression, Expression], Expression]) -> Builder:
    def build(call: Call) -> Expression:
        call.only("other", "exponent")
        keyword = "exponent" if "exponent" in call.keywords else "other"
        return combine(call.expression(0), call.expression(1, keyword))

    return build


def _add(call: Call) -> Expression:
    call.only("other", "alpha")
    return add(call.expression(0), multiply(number(call.keywords.get("alpha") or 1), call.expression(1)))


def _subtract(call: Call) -> Expression:
    call.only("other", "alpha")
    return add(call.expression(0), multiply(number(-(call.keywords.get("alpha") or 1)), call.expression(1)))


def _same(call: Call) -> Expression:
    if call.term().value.size != call.value.size and not call.term().single:
        raise NotSymbolicError
    if call.value.size == 1 or without_ones(call.term().value) in ((), without_ones(call.value)):
        return call.expression(0)
    raise NotSymbolicError


def _softplus(call: Call) -> Expression:
    if len(call.operands) > 1 or call.keywords:
        raise NotSymbolicError
    return apply("softplus", call.expression(0))


def _dropout(call: Call) -> Expression:
    probability, training = call.get(1, "p", 0.5), call.get(2, "training", True)
    return number(0) if training and probability == 1 else _same(call)


def _total(how: str) -> Builder:
    def build(call: Call) -> Expression:
        term = call.term()
        if term.value.size == call.value.size:
            return term.expression
        if call.value.size != 1:
            raise NotSymbolicError
        return total(how, term.value.size, term.expression)

    return build


def _length(call: Call) -> Expression:
    """The Euclidean norm."""
    term = call.term()
    if len(call.operands) > 1 or call.keywords or call.value.size != 1:
        raise NotSymbolicError
    if term.single:
        return apply("abs", term.expression)
    return apply("sqrt", total("sum", term.value.size, power(term.expression, number(2))))


def _product(call: Call) -> Expression:
    """A matrix product of which one side is a single number, or of two vectors."""
    left, right = call.term(0), call.term(1)
    product = multiply(left.expression, right.expression)
    if left.single or right.single:
        return product
    if call.value.size == 1 and left.value.ndim == right.value.ndim == 1:
        return total("sum", left.value.size, product)
    raise NotSymbolicError


def _linear(call: Call) -> Expression:
    data, weight, bias = call.term(0), call.get(1, "weight"), call.get(2, "bias")
    if not (isinstance(weight, Term) and weight.single):
        raise NotSymbolicError
    product = multiply(weight.expression, data.expression)
    return product if bias is None else add(product, _expression_of(bias))


# --- decided by a value ---------------------------------------------------------------------------


def _relu(call: Call) -> Expression:
    if not call.term().single:
        return apply("relu", call.expression(0))
    return _by_sign(call, "relu", ONE, number(0))


def _leaky_relu(call: Call) -> Expression:
    if not call.term().single:
        raise NotSymbolicError
    return _by_sign(call, "leaky_relu", ONE, number(call.get(1, "negative_slope", 0.01)))


def _by_sign(call: Call, name: str, above: Number, below: Number) -> Expression:
    term = call.term()
    positive = term.value.item() > 0
    chosen = multiply(above if positive else below, term.expression)
    said = f"{name}({text(term.expression)})"
    return call.decided(said, chosen, f"its argument is {'positive' if positive else 'negative'}")


def _extreme(name: str, is_better: Callable[[Any, Any], Any]) -> Builder:
    def build(call: Call) -> Expression:
        if len(call.operands) + len(call.keywords) == 1:
            if not call.term().single:
                raise NotSymbolicError
            return call.expression(0)
        first, second = call.operands[0], call.get(1, "other")
        values = [item.value if isinstance(item, Term) else np.asarray(float(item)) for item in (first, second)]
        if any(value.size != 1 for value in values) or values[0].item() == values[1].item():
            raise NotSymbolicError
        left, right = _expression_of(first), _expression_of(second)
        chosen = left if is_better(values[0].item(), values[1].item()) else right
        pair = " and ".join(shown(value.item()) for value in values)
        return call.decided(f"{name}({text(left)}, {text(right)})", chosen, f"the two are {pair}")

    return build


def _clamp(call: Call) -> Expression:
    low, high = call.get(1, "min"), call.get(2, "max")
    term = call.term()
    if not term.single or isinstance(low, Term) or isinstance(high, Term):
        raise NotSymbolicError
    value = term.value.item()
    chosen = term.expression
    if low is not None and value < low:
        chosen = number(low)
    if high is not None and value > high:
        chosen = number(high)
    bounds = [f"{name}={shown(bound)}" for name, bound in (("min", low), ("max", high)) if bound is not None]
    said = f"clamp({', '.join([text(term.expression), *bounds])})"
    return call.decided(said, chosen, f"its argument is {shown(value)}")


def _where(call: Call) -> Expression:
    condition = call.get(0, "condition")
    if not isinstance(condition, Term) or not condition.single:
        raise NotSymbolicError
    first, second, holds = call.expression(1), call.expression(2), bool(condition.value.item())
    said = f"where(..., {text(first)}, {text(second)})"
    return call.decided(said, first if holds else second, f"its condition is {holds}")


# --- losses ---------------------------------------------------------------------------------------


def _loss(each: Callable[[Expression, Expression], Expression]) -> Builder:
    def build(call: Call) -> Expression:
        call.only("target", "reduction")
        term, target = call.term(), call.get(1, "target")
        reduction = call.get(2, "reduction", "mean")
        losses = each(term.expression, _expression_of(target))
        if reduction == "none" or call.value.size == max(term.value.size, target.value.size):
            return losses
        return total(reduction, max(term.value.size, target.value.size), losses)

    return build


def _squared(a: Expression, target: Expression) -> Expression:
    return power(add(a, negative(target)), number(2))


def _cross_entropy(p: Expression, target: Expression) -> Expression:
    other = add(ONE, negative(target))
    return negative(add(multiply(target, apply("log", p)), multiply(other, apply("log", add(ONE, negative(p))))))


TWO = number(2)

BUILDERS: dict[str, Builder] = {
    "add": _add,
    "sub": _subtract,
    "subtract": _subtract,
    "rsub": lambda call: add(call.expression(1), negative(call.expression(0))),
    **dict.fromkeys(("mul", "multiply"), _two(multiply)),
    **dict.fromkeys(("div", "divide", "true_divide"), _two(divide)),
    "pow": _two(power),
    **dict.fromkeys(("neg", "negative"), lambda call: negative(call.expression(0))),
    "square": lambda call: power(call.expression(0), TWO),
    "reciprocal": lambda call: divide(ONE, call.expression(0)),
    "rsqrt": lambda call: divide(ONE, apply("sqrt", call.expression(0))),
    "exp2": lambda call: power(TWO, call.expression(0)),
    "expm1": lambda call: add(apply("exp", call.expression(0)), number(-1)),
    "log1p": lambda call: apply("log", add(ONE, call.expression(0))),
    "log2": lambda call: divide(apply("log", call.expression(0)), apply("log", TWO)),
    "log10": lambda call: divide(apply("log", call.expression(0)), apply("log", number(10))),
    **{name: _one(name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "abs")},
    **dict.fromkeys(("asin", "arcsin"), _one("asin")),
    **dict.fromkeys(("acos", "arccos"), _one("acos")),
    **dict.fromkeys(("atan", "arctan"), _one("atan")),
    "absolute": _one("abs"),
    **dict.fromkeys(("sigmoid", "expit"), _one("sigmoid")),
    "logsigmoid": lambda call: negative(apply("softplus", negative(call.expression(0)))),
    "softplus": _softplus,
    "silu": lambda call: multiply(call.expression(0), apply("sigmoid", call.expression(0))),
    "dropout": _dropout,
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    **dict.fromkeys(("maximum", "max", "fmax"), _extreme("max", lambda a, b: a > b)),
    **dict.fromkeys(("minimum", "min", "fmin"), _extreme("min", lambda a, b: a < b)),
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "where": _where,
    "sum": _total("sum"),
    "mean": _total("mean"),
    "norm": _length,
    "linalg.norm": _length,
    "linalg.vector_norm": _length,
    **dict.fromkeys(("matmul", "mm", "mv", "dot", "inner"), _product),
    "linear": _linear,
    "mse_loss": _loss(_squared),
    "l1_loss": _loss(lambda a, target: apply("abs", add(a, negative(target)))),
    "binary_cross_entropy": _loss(_cross_entropy),
    "binary_cross_entropy_with_logits": _loss(
        lambda a, target: add(apply("softplus", a), negative(multiply(target, a)))
    ),
    **dict.fromkeys(
        (
            "reshape", "expand", "contiguous", "clone", "to", "float", "double", "identity", "pos", "t", "T",
        ),
        _same,
    ),
}  # fmt: skip
"""How the operations of a small graph are written; an operation that is not here has no expression."""
