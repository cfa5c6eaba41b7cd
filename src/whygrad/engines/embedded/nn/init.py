"""Initialisations, drawing the same numbers as PyTorch's."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import random
from ..differentiable import where, zeros_like
from ..modes import no_grad
from ..tensor import Tensor
from ..views import write
from ..warn import warn


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    if nonlinearity in (
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
    ):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif not isinstance(param, bool) and isinstance(param, (int, float)):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor: Tensor) -> tuple[int, int]:
    shape = tensor._a.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def _fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[0 if mode == "fan_in" else 1]


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    if tensor._a.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    write(tensor, np.eye(*tensor._a.shape))
    return tensor


@no_grad()
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    fan_in, fan_out = _fans(tensor)
    a = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return tensor.uniform_(-a, a, generator=generator)


@no_grad()
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    fan_in, fan_out = _fans(tensor)
    return tensor.normal_(0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator=generator)


@no_grad()
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    if 0 in tensor._a.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return tensor.uniform_(-bound, bound, generator=generator)


@no_grad()
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    if 0 in tensor._a.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    return tensor.normal_(0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    def cdf(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if (mean < a - 2 * std) or (mean > b + 2 * std):
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    if cdf((b - mean) / std) - cdf((a - mean) / std) <= 0.3:
        from ..errors import not_covered

        not_covered("trunc_normal_ with narrow bounds")
    low, high = (tensor.new_tensor(v).item() for v in (a, b))
    result = tensor.normal_(mean, std, generator=generator)
    while True:  # draw again where a number fell outside
        outside = (result < low) | (result > high)
        if not outside.any():
            break
        again = zeros_like(result).normal_(mean, std, generator=generator)
        result = where(outside, again, result)
    return tensor if result is tensor else tensor.copy_(result)


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    if tensor._a.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    rows = tensor._a.shape[0]
    cols = tensor._a.size // rows
    flat = random.normal((rows, cols), tensor.dtype, 0.0, 1.0, generator or random.default_generator)
    if rows < cols:
        flat = flat.T
    q, r = np.linalg.qr(flat)
    q = q * np.sign(np.diag(r))
    write(tensor, (q.T if rows < cols else q).reshape(tensor._a.shape) * tensor.dtype.scalar(gain))
    return tensor


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    from ..errors import not_covered

    not_covered("nn.init.dirac_")


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    from ..errors import not_covered

    not_covered("nn.init.sparse_")
