"""How numbers, values and shapes are said."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers import scalar, value
from whygrad.ledger.values import Value
from whygrad.report.parts import Size
from whygrad.report.wording import (
    say_first_sentence,
    say_modules,
    say_names,
    say_number,
    say_shape,
    say_size,
    say_state,
    say_tensors,
    say_value,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (20.0, "20"), (-4.934098e-05, "-4.934e-05"), (0.1, "0.1"), (0.10000000149011612, "0.1"), (-0.0, "0"),
        (123456.0, "123456"), (12345.678, "12345.7"), (1e20, "1e+20"), (3, "3"), (True, "True"), ("nan", "NaN"),
        ("-inf", "-inf"), (float("inf"), "inf"), (7589.466384404112, "7589"), ("(1+2j)", "(1+2j)"),
        (99999.99, "100000"), (1e7, "1e+07"), (0.00012345, "0.0001234"),
    ],
)  # fmt: skip
def test_number(number: float | str, text: str) -> None:
    assert say_number(number) == text


@given(st.floats(-1e300, 1e300))
def test_a_number_said_is_close_to_the_number(number: float) -> None:
    assert math.isclose(float(say_number(number)), number, rel_tol=1e-3)


def test_small_tensors_are_whole() -> None:
    assert say_value(value((3,), 2, 4, 6)) == "[2, 4, 6]"
    assert say_value(value((2, 2), 1, 0, 0, 1)) == "[[1, 0], [0, 1]]"
    assert say_value(scalar(20.0)) == "20"


def test_larger_tensors_are_shape_and_norm() -> None:
    assert say_value(Value(shape=(256, 784), dtype="float32", norm=0.81)) == "shape (256, 784), norm 0.81"
    assert say_value(value((4, 4), *range(16))) == "shape (4, 4), norm 35.21"


def test_what_is_no_number_is_counted() -> None:
    bad = Value(shape=(10, 4), dtype="float32", norm="nan", nan=3, inf=1)
    assert say_state(bad) == "3 NaN and 1 inf of 40"


def test_an_empty_tensor_has_no_elements() -> None:
    assert say_value(value((0, 3))) == "shape (0, 3), no elements"


def test_shapes_are_as_python_prints_them() -> None:
    assert [say_shape(shape) for shape in ((), (3,), (256, 784))] == ["()", "(3,)", "(256, 784)"]
    assert say_size(Size(low=(7, 3), high=(16, 3), dtype="float32")) == "(7..16, 3)"


def test_many_names_are_counted() -> None:
    assert say_names(["a"]) == "a"
    assert say_names(["a", "b"]) == "a and b"
    assert say_names(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert say_names([]) == ""


def test_the_first_sentence_of_a_message() -> None:
    long = (
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward()."
    )
    assert say_first_sentence(long) == "Trying to backward through the graph a second time"
    assert (
        say_first_sentence("shapes cannot be multiplied (1x3 and 2x1)") == "shapes cannot be multiplied (1x3 and 2x1)"
    )
    assert say_first_sentence("") == ""


def test_many_tensors_of_one_module_are_counted() -> None:
    assert say_tensors(["m.0.weight", "m.0.bias"]) == "m.0.weight and m.0.bias"
    assert say_tensors(["m.0.weight", "m.0.bias", "m.1.weight", "m.1.bias"]) == "4 tensors of m"
    assert say_tensors(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_a_module_stands_for_those_in_it() -> None:
    assert say_modules(["m", "m.0", "m.1"]) == "m and the 2 modules in it"
    assert say_modules(["m.0", "m.1"]) == "m.0 and m.1"
    assert say_modules([]) == ""
