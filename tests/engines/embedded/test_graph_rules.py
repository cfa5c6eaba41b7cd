"""Random programs of arithmetic, views, in-place writes and backward calls agree on both engines, errors included."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whygrad.engines.embedded import torch as embedded

UNARY = (
    "exp",
    "sin",
    "tanh",
    "sigmoid",
    "relu",
    "neg",
    "square",
    "abs",
    "cumsum0",
    "t_t",
    "sum1",
    "mean0",
    "softmax",
    "clone",
)
BINARY = ("add", "sub", "mul", "div", "maximum", "matmul_t")
ACTIONS = (
    "detach",
    "inplace_add",
    "inplace_mul",
    "view_write",
    "no_grad_write",
    "backward",
    "backward_retain",
    "zero",
    "select",
)

step = st.one_of(
    st.tuples(st.sampled_from(UNARY), st.integers(0, 9)),
    st.tuples(st.sampled_from(BINARY), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 9)),
)


def _unary(name: str, x: Any) -> Any:
    if name == "cumsum0":
        return x.cumsum(0)
    if name == "t_t":
        return x.t().contiguous().t() if x.dim() == 2 else x * 1
    if name == "sum1":
        return x.sum(-1, keepdim=True)
    if name == "mean0":
        return x.mean(0, keepdim=True)
    if name == "softmax":
        return x.softmax(-1)
    return getattr(x, name)()


def _play(t: Any, steps: list[Any], start: Any) -> list[Any]:
    """Run a program; the log holds what can be seen after every step."""
    leaf = t.tensor(start, dtype=t.float64, requires_grad=True)
    other = t.tensor(start, dtype=t.float64) + 0.5
    live = [leaf, other]
    log: list[Any] = []
    for name, *places in steps:
        x = live[places[0] % len(live)]
        try:
            if name in UNARY:
                live.append(_unary(name, x))
            elif name in BINARY:
                y = live[places[1] % len(live)]
                live.append(x.matmul(y.t()) if name == "matmul_t" else getattr(t, name)(x, y))
            elif name == "detach":
                live.append(x.detach())
            elif name == "inplace_add":
                x.add_(0.25)
            elif name == "inplace_mul":
                x.mul_(live[0].detach() if x.shape == live[0].shape else 1.5)
            elif name == "view_write":
                x[0].mul_(2)
            elif name == "no_grad_write":
                with t.no_grad():
                    x.mul_(1.5)
            elif name in ("backward", "backward_retain"):
                x.sum().backward(retain_graph=name == "backward_retain")
            elif name == "zero":
                leaf.grad = None
            elif name == "select":
                live.append(x[0:1])
        except (RuntimeError, IndexError) as error:
            log.append((name, type(error).__name__, str(error)))
        last = live[-1]
        log.append(
            (
                name,
                last.requires_grad,
                last.is_leaf,
                x._version,
                type(last.grad_fn).__name__ if last.grad_fn is not None else None,
            )
        )
        log.append(last.detach().numpy().copy())
        log.append(None if leaf.grad is None else leaf.grad.detach().numpy().copy())
    return log


@settings(max_examples=150, deadline=None)
@given(st.lists(step, max_size=12))
def test_random_programs_agree(steps: list[Any]) -> None:
    start = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5], [-2.0, 1.0, 0.25]]
    real, ours = _play(torch, steps, start), _play(embedded, steps, start)
    assert len(real) == len(ours)
    for a, b in zip(real, ours, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)
        else:
            assert a == b


@settings(max_examples=60, deadline=None)
@given(st.lists(step.filter(lambda s: s[0] in UNARY or s[0] in BINARY), min_size=1, max_size=6))
def test_second_gradients_agree(steps: list[Any]) -> None:
    def second(t: Any) -> Any:
        leaf = t.tensor([[0.5, -1.25], [1.5, 0.75]], dtype=t.float64, requires_grad=True)
        live = [leaf, leaf * 1.0 + 0.5]
        for name, *places in steps:
            x = live[places[0] % len(live)]
            if name in UNARY:
                live.append(_unary(name, x))
            else:
                y = live[places[1] % len(live)]
                if name == "matmul_t" and x.shape[-1] != y.shape[-1]:
                    continue
                live.append(x.matmul(y.t()) if name == "matmul_t" else getattr(t, name)(x, y))
        first = t.autograd.grad(live[-1].sin().sum(), leaf, create_graph=True, allow_unused=True)[0]
        if first is None or not first.requires_grad:
            return first
        return t.autograd.grad(first.sum(), leaf, allow_unused=True)[0]

    a, b = second(torch), second(embedded)
    assert (a is None) == (b is None)
    if a is not None:
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-8, atol=1e-9)
