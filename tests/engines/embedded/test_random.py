"""The generator gives PyTorch's numbers, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from whygrad.engines.embedded import torch as embedded

DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda t: t.rand(37),
    "rand in double": lambda t: t.rand(37, dtype=t.float64),
    "randn of fewer than 16": lambda t: t.cat([t.randn(n) for n in (1, 3, 15)]),
    "randn of 16 and more": lambda t: t.cat([t.randn(n) for n in (16, 17, 31, 1000)]),
    "randn in double": lambda t: t.cat([t.randn(n, dtype=t.float64) for n in (5, 16, 100)]),
    "randn after rand": lambda t: t.cat([t.randn(3), t.rand(3), t.randn(20), t.randn(5)]),
    "randint": lambda t: t.cat([t.randint(0, n, (20,)) for n in (2, 10, 2**20, 2**28, 2**28 + 5, 2**33)]),
    "randperm": lambda t: t.cat([t.randperm(n) for n in (0, 1, 5, 100)]),
    "bernoulli_": lambda t: t.empty(50).bernoulli_(0.3),
    "bernoulli of tensors": lambda t: t.bernoulli(t.full((50,), 0.3)),
    "dropout": lambda t: t.nn.functional.dropout(t.ones(50), 0.3),
    "uniform_": lambda t: t.empty(50).uniform_(-2, 5),
    "normal_": lambda t: t.empty(50).normal_(3, 2),
    "normal": lambda t: t.normal(t.zeros(20), t.ones(20) * 2),
    "a generator": lambda t: t.rand(5, generator=t.Generator().manual_seed(3)),
    "Linear": lambda t: _parameters(t, t.nn.Linear(10, 20)),
    "Conv2d": lambda t: _parameters(t, t.nn.Conv2d(3, 8, 3)),
    "LSTM": lambda t: _parameters(t, t.nn.LSTM(4, 5)),
    "Embedding": lambda t: _parameters(t, t.nn.Embedding(10, 4)),
    "MultiheadAttention": lambda t: _parameters(t, t.nn.MultiheadAttention(8, 2)),
    "xavier_uniform_": lambda t: t.nn.init.xavier_uniform_(t.empty(10, 20)),
    "kaiming_normal_": lambda t: t.nn.init.kaiming_normal_(t.empty(10, 20)),
    "trunc_normal_": lambda t: t.nn.init.trunc_normal_(t.empty(10, 20)),
    "a shuffled DataLoader": lambda t: t.cat(
        [b[0] for b in t.utils.data.DataLoader(t.utils.data.TensorDataset(t.arange(10)), 3, shuffle=True)]
    ),
    "random_split": lambda t: t.tensor(t.utils.data.random_split(range(10), [3, 7])[0].indices),
}


def _parameters(t: Any, module: Any) -> Any:
    return t.cat([p.detach().reshape(-1) for p in module.parameters()])


@pytest.mark.parametrize("name", DRAWS)
def test_the_numbers_are_the_same(name: str) -> None:
    draw = DRAWS[name]
    for seed in (0, 7, 2**40 + 1):
        torch.manual_seed(seed)
        embedded.manual_seed(seed)
        for _ in range(2):
            assert draw(torch).tolist() == draw(embedded).tolist()


def test_the_state_can_be_kept_and_restored() -> None:
    embedded.manual_seed(1)
    embedded.randn(3)
    state = embedded.get_rng_state()
    first = embedded.randn(5).tolist()
    embedded.set_rng_state(state)
    assert embedded.randn(5).tolist() == first
