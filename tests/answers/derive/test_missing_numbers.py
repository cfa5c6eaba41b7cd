"""Numbers that the source spells out, and numbers that follow from a recorded result."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whygrad.answers.derive.solving import solved
from whygrad.answers.derive.spelling import spelled


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("1 / 4", 0.25),
        ("-(2 ** 3)", -8),
        ('float("-inf")', -math.inf),
        ("math.pi / 2", math.pi / 2),
        ("torch.inf", math.inf),
        ("2e-3", 0.002),
    ],
)
def test_what_is_spelled_out_is_known(code: str, number: float) -> None:
    assert spelled(code) == number


@pytest.mark.parametrize(
    "code",
    ["len(x)", "n", "1 - decay", "float(n)", "self.pi", "True", "'3'", "1 / 0", "9 ** 9 ** 9", "x ==", "", "1" * 99],
)
def test_anything_else_is_not(code: str) -> None:
    assert spelled(code) is None


@pytest.mark.parametrize(
    ("name", "operands", "result", "number"),
    [
        ("div", (np.array([2.0, 6.0]), None), [0.5, 1.5], 4.0),
        ("div", (None, np.array([2.0, 4.0])), [1.0, 0.5], 2.0),
        ("mul", (np.array([2.0, 0.0]), None), [0.2, 0.0], 0.1),
        ("sub", (None, np.array([2.0, 0.0])), [1.0, 3.0], 3.0),
        ("add", (np.array([2.0, 0.0]), None), [3.5, 1.5], 1.5),
    ],
)
def test_a_number_follows_from_operand_and_result(
    name: str, operands: tuple[object, ...], result: list[float], number: float
) -> None:
    assert solved(name, operands, np.array(result)) == pytest.approx(number)


@pytest.mark.parametrize(
    ("name", "operands", "result"),
    [
        ("mul", (np.array([2.0, 3.0]), None), [2.0, 6.0]),
        ("mul", (np.array([0.0]), None), [0.0]),
        ("pow", (np.array([2.0]), None), [4.0]),
        ("add", (np.array([1, 2]), None), [2.0, 3.0]),
        ("div", (np.array([2.0]), None), [math.inf]),
    ],
)
def test_elements_that_disagree_settle_nothing(name: str, operands: tuple[object, ...], result: list[float]) -> None:
    assert solved(name, operands, np.array(result)) is None
