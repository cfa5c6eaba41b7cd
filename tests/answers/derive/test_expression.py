"""Expressions, their printing and their derivatives, with SymPy as the judge."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from whygrad.answers.derive.chain import differentiate
from whygrad.answers.derive.expression import (
    Expression,
    Number,
    Symbol,
    TooLargeError,
    Total,
    add,
    apply,
    divide,
    evaluate,
    multiply,
    negative,
    number,
    power,
    simplify,
    total,
)
from whygrad.answers.derive.printing import number_text, text

w = Symbol("w")
a = Symbol("a")
x = Symbol("x", vector=True)
y = Symbol("y", vector=True)

NAMES = {name: sympy.Symbol(name, real=True) for name in ("w", "a")}
FUNCTIONS = {
    **{name: getattr(sympy, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "atan")},
    **{name: getattr(sympy, name) for name in ("sinh", "cosh", "tanh")},
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "sigmoid": lambda u: 1 / (1 + sympy.exp(-u)),
    "softplus": lambda u: sympy.log(1 + sympy.exp(u)),
    "relu": lambda u: sympy.Max(u, 0),
    "step": lambda u: sympy.Heaviside(u, 0),
}  # fmt: skip


def read(expression: Expression) -> sympy.Expr:
    """The printed text, read by SymPy."""
    return sympy.sympify(text(expression).replace("^", "**"), locals={**NAMES, **FUNCTIONS})


numbers = st.sampled_from([2, 3, -1, -2, 5, 0.5, 0.1, 1.5, -0.25, Fraction(1, 3)]).map(number)
leaves = st.one_of(st.just(w), st.just(w), st.just(a), numbers)


def combined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(add, inner, inner),
        st.builds(lambda u, v: add(u, negative(v)), inner, inner),
        st.builds(multiply, inner, inner),
        st.builds(divide, inner, inner),
        st.builds(lambda u, n: power(u, number(n)), inner, st.sampled_from([2, 3, -1, 0.5])),
        st.builds(power, st.just(number(2)), inner),
        st.builds(apply, st.sampled_from(sorted(FUNCTIONS.keys() - {"sign", "step", "relu"})), inner),
    )


expressions = st.recursive(leaves, combined, max_leaves=6)
points = st.fixed_dictionaries({"w": st.sampled_from([0.7, 1.3, 2.0, -0.6]), "a": st.sampled_from([0.9, 1.7, -1.1])})


def value_of(read_back: sympy.Expr, point: dict[str, float]) -> complex:
    return complex(read_back.subs({NAMES[name]: value for name, value in point.items()}).evalf(30))


@settings(max_examples=80)
@given(expressions, points)
def test_the_derivative_is_sympys(expression: Expression, point: dict[str, float]) -> None:
    try:
        raw = differentiate(expression, w)
        simple = simplify(raw)
    except (TooLargeError, ZeroDivisionError):
        assume(False)
    here = float(evaluate(expression, point))
    mine, simplified = float(evaluate(raw, point)), float(evaluate(simple, point))
    assume(all(math.isfinite(value) and abs(value) < 1e8 for value in (here, mine, simplified)))
    theirs = value_of(sympy.diff(read(expression), NAMES["w"]), point)
    assume(abs(theirs.imag) < 1e-9)
    for value in (mine, simplified):
        assert value == pytest.approx(theirs.real, rel=1e-6, abs=1e-7)


@settings(max_examples=80)
@given(expressions, points)
def test_the_text_means_the_expression(expression: Expression, point: dict[str, float]) -> None:
    try:
        printed = (expression, differentiate(expression, w))
    except (TooLargeError, ZeroDivisionError):
        assume(False)
    for each in printed:
        mine = float(evaluate(each, point))
        assume(math.isfinite(mine) and abs(mine) < 1e8)
        assert value_of(read(each), point).real == pytest.approx(mine, rel=1e-6, abs=1e-7)


def derivative(expression: Expression, by: Symbol = w) -> tuple[str, str]:
    raw = differentiate(expression, by)
    return text(raw), text(simplify(raw))


def test_the_chain_rule_keeps_its_factors_side_by_side() -> None:
    loss = power(add(multiply(w, number(2.0)), number(-1.0)), number(2))
    assert text(loss) == "(2*w - 1)^2"
    assert derivative(loss) == ("2*(2*w - 1) * 2", "4*(2*w - 1)")


def test_a_sum_of_uses_is_a_sum_of_derivatives() -> None:
    loss = add(power(w, number(3)), multiply(w, number(2)))
    assert derivative(loss) == ("3*w^2 + 2", "3*w^2 + 2")


def test_like_terms_are_collected() -> None:
    assert text(add(multiply(w, w), multiply(number(2), w), w)) == "w^2 + 3*w"
    assert text(add(multiply(a, w), negative(multiply(w, a)))) == "0"


def test_nested_functions_give_one_factor_each() -> None:
    inner = power(multiply(w, number(3)), number(2))
    assert derivative(apply("sin", apply("exp", inner)))[0] == "cos(exp((3*w)^2)) * exp((3*w)^2) * 6*w * 3"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (multiply(a, w), "a"),
        (apply("log", w), "1/w"),
        (apply("sqrt", w), "1/(2*sqrt(w))"),
        (divide(a, w), "-a/w^2"),
        (power(w, number(0.5)), "1/(2*w^0.5)"),
        (power(w, number(-2)), "-2/w^3"),
        (power(number(2), w), "2^w*log(2)"),
        (apply("cos", w), "-sin(w)"),
        (apply("tanh", w), "1 - tanh(w)^2"),
        (apply("sigmoid", w), "sigmoid(w)*(1 - sigmoid(w))"),
        (apply("abs", w), "sign(w)"),
        (multiply(number(Fraction(1, 3)), power(w, number(2))), "2*w/3"),
        (number(7), "0"),
    ],
)  # fmt: skip
def test_derivatives_are_written_as_in_a_book(expression: Expression, expected: str) -> None:
    assert derivative(expression)[1] == expected


def test_by_a_number_the_mean_stays() -> None:
    error = add(multiply(w, x), negative(y))
    loss = total("mean", 3, power(error, number(2)))
    assert derivative(loss) == ("mean(2*(w*x - y) * x)", "2*mean(x*(w*x - y))")


def test_by_a_vector_each_element_has_its_own_derivative() -> None:
    assert derivative(total("sum", 3, power(x, number(2))), x)[1] == "2*x"
    assert derivative(total("mean", 3, power(x, number(2))), x)[1] == "2*x/3"
    assert derivative(power(total("sum", 3, x), number(2)), x)[1] == "2*sum(x)"


def test_a_sum_over_equal_elements_is_a_product() -> None:
    assert total("sum", 3, w) == multiply(number(3), w)
    assert total("mean", 3, w) == w
    assert isinstance(total("sum", 3, x), Total)


def test_vectors_have_values_element_by_element() -> None:
    values = {"x": np.array([1.0, 2.0, 3.0])}
    assert evaluate(multiply(number(2), x), values).tolist() == [2.0, 4.0, 6.0]
    assert float(evaluate(total("mean", 3, x), values)) == 2.0


@pytest.mark.parametrize(
    ("value", "said"),
    [(2.0, "2"), (0.1, "0.1"), (-0.125, "-0.125"), (Fraction(1, 3), "1/3"), (1e-15, "1e-15"), (123456.5, "123456.5")],
)
def test_numbers_are_written_as_people_do(value: float | Fraction, said: str) -> None:
    assert number_text(number(value).value) == said


def test_decimals_multiply_exactly() -> None:
    assert text(multiply(number(0.1), number(3.0), w)) == "0.3*w"


def test_what_is_not_finite_is_no_number() -> None:
    with pytest.raises(ValueError, match="inf"):
        number(math.inf)


def test_an_expression_that_no_one_would_read_is_refused() -> None:
    def grown(times: int) -> Expression:
        inner = grown(times - 1) if times else w
        return multiply(inner, add(inner, Number(Fraction(1))))

    assert text(grown(0)) == "w*(w + 1)"
    with pytest.raises(TooLargeError):
        grown(20)
