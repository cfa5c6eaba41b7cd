"""Training loops: every optimizer and schedule gives PyTorch's parameters and rates, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from whygrad.engines.embedded import torch as embedded

OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda t, p: t.optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, dampening=0.1),
    "SGD with Nesterov": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "Adam": lambda t, p: t.optim.Adam(p, lr=0.05, weight_decay=0.01),
    "Adam with amsgrad": lambda t, p: t.optim.Adam(p, lr=0.05, amsgrad=True),
    "AdamW": lambda t, p: t.optim.AdamW(p, lr=0.05),
    "NAdam": lambda t, p: t.optim.NAdam(p, lr=0.05),
    "RAdam": lambda t, p: t.optim.RAdam(p, lr=0.05),
    "Adamax": lambda t, p: t.optim.Adamax(p, lr=0.05),
    "RMSprop": lambda t, p: t.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda t, p: t.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adadelta": lambda t, p: t.optim.Adadelta(p, lr=0.5),
    "LBFGS": lambda t, p: t.optim.LBFGS(p, lr=0.5, max_iter=4),
}
SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, o: s.StepLR(o, 2, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5], 0.1),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda n: 0.95**n),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda _: 0.95),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 3),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, total_iters=5),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 6, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 4, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=10),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3]),
}


def _train(t: Any, make: Callable[[Any, Any], Any], steps: int = 6) -> list[Any]:
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(3, 5), t.nn.Tanh(), t.nn.Linear(5, 2)).double()
    x, y = t.randn(8, 3).double(), t.randint(0, 2, (8,))
    optimizer = make(t, model.parameters())
    seen = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = t.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        if type(optimizer).__name__ == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        seen.extend(p.detach().numpy().copy() for p in model.parameters())
    return seen


@pytest.mark.filterwarnings(
    "ignore:Converting a tensor with requires_grad=True to a scalar"
)  # LBFGS does, once a process
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_the_same_steps(name: str) -> None:
    for a, b in zip(_train(torch, OPTIMIZERS[name]), _train(embedded, OPTIMIZERS[name]), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_set_the_same_rates(name: str) -> None:
    def rates(t: Any) -> list[float]:
        p = t.nn.Parameter(t.ones(1))
        optimizer = t.optim.SGD([p], lr=0.3, momentum=0.9)
        schedule = SCHEDULES[name](t.optim.lr_scheduler, optimizer)
        seen = []
        for _ in range(9):
            optimizer.step()
            schedule.step()
            seen.append(optimizer.param_groups[0]["lr"])
        return seen

    assert rates(embedded) == pytest.approx(rates(torch), rel=1e-12)


def test_state_dicts_resume_a_run() -> None:
    p = embedded.nn.Parameter(embedded.ones(2))
    first = embedded.optim.Adam([p], lr=0.1)
    (p * p).sum().backward()
    first.step()
    q = embedded.nn.Parameter(p.detach().clone())
    second = embedded.optim.Adam([q], lr=0.5)
    second.load_state_dict(first.state_dict())
    for optimizer, leaf in ((first, p), (second, q)):
        optimizer.zero_grad()
        (leaf * leaf).sum().backward()
        optimizer.step()
    assert p.tolist() == q.tolist()
