"""From a recorded computation to a verdict: what follows the target, what is frozen, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from derive_tracer import Tracer

from whygrad.answers.derive import Derivation, Status
from whygrad.answers.derive.operations.table import TABLE

T = torch.Tensor


def derived(program: Callable[[T], T], data: object = 3.0, name: str = "w") -> Derivation:
    tracer = Tracer()
    leaf = tracer.leaf(data, name)
    with tracer:
        root = program(leaf)
    (derivation,) = tracer.derive(root, leaf)
    return derivation


def first_line(program: Callable[[T], T], data: object = 3.0, name: str = "w") -> str:
    return derived(program, data, name).lines()[0]


# --- written down ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            lambda w: (w * 2.0 - 1.0).square(),
            "d/dw (2*w - 1)^2 = 2*(2*w - 1) * 2 = 4*(2*w - 1) = 20 at w = 3 (line 1); agrees with the observed 20",
        ),
        (lambda w: (w * 2.0 - 1.0) ** 2, "d/dw (2*w - 1)^2 = 2*(2*w - 1) * 2 = 4*(2*w - 1) = 20 at w = 3"),
        (lambda w: w**3 + w * 2, "d/dw (w^3 + 2*w) = 3*w^2 + 2 = 29 at w = 3"),
        (lambda w: w * w * w, "d/dw w^3 = 3*w^2 = 27 at w = 3"),
        (lambda w: 1 / w, "d/dw 1/w = -1/w^2 = -0.111111 at w = 3"),
        (lambda w: -(w.sqrt()), "d/dw -sqrt(w) = -1/(2*sqrt(w)) = -0.288675 at w = 3"),
        (lambda w: torch.exp(-w * w), "d/dw exp(-w^2) = exp(-w^2) * (-2*w) = -2*w*exp(-w^2) = "),
        (lambda w: (w * 0.1).exp(), "d/dw exp(0.1*w) = exp(0.1*w) * 0.1 = 0.1*exp(0.1*w) = 0.134986 at w = 3"),
        (lambda w: w.detach() * w, "d/dw 3*w = 3 at w = 3"),
        (lambda w: w - w, "d/dw 0 = 0 at w = 3"),
        (lambda w: F.mse_loss(w * 2, torch.tensor(5.0)), "d/dw (2*w - 5)^2 = 2*(2*w - 5) * 2 = 4*(2*w - 5) = 4"),
        (lambda w: w.reshape(1, 1) @ torch.tensor([[2.0]]), "d/dw 2*w = 2 at w = 3"),
    ],
)
def test_a_small_graph_is_written_down(program: Callable[[T], T], line: str) -> None:
    assert first_line(program).startswith(line)


def test_other_leaves_appear_by_name() -> None:
    tracer = Tracer()
    a, b = tracer.leaf(2.0, "a"), tracer.leaf(-1.5, "b")
    with tracer:
        root = a * b + torch.sin(a)
    by_a, by_b = tracer.derive(root, a, b)
    assert by_a.lines()[0].startswith("d/da (a*b + sin(a)) = b + cos(a) = -1.91615 at a = 2, b = -1.5")
    assert by_b.lines()[0].startswith("d/db (a*b + sin(a)) = a = 2 at b = -1.5, a = 2")


def test_two_tensors_of_one_name_are_told_apart() -> None:
    tracer = Tracer()
    first, second = tracer.leaf(2.0, "w"), tracer.leaf(5.0, "w")
    with tracer:
        root = first * second
    assert tracer.derive(root, first)[0].lines()[0].startswith("d/dw w*w_2 = w_2 = 5 at w = 2, w_2 = 5")


def test_a_short_vector_is_written_element_by_element() -> None:
    line = first_line(lambda x: (x**2).sum(), [1.0, 2.0, 3.0], "x")
    assert line.startswith("d/dx sum(x^2) = 2*x = [2, 4, 6] at x = [1, 2, 3]")


def test_elements_that_meet_are_left_to_differences() -> None:
    derivation = derived(lambda x: ((x - x.mean()) ** 2).sum(), [1.0, 2.0, 4.0], "x")
    assert derivation.status is Status.AGREES
    assert not derivation.symbolic


def test_a_branch_is_said_to_be_decided_by_a_value() -> None:
    lines = derived(lambda w: torch.relu(1 - w)).lines()
    assert lines[0].startswith("d/dw relu(1 - w) = 0 at w = 3")
    assert lines[1] == "relu(1 - w) is 0 here: its argument is negative"
    lines = derived(lambda w: torch.maximum(w * w, torch.tensor(2.0)) * 2).lines()
    assert lines[0].startswith("d/dw 2*max(w^2, 2) = 4*w = 12 at w = 3")
    assert lines[1] == "max(w^2, 2) is w^2 here: the two are 9 and 2"


def test_the_gradient_argument_weighs_the_root() -> None:
    tracer = Tracer()
    x = tracer.leaf([1.0, 2.0], "x")
    with tracer:
        root = x * x
    (derivation,) = tracer.derive(root, x, gradient=torch.tensor([1.0, 10.0]))
    assert derivation.lines()[0].startswith("d/dx sum(gradient*x^2) = 2*gradient*x = [2, 40]")


def test_a_second_backward_is_held_against_what_it_added() -> None:
    tracer = Tracer()
    w = tracer.leaf(3.0, "w")
    with tracer:
        root = w * w
    tracer.backward(root, w)
    (derivation,) = tracer.derive(root, w)
    assert (derivation.status, derivation.observed) == (Status.AGREES, (6.0,))


# --- frozen, exactly as autograd has it -------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x.detach() * x).sum(),
        lambda x: (x.data * x**2).sum(),
        lambda x: ((x - x.round()).detach() + x).sum(),
        lambda x: torch.where(x > 0, x**2, -x).sum(),
        lambda x: x[x.argmax()] * 2,
        lambda x: (x.max().detach() - x).square().sum(),
    ],
)
def test_cuts_are_constants(program: Callable[[T], T]) -> None:
    derivation = derived(program, [0.6, -1.3, 2.2], "x")
    assert derivation.status is Status.AGREES, derivation.lines()


def test_what_no_grad_computed_is_a_constant() -> None:
    def program(x: T) -> T:
        with torch.no_grad():
            scale = (x * x).sum()
        return (x * scale).sum()

    assert derived(program, [0.6, -1.3], "x").status is Status.AGREES


def test_an_operation_in_place_is_a_new_value() -> None:
    def program(x: T) -> T:
        y = x * 2
        y.add_(1)
        y.mul_(x)
        return y.sum()

    assert derived(program, [0.6, -1.3], "x").status is Status.AGREES


def test_writing_into_a_part_is_a_new_value() -> None:
    def program(x: T) -> T:
        y = torch.zeros(3)
        y[0] = x[1] * 2
        y[1:] = x**2
        return (y * y).sum()

    assert derived(program, [0.6, -1.3], "x").status is Status.AGREES


def test_a_write_through_a_view_is_refused() -> None:
    def program(x: T) -> T:
        y = x * 2
        y[0].mul_(5)
        return y.sum()

    derivation = derived(program, [0.6, -1.3], "x")
    assert derivation.status is Status.NOT_DERIVED
    assert "written through another view of its data (line 1)" in derivation.reason


# --- by differences -------------------------------------------------------------------------------


def test_a_network_agrees_to_rounding() -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(6, 3), torch.tensor([0, 1, 1, 0, 1, 0])
    second = torch.randn(2, 4)
    derivation = derived(lambda w: F.cross_entropy(F.relu(inputs @ w.T) @ second.T, labels), torch.randn(4, 3).tolist())
    assert derivation.status is Status.AGREES
    assert derivation.difference is not None
    assert derivation.difference < 1e-6
    assert derivation.lines()[0].startswith("central differences in float64 (line 1): norm ")


def test_of_a_long_gradient_the_statistics_are_compared() -> None:
    derivation = derived(lambda x: (x**2).mean(), torch.linspace(0.1, 1, 80).tolist(), "x")
    assert derivation.status is Status.AGREES
    assert derivation.compared == "all 80 elements by norm, lowest and highest"


def test_when_all_elements_are_too_dear_some_and_one_direction_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whygrad.answers.derive.answer.ASKED_BUDGET", 6_000)
    torch.manual_seed(0)
    weights = torch.randn(60, 60)

    def program(x: T) -> T:
        return torch.tanh(weights @ x).square().mean()

    derivation = derived(program, [0.1] * 60, "x")
    assert derivation.status is Status.AGREES
    assert derivation.compared.endswith("of 60 elements and one direction")
    monkeypatch.setattr("whygrad.answers.derive.answer.ASKED_BUDGET", 1_000)
    assert "is too much work" in derived(program, [0.1] * 60, "x").reason


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_tolerance_follows_the_dtype(dtype: torch.dtype) -> None:
    tracer = Tracer()
    x = tracer.leaf([0.7, -1.2, 0.4], "x", dtype)
    with tracer:
        root = (x.sin() * x.exp()).prod()
    (derivation,) = tracer.derive(root, x)
    assert derivation.status is Status.AGREES
    assert derivation.tolerance is not None
    assert derivation.tolerance < {torch.float64: 1e-8, torch.float32: 1e-3}.get(dtype, 0.1)


def test_a_gradient_of_nothing_but_rounding_is_no_disagreement() -> None:
    torch.manual_seed(0)
    rows = torch.randn(64, 3) + 2
    derivation = derived(
        lambda b: F.relu(F.batch_norm(rows + b, None, None, training=True)).sum(), [0.1, 0.2, -0.3], "b"
    )
    assert derivation.status is Status.AGREES, derivation.lines()
    assert derivation.result == "[0, 0, 0]"


# --- kinks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "operation"), [(torch.relu, "relu"), (torch.abs, "abs"), (lambda w: w.clamp(min=0), "clamp")]
)
def test_at_a_kink_differences_settle_nothing(program: Callable[[T], T], operation: str) -> None:
    derivation = derived(lambda w: program(w) * 2, 0.0)
    assert derivation.status is Status.NOT_DERIVED
    assert "kink" in derivation.reason, operation
    assert "(line 1)" in derivation.reason


def test_a_tie_is_a_kink() -> None:
    assert "`program` (line 1) is at its kink" in derived(lambda x: x.max(), [2.0, 2.0], "x").reason
    assert derived(lambda x: x.max(), [2.0, 2.0, 1.0], "x").compared == "1 of 3 elements (2 at a kink)"


def test_the_elements_that_are_not_at_the_kink_are_compared() -> None:
    derivation = derived(lambda x: torch.relu(x).sum(), [0.0, 1.0, -1.0], "x")
    assert derivation.status is Status.AGREES
    assert derivation.compared == "2 of 3 elements (1 at a kink)"


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: F.dropout(x, 0.5).sum() * 1.0, "`program` (line 1) is not replayed: it drew random numbers"),
        (lambda x: torch.fft.fft(x).abs().sum(), "is complex"),
        (lambda x: torch.cdist(x[None], x[None] + 1).sum(), "`cdist` is not in the table of operations"),
        (lambda x: F.embedding(torch.tensor([0, 1]), x[:, None], padding_idx=0).sum(), "padding_idx"),
    ],
)
def test_what_is_not_known_is_refused_with_its_line(program: Callable[[T], T], reason: str) -> None:
    derivation = derived(program, [0.6, -1.3, 0.4], "x")
    assert derivation.status is Status.NOT_DERIVED
    assert reason in derivation.reason
    assert derivation.lines() == [f"not derived: {derivation.reason}"]


def test_a_value_that_the_replay_does_not_give_is_refused() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TABLE, "sin", lambda a: a + 1)
        derivation = derived(lambda x: x.sin().sum(), [0.6, -1.3], "x")
    assert derivation.status is Status.NOT_DERIVED
    assert derivation.reason == "`program` (line 1) gave [0.564642, -0.963558], its replay in float64 [1.6, -0.3]"


def test_an_overflow_is_named() -> None:
    derivation = derived(lambda x: torch.exp(x * 100).sum(), [0.5, 1.0], "x")
    assert derivation.status is Status.NOT_DERIVED
    assert "overflowed float32; in float64 it is" in derivation.reason


def test_a_gradient_that_is_not_finite_disagrees() -> None:
    """The slope of `log` at 0 is infinite; `where` does not choose it, but 0 times infinity is not a number."""
    derivation = derived(lambda x: torch.where(x > 0, x.log(), x * 2).sum(), [0.0, 1.0], "x")
    assert derivation.lines()[0].endswith("[2, 1]; disagrees with the observed [nan, 1], which is not finite")
