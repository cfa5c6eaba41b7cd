"""Random programs on real PyTorch: derivations agree with right gradients and with those only."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from derive_tracer import Tracer
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from whygrad.answers.derive import Derivation, Status

T = torch.Tensor
UNARY: list[Callable[[T], T]] = [
    torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.square, torch.exp, torch.relu, torch.abs, torch.neg,
    lambda u: u.clamp(-2, 2), lambda u: (u * u + 1).sqrt(), lambda u: (u * u + 1).log(), lambda u: 1 / (u * u + 2),
    lambda u: u**3, lambda u: u.detach() * u, lambda u: 2 - u, lambda u: u / 3 + 0.1, torch.nn.functional.softplus,
]  # fmt: skip
BINARY: list[Callable[[T, T], T]] = [
    torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda u, v: u / (v * v + 1),
    lambda u, v: torch.where(u > v, u * v, u - v),
]  # fmt: skip

picks = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=7)
numbers = st.sampled_from([0.5, -1.25, 2.0, 3.0, -0.75, 0.1])


def program(leaves: list[T], choices: list[tuple[int, int, int]]) -> T:
    """A straight line of operations, each on any earlier result; the root uses the last two."""
    known = list(leaves)
    for which, left, right in choices:
        first, second = known[left % len(known)], known[right % len(known)]
        function = which % (len(UNARY) + len(BINARY))
        if function < len(UNARY):
            known.append(UNARY[function](first))
        else:
            known.append(BINARY[function - len(UNARY)](first, second))
    return known[-1] * 1.5 + known[-2]


def derived(
    values: list[float] | list[list[float]], choices: list[tuple[int, int, int]], bend: Callable[[T], T] | None = None
) -> list[Derivation]:
    tracer = Tracer()
    leaves = [tracer.leaf(value, name) for value, name in zip(values, "abc", strict=False)]
    with tracer:
        root = program(leaves, choices).sum()
    assume(math.isfinite(root.item()) and abs(root.item()) < 1e4)
    found = torch.autograd.grad(root, leaves, retain_graph=True, allow_unused=True)
    used = [leaf for leaf, gradient in zip(leaves, found, strict=True) if gradient is not None]
    assume(used)
    assume(all(float(gradient.abs().max()) < 1e5 for gradient in found if gradient is not None))
    return tracer.derive(root, *used, bend=bend)


@settings(max_examples=25)
@given(st.lists(numbers, min_size=2, max_size=3), picks)
def test_the_gradient_of_numbers_agrees(values: list[float], choices: list[tuple[int, int, int]]) -> None:
    for derivation in derived(values, choices):
        settled = derivation.status is Status.AGREES or "kink" in derivation.reason or "rounding" in derivation.reason
        assert settled, (derivation.lines(), derivation)
        if derivation.symbolic:
            assert derivation.expected == pytest.approx(derivation.observed, rel=1e-3, abs=1e-3)


@settings(max_examples=25)
@given(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=2, max_size=2), picks)
def test_the_gradient_of_vectors_agrees(values: list[list[float]], choices: list[tuple[int, int, int]]) -> None:
    for derivation in derived(values, choices):
        settled = derivation.status is Status.AGREES or "kink" in derivation.reason or "rounding" in derivation.reason
        assert settled, (derivation.lines(), derivation)


@settings(max_examples=25)
@given(st.lists(numbers, min_size=2, max_size=3), picks)
def test_a_wrong_gradient_never_agrees(values: list[float], choices: list[tuple[int, int, int]]) -> None:
    for derivation in derived(values, choices, bend=lambda gradient: gradient + 0.05 * (1 + gradient.abs())):
        assert derivation.status is not Status.AGREES, derivation.lines()
