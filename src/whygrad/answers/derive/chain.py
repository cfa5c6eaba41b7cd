"""The chain rule, in the steps in which a teacher writes it.

`differentiate` leaves the factors of the chain side by side (`2*(2*w - 1) * 2`); `simplify` multiplies them
out (`4*(2*w - 1)`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from whygrad.answers.derive.expression import (
    MINUS_ONE,
    ONE,
    ZERO,
    Apply,
    Chain,
    Expression,
    Number,
    Piece,
    Power,
    Product,
    Sum,
    Symbol,
    Total,
    add,
    apply,
    chain,
    divide,
    has_vector,
    multiply,
    negative,
    number,
    power,
    split,
    total,
)

HALF = Number(Fraction(1, 2))
TWO = number(2)


def differentiate(expression: Expression, by: Symbol) -> Expression:
    """The derivative, with the factors of each chain side by side.

    By a vector: element by element, for an expression in which no element depends on another one, or for a
    sum or mean of such (then the i-th element of the result is the derivative by the i-th element).
    """
    match expression:
        case Number():
            return ZERO
        case Symbol():
            return ONE if expression == by else ZERO
        case Sum(terms):
            return _sum([differentiate(term, by) for term in terms])
        case Product(factors) | Chain(factors):
            return _product(factors, by)
        case Power(base, exponent):
            return _power(base, exponent, by)
        case Apply(function, argument):
            return chain(DERIVATIVES[function](argument), differentiate(argument, by))
        case Total(how, count, argument):
            inner = differentiate(argument, by)
            if by.vector:
                return _scaled(Fraction(1, count), inner) if how == "mean" else inner
            return total(how, count, inner) if has_vector(inner) else _scaled(count if how == "sum" else 1, inner)
        case Piece(_, chosen):
            return differentiate(chosen, by)


def _sum(terms: list[Expression]) -> Expression:
    kept = [term for term in terms if term != ZERO]
    if any(isinstance(term, Chain) for term in kept) and len(kept) > 1:
        return Sum(tuple(kept))
    return add(*kept)


def _product(factors: tuple[Expression, ...], by: Symbol) -> Expression:
    """(f g)' = f' g + f g'"""
    terms: list[Expression] = []
    for position, factor in enumerate(factors):
        inner = differentiate(factor, by)
        if inner != ZERO:
            terms.append(_scaled_by(factors[:position] + factors[position + 1 :], inner))
    return _sum(terms)


def _power(base: Expression, exponent: Expression, by: Symbol) -> Expression:
    """(u^v)' = v u^(v-1) u' + u^v log(u) v'"""
    by_base = differentiate(base, by)
    by_exponent = differentiate(exponent, by)
    terms: list[Expression] = []
    if by_base != ZERO:
        terms.append(chain(multiply(exponent, power(base, add(exponent, MINUS_ONE))), by_base))
    if by_exponent != ZERO:
        terms.append(chain(multiply(power(base, exponent), apply("log", base)), by_exponent))
    return _sum(terms)


def _scaled(factor: int | Fraction, inner: Expression) -> Expression:
    return _scaled_by((number(Fraction(factor)),), inner)


def _scaled_by(factors: tuple[Expression, ...], inner: Expression) -> Expression:
    """Factors that stay as they are go to the outer derivative; a sum of chains keeps its own place."""
    if isinstance(inner, Chain):
        return chain(multiply(*factors, inner.factors[0]), *inner.factors[1:])
    if isinstance(inner, Sum) and split(multiply(*factors))[1] != ONE:
        return chain(multiply(*factors), inner)
    return multiply(*factors, inner)


DERIVATIVES: dict[str, Callable[[Expression], Expression]] = {
    "exp": lambda u: apply("exp", u),
    "log": lambda u: divide(ONE, u),
    "sqrt": lambda u: divide(HALF, apply("sqrt", u)),
    "sin": lambda u: apply("cos", u),
    "cos": lambda u: negative(apply("sin", u)),
    "tan": lambda u: add(ONE, power(apply("tan", u), TWO)),
    "asin": lambda u: divide(ONE, apply("sqrt", add(ONE, negative(power(u, TWO))))),
    "acos": lambda u: divide(MINUS_ONE, apply("sqrt", add(ONE, negative(power(u, TWO))))),
    "atan": lambda u: divide(ONE, add(ONE, power(u, TWO))),
    "sinh": lambda u: apply("cosh", u),
    "cosh": lambda u: apply("sinh", u),
    "tanh": lambda u: add(ONE, negative(power(apply("tanh", u), TWO))),
    "abs": lambda u: apply("sign", u),
    "sign": lambda _: ZERO,
    "sigmoid": lambda u: multiply(apply("sigmoid", u), add(ONE, negative(apply("sigmoid", u)))),
    "softplus": lambda u: apply("sigmoid", u),
    "relu": lambda u: apply("step", u),
    "step": lambda _: ZERO,
}
"""What each function of `expression.FUNCTIONS` has as its derivative."""
