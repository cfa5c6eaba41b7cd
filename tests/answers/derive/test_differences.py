"""Central differences: their value, their estimate of their own error, and the kinks that they do not settle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whygrad.answers.derive.differences import Slope, slope

ONE = np.ones(())


def at(f: Callable[[float], float], x: float, size: float | None = None) -> Slope:
    scale = abs(x) or 1.0
    size = abs(f(x)) or 1.0 if size is None else size
    return slope(lambda offset: f(x + float(offset)), ONE, scale, size, 1e-9)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (math.exp, 1.0, math.e),
        (math.sin, 2.0, math.cos(2.0)),
        (lambda x: x**5, 3.0, 405.0),
        (math.log, 1e-6, 1e6),
        (math.sqrt, 1e-8, 5e3),
        (lambda x: 1 / x, -2.0, -0.25),
        (lambda _: 7.0, 3.0, 0.0),
        (math.tanh, 0.0, 1.0),
    ],
)
def test_a_smooth_slope_is_found_within_its_error(f: Callable[[float], float], x: float, expected: float) -> None:
    found = at(f, x)
    assert found.settled
    assert found.value == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert abs(found.value - expected) <= 4 * found.error + 1e-12


@given(st.floats(0.1, 10), st.floats(-3, 3), st.floats(-3, 3))
def test_a_polynomial_is_settled(x: float, a: float, b: float) -> None:
    found = at(lambda u: a * u**3 + b * u, x, size=abs(a) * x**3 + abs(b) * x + 1)
    assert found.value == pytest.approx(3 * a * x**2 + b, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("f", "left", "right"),
    [(abs, -1.0, 1.0), (lambda x: max(x, 0.0), 0.0, 1.0), (lambda x: max(x, 2 * x) + x * x, 1.0, 2.0)],
)
def test_a_kink_is_told_by_its_two_sides(f: Callable[[float], float], left: float, right: float) -> None:
    found = at(f, 0.0)
    assert not found.settled
    assert found.left == pytest.approx(left, abs=1e-3)
    assert found.right == pytest.approx(right, abs=1e-3)


@pytest.mark.parametrize("distance", [3e-4, 1e-5, 1e-7])
def test_a_kink_nearby_does_no_harm(distance: float) -> None:
    found = at(lambda x: abs(x - 1.0) * 2, 1.0 + distance)
    assert found.settled
    assert found.value == pytest.approx(2.0, rel=1e-5)


def test_what_is_not_finite_is_not_settled() -> None:
    assert not at(lambda _: math.nan, 1.0).settled


def test_the_error_grows_with_what_the_function_rounds_relative_to() -> None:
    sharp, blunt = at(math.sin, 1.0), at(math.sin, 1.0, size=1e8)
    assert blunt.error > 1e3 * sharp.error
