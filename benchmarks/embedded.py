"""How quick the embedded engine is, beside PyTorch on one thread in the same process: interleaved rounds, medians.

CPU time of the thread is taken, so that what else the machine does counts little.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from statistics import median
from time import thread_time
from typing import Any

from benchmarks.table import Table, between, ratio

ROUNDS = 15
AIMS = {
    "scalar (2w - 1)^2, forward and backward": 0.11,
    "chain of 20 operations on 10 elements": 0.30,
    "chain of 20 operations on 1,000 elements": 0.38,
    "chain of 20 operations on 100,000 elements": 0.80,
    "MLP 784-128-10, batch of 64, a training step": 0.67,
    "convolution 1-8 channels, 3 by 3, batch of 16, 28 by 28": None,
}
"""The ratio that each is to reach; None: measured, without an aim."""


def ask(rounds: int = ROUNDS) -> Iterator[Table]:
    import torch

    from whygrad.engines.embedded import torch as embedded
    from whygrad.engines.embedded.quiet import be_quiet

    torch.set_num_threads(1)
    be_quiet()
    makers = (_scalar, _chain(10), _chain(1_000), _chain(100_000), _perceptron, _convolution)
    rows = []
    for (name, aim), make in zip(AIMS.items(), makers, strict=True):
        times = _interleaved(make(torch), make(embedded), rounds)
        ratios = [ours / theirs for theirs, ours in times]
        theirs, ours = (median(column) for column in zip(*times, strict=True))
        rows.append([
            name, f"{theirs * 1e6:.1f}", f"{ours * 1e6:.1f}", ratio(median(ratios)), between(ratios),
            "" if aim is None else ratio(aim),
        ])  # fmt: skip
    yield Table(
        "The embedded engine beside PyTorch", ("what", "PyTorch, µs", "embedded, µs", "ratio", "spread", "aim"), rows
    )


def _interleaved(first: Callable[[], Any], second: Callable[[], Any], rounds: int) -> list[tuple[float, float]]:
    times = max(int(0.02 / _once(first, 3)), 1)
    found = []
    for _ in range(rounds):
        gc.collect()
        found.append((_once(first, times), _once(second, times)))
    return found


def _once(work: Callable[[], Any], times: int) -> float:
    start = thread_time()
    for _ in range(times):
        work()
    return (thread_time() - start) / times


def _scalar(torch: Any) -> Callable[[], Any]:
    w = torch.tensor(3.0, requires_grad=True)

    def work() -> None:
        w.grad = None
        (w * 2.0 - 1.0).square().backward()

    return work


def _chain(size: int) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        x = torch.linspace(0.1, 1.0, size).requires_grad_()

        def work() -> None:
            x.grad = None
            y = x
            for _ in range(5):
                y = ((y * 1.01 + 0.01) * x).tanh()
            y.sum().backward()

        return work

    return make


def _perceptron(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 784), torch.arange(64) % 10

    def work() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return work


def _convolution(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(1, 8, 3, padding=1)
    x = torch.randn(16, 1, 28, 28)

    def work() -> None:
        layer.zero_grad()
        layer(x).relu().sum().backward()

    return work
