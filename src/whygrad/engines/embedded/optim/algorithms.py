"""The update rules, in PyTorch's order of operations, on bare arrays where types allow."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import not_covered
from ..tensor import Tensor, wrap
from ..views import bump
from .optimizer import Optimizer


def refuse(**flags: Any) -> None:
    for name, value in flags.items():
        if value:
            not_covered(f"{name}={value} of optimizers")


def _check(lr: Any = 0.0, eps: Any = 0.0, weight_decay: Any = 0.0, betas: Any = None, momentum: Any = 0.0) -> None:
    value = lr.item() if isinstance(lr, Tensor) else lr
    if not value >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")
    if not eps >= 0.0:
        raise ValueError(f"Invalid epsilon value: {eps}")
    if betas is not None:
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
    if momentum < 0.0:
        raise ValueError(f"Invalid momentum value: {momentum}")
    if not weight_decay >= 0.0:
        raise ValueError(f"Invalid weight_decay value: {weight_decay}")


def _number(lr: Any) -> float:
    return lr.item() if isinstance(lr, Tensor) else lr


def _zeros(p: Tensor) -> Tensor:
    return wrap(np.zeros(p._a.shape, p.dtype.storage)[()], p.dtype)


def _store(t: Tensor, a: Any) -> None:
    """Overwrite a tensor's numbers in place."""
    a = dtypes.store(a, t.dtype) if t.dtype is dtypes.bfloat16 else a
    if isinstance(t._a, np.ndarray):
        t._a[...] = a
    else:
        t._a = t.dtype.scalar(a)
    bump(t)


class SGD(Optimizer):
    """p -= lr * g, with momentum, dampening, weight decay and Nesterov's look-ahead."""

    __module__ = "torch.optim.sgd"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        _check(lr, weight_decay=weight_decay, momentum=momentum)
        refuse(differentiable=differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            momentum, decay, lr = group["momentum"], group["weight_decay"], _number(group["lr"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p._grad._a
                t = p.dtype.compute.type
                if group["maximize"]:
                    g = -g
                if decay != 0:
                    g = g + p._a * t(decay)
                if momentum != 0:
                    state = self.state[p]
                    buffer = state.get("momentum_buffer")
                    if buffer is None:
                        buffer = state["momentum_buffer"] = wrap(np.array(g)[()], p.dtype)
                    else:
                        _store(buffer, buffer._a * t(momentum) + g * t(1 - group["dampening"]))
                    g = g + buffer._a * t(momentum) if group["nesterov"] else buffer._a
                _descend(p, g, t(lr))
        return loss


class _Scratch(threading.local):
    """One array for each shape and type that steps are computed in: fetching fresh memory costs more than the step."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[Any, Any], Any] = {}


_scratch = _Scratch()
_SCRATCH_LIMIT = 1 << 22


def _descend(p: Tensor, g: Any, lr: Any) -> None:
    """p -= lr * g, in place."""
    a = p._a
    if a.__class__ is not np.ndarray or not p.dtype.plain or g.shape != a.shape or a.size > _SCRATCH_LIMIT:
        _store(p, a - g * lr)
        return
    key = (a.shape, a.dtype)
    scratch = _scratch.arrays.get(key)
    if scratch is None:
        scratch = _scratch.arrays[key] = np.empty_like(a)
    np.multiply(g, lr, out=scratch)
    a -= scratch
    bump(p)


class _AdamLike(Optimizer):
    decoupled = False
    defaults_extra: dict[str, Any] = {}

    def _moments(self, p: Tensor, amsgrad: bool) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        if not state:
            state["step"] = wrap(np.float32(0.0), dtypes.float32)
            state["exp_avg"] = _zeros(p)
            state["exp_avg_sq"] = _zeros(p)
            if amsgrad:
                state["max_exp_avg_sq"] = _zeros(p)
        return state


class Adam(_AdamLike):
    """Steps scaled by running means of the gradient and of its square, both corrected for their start at zero."""

    __module__ = "torch.optim.adam"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check(lr, eps, weight_decay, betas)
        refuse(differentiable=differentiable, capturable=capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            lr, decay = _number(group["lr"]), group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._moments(p, group["amsgrad"])
                t = p.dtype.compute.type
                step_t = state["step"]
                step_t._a = step_t._a + np.float32(1)
                step = float(step_t._a)
                a = p._a
                g = -p._grad._a if group["maximize"] else p._grad._a
                if decay != 0:
                    if group["decoupled_weight_decay"]:
                        a = a * t(1 - lr * decay)
                    else:
                        g = g + a * t(decay)
                m, v = state["exp_avg"], state["exp_avg_sq"]
                _store(m, m._a + (g - m._a) * t(1 - beta1))
                _store(v, v._a * t(beta2) + t(1 - beta2) * g * g)
                size = lr / (1 - beta1**step)
                root = math.sqrt(1 - beta2**step)
                second = v._a
                if group["amsgrad"]:
                    best = state["max_exp_avg_sq"]
                    _store(best, np.maximum(best._a, v._a))
                    second = best._a
                denominator = np.sqrt(second) / t(root) + t(group["eps"])
                _store(p, a + t(-size) * (m._a / denominator))
        return loss


class AdamW(Adam):
    """Adam whose weight decay acts on the parameter, not on the gradient."""

    __module__ = "torch.optim.adamw"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class NAdam(_AdamLike):
    """Adam with Nesterov's momentum."""

    __module__ = "torch.optim.nadam"

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr, eps, weight_decay, betas)
        if not momentum_decay >= 0.0:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        refuse(differentiable=differentiable, capturable=capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            lr, decay = _number(group["lr"]), group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = wrap(np.float32(0.0), dtypes.float32)
                    state["mu_product"] = wrap(np.float32(1.0), dtypes.float32)
                    state["exp_avg"], state["exp_avg_sq"] = _zeros(p), _zeros(p)
                t = p.dtype.compute.type
                state["step"]._a = state["step"]._a + np.float32(1)
                step = float(state["step"]._a)
                a = p._a
                g = -p._grad._a if group["maximize"] else p._grad._a
                if decay != 0:
                    if group["decoupled_weight_decay"]:
                        a = a * t(1 - lr * decay)
                    else:
                        g = g + a * t(decay)
                mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * group["momentum_decay"])))
                mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * group["momentum_decay"])))
                state["mu_product"]._a = np.float32(state["mu_product"]._a * np.float32(mu))
                product = float(state["mu_product"]._a)
                m, v = state["exp_avg"], state["exp_avg_sq"]
                _store(m, m._a + (g - m._a) * t(1 - beta1))
                _store(v, v._a * t(beta2) + t(1 - beta2) * g * g)
                denominator = np.sqrt(v._a / t(1 - beta2**step)) + t(group["eps"])
                a = a + t(-lr * (1.0 - mu) / (1.0 - product)) * (g / denominator)
                _store(p, a + t((-lr * mu_next) / (1.0 - product * mu_next)) * (m._a / denominator))
        return loss


