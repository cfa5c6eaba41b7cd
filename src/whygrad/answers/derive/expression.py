"""Expressions of a small derivation, and their light simplification. Printing and derivatives are elsewhere.

An expression is a tree of frozen values. Build it with `add`, `multiply`, `power`, `apply` and `total`: they keep
the form that a person would write (numeric factors collected and first, `1*x` and `0 + x` gone, like terms
and equal bases together) and go no further.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
import numpy as np

SIZE_LIMIT = 60
"""An expression of more nodes than this explains nothing to a reader."""


class TooLargeError(Exception):
    """The expression would have more than `SIZE_LIMIT` nodes."""


class Number(msgspec.Struct, frozen=True):
    """An exact number: constants of a program are the decimals that it wrote."""

    value: Fraction


class Symbol(msgspec.Struct, frozen=True):
    """A tensor by its name; `vector` when it has several elements."""

    name: str
    vector: bool = False


class Sum(msgspec.Struct, frozen=True):
    """t1 + t2 + ..."""

    terms: tuple[Expression, ...]


class Product(msgspec.Struct, frozen=True):
    """f1 * f2 * ...; a numeric factor stands first, a divisor is a factor with a negative exponent."""

    factors: tuple[Expression, ...]


class Power(msgspec.Struct, frozen=True):
    """base ^ exponent"""

    base: Expression
    exponent: Expression


class Apply(msgspec.Struct, frozen=True):
    """A function of one argument, element by element."""

    function: str
    argument: Expression


class Total(msgspec.Struct, frozen=True):
    """The `sum` or the `mean` over all `count` elements of its argument."""

    how: str
    count: int
    argument: Expression


class Chain(msgspec.Struct, frozen=True):
    """Factors that the chain rule put side by side, not multiplied out yet: outer derivative first."""

    factors: tuple[Expression, ...]


class Piece(msgspec.Struct, frozen=True):
    """What a function that is pieced together (`relu`, `max`, `where`) is at this point: it is written `said`."""

    said: str
    chosen: Expression


Expression: TypeAlias = Number | Symbol | Sum | Product | Power | Apply | Total | Chain | Piece

ZERO = Number(Fraction(0))
ONE = Number(Fraction(1))
MINUS_ONE = Number(Fraction(-1))


def number(value: float | Fraction) -> Number:
    """An exact number from what the program wrote: 0.1 is one tenth.

    Raises ValueError for what is not finite.
    """
    if isinstance(value, Fraction):
        return Number(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number to calculate with")
        return Number(Fraction(repr(value)))
    return Number(Fraction(int(value)))


def add(*terms: Expression) -> Expression:
    """The sum, like terms collected: w + w is 2*w."""
    collected: dict[frozenset[Any], tuple[Expression, Fraction]] = {}
    for term in _flat(terms, Sum):
        coefficient, rest = split(term)
        key = _likeness(rest)
        first, so_far = collected.get(key, (rest, Fraction(0)))
        collected[key] = first, so_far + coefficient
    kept = [multiply(Number(exact(factor)), rest) for rest, factor in collected.values() if factor]
    if not kept:
        return ZERO
    return _sized(Sum(tuple(kept))) if len(kept) > 1 else kept[0]


def multiply(*factors: Expression) -> Expression:
    """The product, numbers first and powers of one base together: 2 * (w * 3) * w is 6*w^2."""
    coefficient = Fraction(1)
    exponents: dict[Expression, Expression] = {}
    for factor in _flat(factors, Product):
        if isinstance(factor, Number):
            coefficient *= factor.value
            continue
        base, exponent = (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, ONE)
        exponents[base] = add(exponents[base], exponent) if base in exponents else exponent
    if not coefficient:
        return ZERO
    kept: list[Expression] = []
    for base, exponent in exponents.items():
        combined = power(base, exponent)
        if isinstance(combined, Number):
            coefficient *= combined.value
        else:
            kept.append(combined)
    coefficient = exact(coefficient)
    if coefficient != 1 or not kept:
        kept.insert(0, Number(coefficient))
    return _sized(Product(tuple(kept))) if len(kept) > 1 else kept[0]


def power(base: Expression, exponent: Expression) -> Expression:
    if isinstance(exponent, Number):
        if exponent == ZERO:
            return ONE
        if exponent == ONE:
            return base
        whole = exponent.value.denominator == 1
        if whole and isinstance(base, Number) and base != ZERO and abs(exponent.value) <= 8:
            return Number(exact(base.value**exponent.value.numerator))
        if whole and isinstance(base, Power) and _is_whole(base.exponent):
            return power(base.base, multiply(base.exponent, exponent))
    return _sized(Power(base, exponent))


def apply(function: str, argument: Expression) -> Expression:
    return _sized(Apply(function, argument))


def total(how: str, count: int, argument: Expression) -> Expression:
    """The sum or mean over `count` elements; of what is the same in each, it needs no sign for it."""
    if has_vector(argument):
        return _sized(Total(how, count, argument))
    return multiply(number(count), argument) if how == "sum" else argument


def negative(argument: Expression) -> Expression:
    return multiply(MINUS_ONE, argument)


def divide(numerator: Expression, denominator: Expression) -> Expression:
    return multiply(numerator, power(denominator, MINUS_ONE))


def chain(*factors: Expression) -> Expression:
    """Factors side by side. A factor 1 is left out, a factor 0 makes it 0."""
    flat = [factor for factor in _flat(factors, Chain) if factor != ONE]
    if ZERO in flat:
        return ZERO
    if not flat:
        return ONE
    return _sized(Chain(tuple(flat))) if len(flat) > 1 else flat[0]


def simplify(expression: Expression) -> Expression:
    """The same value with all factors multiplied out and like terms collected."""
    match expression:
        case Sum(terms):
            return add(*map(simplify, terms))
        case Product(factors):
            return multiply(*map(simplify, factors))
        case Chain(factors):
            return multiply(*sorted(_flat(tuple(map(simplify, factors)), Product), key=_is_involved))
        case Power(base, exponent):
            return power(simplify(base), simplify(exponent))
        case Apply(function, argument):
            return apply(function, simplify(argument))
        case Total(how, count, argument):
            coefficient, rest = split(simplify(argument))
            return multiply(Number(coefficient), total(how, count, rest))
        case _:
            return expression


def split(term: Expression) -> tuple[Fraction, Expression]:
    """A term's numeric factor and the rest: 3*w gives 3 and w."""
    if isinstance(term, Number):
        return term.value, ONE
    if isinstance(term, Product) and isinstance(term.factors[0], Number):
        rest = term.factors[1:]
        return term.factors[0].value, rest[0] if len(rest) == 1 else Product(rest)
    return Fraction(1), term


