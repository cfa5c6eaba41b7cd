"""Print expressions as a person writes them, so that the text means exactly the expression.

`^` is the power, `*` is always written, and a space around `*` marks factors of the chain rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from whygrad.answers.derive.expression import (
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
    split,
)

SUM, PRODUCT, POWER, ATOM = range(4)
"""How tightly an expression binds; a looser one inside a tighter one needs parentheses."""


def text(expression: Expression) -> str:
    """The expression as text.

    >>> from whygrad.answers.derive.expression import Symbol, add, multiply, number, power
    >>> w = Symbol("w")
    >>> text(power(add(multiply(w, number(2)), number(-1)), number(2)))
    '(2*w - 1)^2'
    """
    match expression:
        case Number(value):
            return number_text(value)
        case Symbol(name):
            return name
        case Sum(terms):
            return _sum(terms)
        case Product(factors):
            coefficient, _ = split(expression)
            return _fraction(coefficient, [factor for factor in factors if not isinstance(factor, Number)])
        case Chain(factors):
            first, *others = factors
            return " * ".join([_factor(first, leading=True), *map(_factor, others)])
        case Power() if _divides(expression):
            return _fraction(Fraction(1), [expression])
        case Power(base, exponent):
            inside = text(exponent) if _is_plain(exponent) else f"({text(exponent)})"
            return f"{_within(base, ATOM)}^{inside}"
        case Apply(function, argument):
            return f"{function}({text(argument)})"
        case Total(how, _, argument):
            return f"{how}({text(argument)})"
        case Piece(said):
            return said


def number_text(value: Fraction) -> str:
    """A number as people write it: 2, 0.125, 1/3."""
    if value.denominator == 1:
        return str(value.numerator)
    decimals = _decimals(value.denominator)
    if decimals is not None and decimals <= 12:
        whole, digits = divmod(abs(value.numerator) * 10**decimals // value.denominator, 10**decimals)
        return f"{'-' if value < 0 else ''}{whole}.{digits:0{decimals}d}"
    if value.denominator <= 1000:
        return f"{value.numerator}/{value.denominator}"
    return repr(float(value))


def _sum(terms: tuple[Expression, ...]) -> str:
    written = ""
    for term in terms:
        said = text(term) if binding(term) > SUM else f"({text(term)})"
        if not written:
            written = said
        elif said.startswith("-"):
            written += f" - {said[1:]}"
        else:
            written += f" + {said}"
    return written


def _fraction(coefficient: Fraction, factors: Sequence[Expression]) -> str:
    """Factors over divisors: 2*x/(3*y). A factor that never ends as a decimal is split over both."""
    above = [factor for factor in factors if not _divides(factor)]
    below = [_divisor(factor) for factor in factors if _divides(factor)]
    share = coefficient.denominator
    if share > 1000 or (not below and _is_short_decimal(coefficient)):
        share = 1
    size = number_text(abs(coefficient) * share)
    numerator = [_within(factor, PRODUCT) for factor in above]
    if size != "1" or not numerator:
        numerator.insert(0, size)
    written = ("-" if coefficient < 0 else "") + "*".join(numerator)
    denominator = ([str(share)] if share != 1 else []) + [_within(factor, PRODUCT) for factor in below]
    if not denominator:
        return written
    if len(denominator) > 1:
        return f"{written}/({'*'.join(denominator)})"
    return f"{written}/{_within(below[0], POWER) if below else denominator[0]}"


def _divides(factor: Expression) -> bool:
    return isinstance(factor, Power) and isinstance(factor.exponent, Number) and factor.exponent.value < 0


def _divisor(factor: Expression) -> Expression:
    assert isinstance(factor, Power)
    assert isinstance(factor.exponent, Number)
    return factor.base if factor.exponent.value == -1 else Power(factor.base, Number(-factor.exponent.value))


def _factor(factor: Expression, leading: bool = False) -> str:
    """A factor of a chain: what would change its meaning, or begins with a sign, stands in parentheses."""
    said = text(factor)
    if binding(factor) == SUM or (said.startswith("-") and not leading):
        return f"({said})"
    return said


def _within(expression: Expression, needed: int) -> str:
    said = text(expression)
    return said if binding(expression) >= needed and not said.startswith("-") else f"({said})"


def binding(expression: Expression) -> int:
    match expression:
        case Sum():
            return SUM
        case Product() | Chain():
            return PRODUCT
        case Power(_, exponent):
            return PRODUCT if isinstance(exponent, Number) and exponent.value < 0 else POWER
        case Number(value):
            return ATOM if value >= 0 and "/" not in number_text(value) and "e" not in number_text(value) else PRODUCT
        case _:
            return ATOM


def _is_plain(exponent: Expression) -> bool:
    if isinstance(exponent, Number):
        return exponent.value >= 0 and "/" not in number_text(exponent.value)
    return isinstance(exponent, Symbol)


def _is_short_decimal(value: Fraction) -> bool:
    decimals = _decimals(value.denominator)
    return decimals is not None and decimals <= 12


def _decimals(denominator: int) -> int | None:
    """How many decimals 1/denominator has, None if they never end."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator //= 2
        twos += 1
    while denominator % 5 == 0:
        denominator //= 5
        fives += 1
    return max(twos, fives) if denominator == 1 else None
