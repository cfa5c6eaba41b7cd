"""Published answers are compared by value, shape, dtype and error type, never by broadcasting or text alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whygrad.execute.jobs import Failure, Plain
from whygrad.practice.published import Number, agrees, close, printed_agrees, published, text_agrees


def tensor(values: list[float], *shape: int, dtype: str = "float32") -> Plain:
    return Plain("tensor", values, dtype, shape)


@pytest.mark.parametrize(
    ("said", "found", "right"),
    [
        ("12.0", Plain("float", 12.0), True),
        ("12", Plain("float", 12.0), True),
        ("12.0", tensor([12.0]), True),
        ("12.0", tensor([12.0], 1), False),
        ("12.0", Plain("none"), False),
        ("1", Plain("bool", True), False),
        ("True", Plain("bool", True), True),
        ("None", Plain("none"), True),
        ("0.269", Plain("float", 0.26894142), True),
        ("0.2", Plain("float", 0.26894142), False),
        ("0.0", Plain("float", 1e-10), False),
        ("nan", Plain("float", float("nan")), True),
        ("inf", Plain("float", float("inf")), True),
        ("tensor([2., 4.])", tensor([2.0, 4.0], 2), True),
        ("tensor([2., 4.])", tensor([2.0, 4.0], 2, 1), False),
        ("tensor([2., 4.])", tensor([2.0, 4.0], 1, 2), False),
        ("tensor([2., 4.])", tensor([2, 4], 2, dtype="int64"), False),
        ("tensor([2., 4.], dtype=torch.float64)", tensor([2.0, 4.0], 2), False),
        ("tensor([2., 2.])", tensor([2.0]), False),
        ("tensor(5., grad_fn=<MulBackward0>)", tensor([5.0]), True),
        ("Tensor([2.0, 4.0]) with shape (2,)", tensor([2.0, 4.0], 2), True),
        ("Tensor([2.0, 4.0]) with shape (2, 1)", tensor([2.0, 4.0], 2), False),
        ("[2, 4]", tensor([2.0, 4.0], 2), True),
        ("[2, 4]", Plain("list", items=(Plain("int", 2), Plain("int", 4))), True),
        ("torch.Size([2, 3])", Plain("shape", [2, 3]), True),
        ("torch.float32", Plain("dtype", "float32"), True),
        ("RuntimeError", Failure("RuntimeError"), True),
        ("a RuntimeError is raised", Failure("OutOfMemoryError", ("RuntimeError", "Exception")), True),
        ("an error", Failure("ValueError"), True),
        ("ValueError", Failure("RuntimeError", ("Exception",)), False),
        ("12.0", Failure("RuntimeError"), False),
    ],
)
def test_an_answer_against_a_value(said: str, found: Plain | Failure, right: bool) -> None:
    assert agrees(published(said), found) is right


@given(st.floats(allow_nan=False, width=32))
def test_a_number_agrees_with_itself_as_python_writes_it(value: float) -> None:
    assert agrees(published(repr(value)), Plain("float", value))


@given(st.floats(min_value=0.01, max_value=1e6), st.floats(min_value=1.01, max_value=2))
def test_a_number_does_not_agree_with_another(value: float, factor: float) -> None:
    assert not close(Number(value), value * factor)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=6))
def test_a_row_is_no_column(values: list[int]) -> None:
    numbers = [float(value) for value in values]
    said = published(f"tensor({numbers})")
    assert agrees(said, tensor(numbers, len(numbers)))
    assert not agrees(said, tensor(numbers, len(numbers), 1))
    assert not agrees(said, tensor(numbers, 1, len(numbers)))


def test_printed_values_are_compared_as_values() -> None:
    assert printed_agrees(published("tensor([1., 2.])"), "tensor([1., 2.])")
    assert printed_agrees(published("12"), "12")
    assert not printed_agrees(published("12"), "13")
    assert not printed_agrees(published("tensor([1., 2.])"), "tensor([[1., 2.]])")


def test_texts_may_differ_in_spaces_and_rounding_only() -> None:
    assert text_agrees("loss: 0.333", "loss:   0.33333334")
    assert not text_agrees("loss: 0.333", "loss: 0.34")
    assert not text_agrees("tensor([1, 2])", "tensor([1., 2.])")