def has_vector(expression: Expression) -> bool:
    """Whether its value has several elements."""
    match expression:
        case Symbol(_, vector):
            return vector
        case Total():
            return False
        case _:
            return any(map(has_vector, children(expression)))


def mentions(expression: Expression, symbol: Symbol) -> bool:
    return expression == symbol or any(mentions(child, symbol) for child in children(expression))


def children(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Sum(parts) | Product(parts) | Chain(parts):
            return parts
        case Power(base, exponent):
            return base, exponent
        case Apply(_, argument) | Total(_, _, argument) | Piece(_, argument):
            return (argument,)
        case _:
            return ()


def exact(value: Fraction) -> Fraction:
    """`value`, or the nearest float once it needs more digits than a float has: 0.1^9 stays short to print."""
    if value.denominator <= 10**15 and abs(value.numerator) <= 10**18:
        return value
    return Fraction(repr(float(value)))


# --- values ---------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "abs": np.abs,
    "sign": np.sign,
    "sigmoid": lambda u: 0.5 * (1 + np.tanh(0.5 * u)),
    "softplus": lambda u: np.logaddexp(0.0, u),
    "relu": lambda u: np.maximum(u, 0.0),
    "step": lambda u: (u > 0) * 1.0,
}
"""Functions that an expression may apply. `step` is the derivative of `relu`: 1 where its argument is positive."""


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """The value in float64, given the values of the symbols. Not finite where the expression has none."""
    with np.errstate(all="ignore"):
        return _evaluate(expression, values)


def _evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    match expression:
        case Number(value):
            return np.float64(value)
        case Symbol(name):
            return np.asarray(values[name], dtype=np.float64)
        case Sum(terms):
            return sum(_evaluate(term, values) for term in terms)
        case Product(factors) | Chain(factors):
            return math.prod(_evaluate(factor, values) for factor in factors)
        case Power(base, exponent):
            return np.power(_evaluate(base, values), _evaluate(exponent, values))
        case Apply(function, argument):
            return FUNCTIONS[function](_evaluate(argument, values))
        case Total(how, count, argument):
            summed = np.sum(_evaluate(argument, values))
            return summed if how == "sum" else summed / count
        case Piece(_, chosen):
            return _evaluate(chosen, values)


# --- inside ---------------------------------------------------------------------------------------


def _flat(parts: tuple[Expression, ...], kind: type[Sum | Product | Chain]) -> list[Expression]:
    flat: list[Expression] = []
    for part in parts:
        if isinstance(part, kind):
            flat.extend(children(part))
        else:
            flat.append(part)
    return flat


def _is_involved(factor: Expression) -> bool:
    """Whether it is more than a name or a power of one: those are written first."""
    return not isinstance(factor.base if isinstance(factor, Power) else factor, Symbol)


def _likeness(expression: Expression) -> frozenset[Any]:
    """What two terms have in common when they differ in their numeric factor or the order of factors only."""
    factors = expression.factors if isinstance(expression, Product) else (expression,)
    return frozenset(factors)


def _is_whole(expression: Expression) -> bool:
    return isinstance(expression, Number) and expression.value.denominator == 1


def _sized(expression: Expression) -> Expression:
    if size(expression) > SIZE_LIMIT:
        raise TooLargeError
    return expression


@lru_cache(maxsize=1024)
def size(expression: Expression) -> int:
    """How many nodes the tree has."""
    return 1 + sum(map(size, children(expression)))