class RAdam(_AdamLike):
    """Adam, its variance rectified in the first steps."""

    __module__ = "torch.optim.radam"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr, eps, weight_decay, betas)
        refuse(differentiable=differentiable, capturable=capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            lr, decay = _number(group["lr"]), group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._moments(p, False)
                t = p.dtype.compute.type
                state["step"]._a = state["step"]._a + np.float32(1)
                step = float(state["step"]._a)
                a = p._a
                g = -p._grad._a if group["maximize"] else p._grad._a
                if decay != 0:
                    if group["decoupled_weight_decay"]:
                        a = a * t(1 - lr * decay)
                    else:
                        g = g + a * t(decay)
                m, v = state["exp_avg"], state["exp_avg_sq"]
                _store(m, m._a + (g - m._a) * t(1 - beta1))
                _store(v, v._a * t(beta2) + t(1 - beta2) * g * g)
                c1, c2 = 1 - beta1**step, 1 - beta2**step
                mean = m._a / t(c1)
                infinity = 2 / (1 - beta2) - 1
                rho = infinity - 2 * step * (beta2**step) / c2
                if rho > 5.0:
                    rectify = ((rho - 4) * (rho - 2) * infinity / ((infinity - 4) * (infinity - 2) * rho)) ** 0.5
                    adaptive = t(c2**0.5) / (np.sqrt(v._a) + t(group["eps"]))
                    _store(p, a - mean * t(lr) * adaptive * t(rectify))
                else:
                    _store(p, a - mean * t(lr))
        return loss


class Adamax(Optimizer):
    """Adam with the infinity norm."""

    __module__ = "torch.optim.adamax"

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check(lr, eps, weight_decay, betas)
        refuse(differentiable=differentiable, capturable=capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            lr, decay = _number(group["lr"]), group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = wrap(np.float32(0.0), dtypes.float32)
                    state["exp_avg"], state["exp_inf"] = _zeros(p), _zeros(p)
                t = p.dtype.compute.type
                state["step"]._a = state["step"]._a + np.float32(1)
                g = -p._grad._a if group["maximize"] else p._grad._a
                if decay != 0:
                    g = g + p._a * t(decay)
                m, u = state["exp_avg"], state["exp_inf"]
                _store(m, m._a + (g - m._a) * t(1 - beta1))
                _store(u, np.maximum(u._a * t(beta2), np.abs(g) + t(group["eps"])))
                _store(p, p._a + t(-lr / (1 - beta1 ** float(state["step"]._a))) * (m._a / u._a))
        return loss


class RMSprop(Optimizer):
    """Steps divided by a running root mean square of the gradient."""

    __module__ = "torch.optim.rmsprop"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr, eps, weight_decay, None, momentum)
        if not alpha >= 0.0:
            raise ValueError(f"Invalid alpha value: {alpha}")
        refuse(differentiable=differentiable, capturable=capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            alpha, lr = group["alpha"], _number(group["lr"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = wrap(np.float32(0.0), dtypes.float32)
                    state["square_avg"] = _zeros(p)
                    if group["momentum"] > 0:
                        state["momentum_buffer"] = _zeros(p)
                    if group["centered"]:
                        state["grad_avg"] = _zeros(p)
                t = p.dtype.compute.type
                state["step"]._a = state["step"]._a + np.float32(1)
                g = -p._grad._a if group["maximize"] else p._grad._a
                if group["weight_decay"] != 0:
                    g = g + p._a * t(group["weight_decay"])
                v = state["square_avg"]
                _store(v, v._a * t(alpha) + t(1 - alpha) * g * g)
                if group["centered"]:
                    mean = state["grad_avg"]
                    _store(mean, mean._a + (g - mean._a) * t(1 - alpha))
                    average = np.sqrt(v._a - mean._a * mean._a) + t(group["eps"])
                else:
                    average = np.sqrt(v._a) + t(group["eps"])
                if group["momentum"] > 0:
                    buffer = state["momentum_buffer"]
                    _store(buffer, buffer._a * t(group["momentum"]) + g / average)
                    _store(p, p._a + t(-lr) * buffer._a)
                else:
                    _store(p, p._a + t(-lr) * (g / average))
        return loss


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients so far."""

    __module__ = "torch.optim.adagrad"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        _check(lr, eps, weight_decay)
        if not lr_decay >= 0.0:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        refuse(differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["step"] = wrap(np.float32(0.0), dtypes.float32)
                start = np.full(p._a.shape, initial_accumulator_value, p.dtype.storage)[()]
                self.state[p]["sum"] = wrap(start, p.dtype)

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                t = p.dtype.compute.type
                state["step"]._a = state["step"]._a + np.float32(1)
                g = -p._grad._a if group["maximize"] else p._grad._a
                if group["weight_decay"] != 0:
                    g = g + p._a * t(group["weight_decay"])
                rate = _number(group["lr"]) / (1 + (float(state["step"]._a) - 1) * group["lr_decay"])
                total = state["sum"]
                _store(total, total._a + g * g)
                _store(p, p._a + t(-rate) * (g / (np.sqrt(total._a) + t(group["eps"]))))
        return loss


class Adadelta(Optimizer):
    """Steps in the units of earlier steps."""

    __module__ = "torch.optim.adadelta"

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr, eps, weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        refuse(differentiable=differentiable, capturable=capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def step(self, closure: Any = None) -> Any:
        loss = self._closure(closure)
        for group in self.param_groups:
            rho = group["rho"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = wrap(np.float32(0.0), dtypes.float32)
                    state["square_avg"], state["acc_delta"] = _zeros(p), _zeros(p)
                t = p.dtype.compute.type
                state["step"]._a = state["step"]._a + np.float32(1)
                g = -p._grad._a if group["maximize"] else p._grad._a
                if group["weight_decay"] != 0:
                    g = g + p._a * t(group["weight_decay"])
                v, d = state["square_avg"], state["acc_delta"]
                _store(v, v._a * t(rho) + t(1 - rho) * g * g)
                delta = np.sqrt(d._a + t(group["eps"])) / np.sqrt(v._a + t(group["eps"])) * g
                _store(d, d._a * t(rho) + t(1 - rho) * delta * delta)
                _store(p, p._a + t(-_number(group["lr"])) * delta)
        return loss
