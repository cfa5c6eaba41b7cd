"""Activations, softmax, dropout: what `torch.nn.functional` does element by element or along one dimension."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes, kernels, random
from ..graph import Node, node_class
from ..modes import modes
from ..tensor import Tensor, wrap, wrap_dim
from ..views import adopt, check_writable
from ..warn import warn
from .define import (
    SavedOutput,
    bare,
    check_tensor,
    differentiable,
    finished,
    not_covered,
    op,
    record,
    register,
    tracking,
)

FUNCTIONAL: dict[str, Any] = {}
"""What `torch.nn.functional` answers to."""


def functional(name: str | None = None) -> Callable[[Any], Any]:
    def publish(function: Any) -> Any:
        FUNCTIONAL[name or function.__name__.rstrip("_")] = function
        return function

    return publish


def shaped(
    name: str,
    node: str,
    kernel: Callable[..., Any],
    rule: Callable[..., Any],
    defaults: dict[str, Any],
    *,
    F: str | None = None,
    save: str = "x",
) -> Any:
    """An activation with parameters: `kernel(a, *parameters)`, `rule(F, g, x, *parameters)`."""
    cls = node_class(node, lambda F, node, g, s, *p: rule(F, g, s, *p), ("self",))

    def compute(x: Tensor, *p: Any) -> Tensor:
        check_tensor(name, x)
        if x.dtype.kind != "f":
            raise RuntimeError(f"\"{name}_cpu\" not implemented for '{x.dtype.legacy}'")
        out = finished(np.asarray(kernel(bare(x), *p), x.dtype.compute)[()], x.dtype)
        if tracking(x):
            record(cls, out, (x,), (x if save == "x" else SavedOutput(out), *p))
        return out

    names = list(defaults)

    def apply(input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        values = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        if len(args) == len(names) + 1:
            inplace = args[-1]
        p = [values[n] for n in names]
        if inplace:
            check_writable(input)
            return adopt(input, compute(input, *p))
        return compute(input, *p)

    apply.__name__ = name
    FUNCTIONAL[name] = apply
    FUNCTIONAL[name + "_"] = lambda input, *a, **k: apply(input, *a, inplace=True, **k)
    setattr(differentiable, F or name, compute)
    return apply


def _elu(a: Any, alpha: float, scale: float = 1.0, neg: float = 1.0) -> Any:
    return np.where(a > 0, a * scale, np.expm1(np.minimum(a, 0) * neg) * (alpha * scale))


def _elu_rule(F: Any, g: Any, x: Any, alpha: float, scale: float = 1.0, neg: float = 1.0) -> Any:
    return F.where(x > 0, g * scale, g * (neg * alpha * scale) * F.exp(F.where(x > 0, 0.0, x) * neg))


_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
SQRT_HALF = math.sqrt(0.5)
_BETA = math.sqrt(2) * (2 / math.sqrt(math.pi)) * 0.5


def _gelu(a: Any, approximate: str) -> Any:
    if approximate == "none":
        return a * 0.5 * (1 + kernels.erf(a * a.dtype.type(SQRT_HALF)))  # type: ignore[attr-defined]
    if approximate == "tanh":
        return 0.5 * a * (1 + np.tanh(_BETA * (a + 0.044715 * a * a * a)))
    raise RuntimeError("approximate argument must be either none or tanh.")


def _gelu_rule(F: Any, g: Any, x: Any, approximate: str) -> Any:
    if approximate == "none":
        cdf = 0.5 * (1 + F.erf(x * SQRT_HALF))
        pdf = F.exp(x * x * -0.5) * (SQRT_HALF / math.sqrt(math.pi))
        return g * (cdf + x * pdf)
    t = F.tanh(_BETA * (x + 0.044715 * (x * x * x)))
    slope = _BETA * (1 + 3 * 0.044715 * (x * x))
    return g * (0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * slope))


def _silu_rule(F: Any, g: Any, x: Any) -> Any:
    s = F.sigmoid(x)
    return g * (s * (1 + x * (1 - s)))


def _mish(a: Any) -> Any:
    return a * np.tanh(np.log1p(np.exp(a)))


def _mish_rule(F: Any, g: Any, x: Any) -> Any:
    s = F.sigmoid(x)
    t = F.tanh(F.log1p(F.exp(x)))
    return g * (t + x * s * (1 - t * t))


def _softplus(a: Any, beta: float, threshold: float) -> Any:
    return np.where(a * beta > threshold, a, np.log1p(np.exp(a * beta)) / beta)


def _softplus_rule(F: Any, g: Any, x: Any, beta: float, threshold: float) -> Any:
    z = F.exp(F.where(x * beta > threshold, 0.0, x * beta))
    return F.where(x * beta > threshold, g, g * z / (z + 1))


def _log_sigmoid_rule(F: Any, g: Any, x: Any) -> Any:
    return g * F.sigmoid(-x)


def _log_sigmoid(a: Any) -> Any:
    return np.minimum(a, 0) - np.log1p(np.exp(-np.abs(a)))


kernels.sigmoid = lambda x: 1 / (1 + np.exp(-x))

shaped(
    "leaky_relu",
    "LeakyReluBackward0",
    lambda a, s: np.where(a > 0, a, a * s),
    lambda F, g, x, s: F.connect(F.where(x > 0, g, g * s), x),
    {"negative_slope": 0.01},
)
shaped("elu", "EluBackward0", _elu, _elu_rule, {"alpha": 1.0})
shaped(
    "selu", "EluBackward0", lambda a: _elu(a, _ALPHA, _SCALE), lambda F, g, x: _elu_rule(F, g, x, _ALPHA, _SCALE), {}
)
shaped(
    "celu",
    "CeluBackward0",
    lambda a, alpha: _elu(a, alpha, 1.0, 1 / alpha),
    lambda F, g, x, alpha: _elu_rule(F, g, x, alpha, 1.0, 1 / alpha),
    {"alpha": 1.0},
)
shaped("gelu", "GeluBackward0", _gelu, _gelu_rule, {"approximate": "none"})
shaped("silu", "SiluBackward0", lambda a: a / (1 + np.exp(-a)), _silu_rule, {})
shaped("mish", "MishBackward0", _mish, _mish_rule, {})
shaped("softplus", "SoftplusBackward0", _softplus, _softplus_rule, {"beta": 1, "threshold": 20})
shaped(
    "hardtanh",
    "HardtanhBackward0",
    lambda a, lo, hi: np.clip(a, lo, hi),
    lambda F, g, x, lo, hi: F.connect(F.where((x <= lo) | (x >= hi), 0.0, g), x),
    {"min_val": -1.0, "max_val": 1.0},
)
shaped(
    "relu6",
    "HardtanhBackward0",
    lambda a: np.clip(a, 0, 6),
    lambda F, g, x: F.connect(F.where((x <= 0) | (x >= 6), 0.0, g), x),
    {},
)
shaped(
    "hardsigmoid",
    "HardsigmoidBackward0",
    lambda a: np.clip(a + 3, 0, 6) / 6,
    lambda F, g, x: F.connect(F.where((x > -3) & (x < 3), g / 6, 0.0), x),
    {},
)
shaped(
    "hardswish",
    "HardswishBackward0",
    lambda a: a * np.clip(a + 3, 0, 6) / 6,
    lambda F, g, x: F.where(x <= -3, 0.0, F.where(x < 3, g * (x / 3 + 0.5), g)),
    {},
)
shaped(
    "softshrink",
    "SoftshrinkBackward0",
    lambda a, l: np.where(a > l, a - l, np.where(a < -l, a + l, a * 0)),
    lambda F, g, x, l: F.connect(F.where((x >= -l) & (x <= l), 0.0, g), x),
    {"lambd": 0.5},
)
shaped(
    "hardshrink",
    "HardshrinkBackward0",
    lambda a, l: np.where((a >= -l) & (a <= l), a.dtype.type(0), a),
    lambda F, g, x, l: F.connect(F.where((x >= -l) & (x <= l), 0.0, g), x),
    {"lambd": 0.5},
)
shaped("logsigmoid", "LogSigmoidBackward0", _log_sigmoid, _log_sigmoid_rule, {})
shaped(
    "threshold",
    "ThresholdBackward0",
    lambda a, t, v: np.where(a <= t, a.dtype.type(v), a),
    lambda F, g, x, t, v: F.threshold_backward(g, x, t),
    {"threshold": 0.0, "value": 0.0},
)


@functional()
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return input.relu_() if inplace else differentiable.relu(input)


FUNCTIONAL["relu_"] = lambda input: input.relu_()
FUNCTIONAL["sigmoid"] = lambda input: input.sigmoid()
FUNCTIONAL["tanh"] = lambda input: input.tanh()
FUNCTIONAL["softsign"] = lambda input: input / (input.abs() + 1)
FUNCTIONAL["tanhshrink"] = lambda input: input - input.tanh()


def _prelu_rule(F: Any, node: Node, g: Any, x: Any, w: Any) -> Any:
    return (
        None if node.edges[0] is None else F.where(x > 0, g, w * g),
        None if node.edges[1] is None else F.where(x > 0, 0.0, x * g),
    )


PreluKernelBackward0 = node_class("PreluKernelBackward0", _prelu_rule, ("self", "weight"))


@functional()
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    n = weight._a.size
    if n != 1:
        channels = input._a.shape[1] if input._a.ndim > 1 else 1
        if channels != n:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {n} and channel "
                "size = "
                f"{channels}."
            )
    w = (
        weight
        if n == 1 and weight._a.ndim == 0
        else weight.view(
            [n if i == 1 or (n == 1 and i == 0) else 1 for i in range(input._a.ndim)] if input._a.ndim else ()
        )
        if input._a.ndim > 1 or n != 1
        else weight
    )
    if not input._a.ndim and w._a.ndim:
        w = w.reshape(())
    out = finished(np.where(input._a > 0, input._a, w._a * input._a), input.dtype)
    if tracking(input, w):
        record(PreluKernelBackward0, out, (input, w), (input, w))
    return out


register("prelu", prelu)


def _glu_rule(F: Any, node: Node, g: Any, x: Any, dim: int) -> Any:
    half = x.shape[dim] // 2
    a, b = F.narrow(x, dim, 0, half), F.narrow(x, dim, half, half)
    s = F.sigmoid(b)
    return F.cat([g * s, g * a * ((1 - s) * s)], dim)


GluBackward0 = node_class("GluBackward0", _glu_rule, ("self",))


@functional()
def glu(input: Tensor, dim: int = -1) -> Tensor:
    if input._a.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    d = wrap_dim(dim, input._a.ndim)
    n = input._a.shape[d]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {d} is size {n}")
    a, b = np.split(bare(input), 2, d)
    out = finished(a * kernels.sigmoid(b), input.dtype)
    if tracking(input):
        record(GluBackward0, out, (input,), (input, d))
    return out


# --- softmax -----------------------------------------------------------------------------------------------------


def _softmax_rule(F: Any, node: Node, g: Any, r: Any, dim: int) -> Any:
    """J^T g = (g - sum(g r)) r."""
    if not r.shape:
        return F.zeros_like(g)
    return (g - F.sum(g * r, (dim,), True)) * r


def _log_softmax_rule(F: Any, node: Node, g: Any, r: Any, dim: int) -> Any:
    """J^T g = g - softmax sum(g)."""
    if not r.shape:
        return F.zeros_like(g)
    return g - F.exp(r) * F.sum(g, (dim,), True)


SoftmaxBackward0 = node_class("SoftmaxBackward0", _softmax_rule, ("result",))
LogSoftmaxBackward0 = node_class("LogSoftmaxBackward0", _log_softmax_rule, ("result",))


def _along(name: str, cls: type[Node], log: bool) -> Any:
    def apply(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
        check_tensor(name, input)
        x = input if dtype is None else differentiable.cast(input, dtype)
        if x.dtype.kind != "f":
            raise RuntimeError(
                f'"{"log_softmax_lastdim_kernel_impl" if log else "softmax_lastdim_kernel_impl"}" not '
                f"implemented for '{x.dtype.legacy}'"
            )
        a = bare(x)
        d = wrap_dim(dim, a.ndim)
        if not a.ndim:
            r = a * 0 if log else a * 0 + 1
        elif not a.size:
            r = a.copy()
        else:
            shifted = a - np.max(a, axis=d, keepdims=True)
            e = np.exp(shifted)
            total = np.add.reduce(e, axis=d, keepdims=True)
            r = shifted - np.log(total) if log else e / total
        out = finished(r, x.dtype)
        if tracking(x):
            record(cls, out, (x,), (SavedOutput(out), d))
        return out

    apply.__name__ = name
    register(name, apply, F=name)
    return apply


softmax_ = _along("softmax", SoftmaxBackward0, False)
log_softmax_ = _along("log_softmax", LogSoftmaxBackward0, True)


def _implicit_dim(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


@functional()
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    return softmax_(input, _implicit_dim("softmax", input._a.ndim) if dim is None else dim, dtype)


@functional()
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    return log_softmax_(input, _implicit_dim("log_softmax", input._a.ndim) if dim is None else dim, dtype)


@functional()
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    return softmax_(-input, _implicit_dim("softmin", input._a.ndim) if dim is None else dim, dtype)


@functional()
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Tensor:
    if out is not None:
        not_covered("out= of normalize")
    size = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / size


@functional()
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    not_covered("gumbel_softmax")


# --- dropout -----------------------------------------------------------------------------------------------------


def _check_p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _drop(input: Tensor, p: float, training: bool, inplace: bool, shape: Any = None) -> Tensor:
    """Zero with probability p and scale the rest by 1/(1-p), drawing the mask as PyTorch does."""
    if p == 0 or not training or input._a.size == 0:
        return input
    if p == 1:
        mask = wrap(np.zeros((), input.dtype.storage)[()], input.dtype)
        return input.mul_(mask) if inplace else input * mask
    keep = random.bernoulli(input._a.shape if shape is None else shape, 1 - p, random.default_generator)
    noise = wrap(
        dtypes.store(np.asarray(keep.astype(input.dtype.compute) / input.dtype.compute.type(1 - p))[()], input.dtype),
        input.dtype,
    )
    return input.mul_(noise) if inplace else input * noise


@functional()
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_p(p)
    return _drop(input, p, training, inplace)


def _torch_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return dropout(input, p, train)


register("dropout", _torch_dropout, method=False)


def _feature(name: str, ndims: tuple[int, ...], unbatched: int) -> None:
    def apply(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        _check_p(p)
        x = input
        batched = x._a.ndim == unbatched + 1
        if x._a.ndim not in ndims:
            not_covered(f"{name} of a {x._a.ndim}-D tensor")
        if name == "dropout2d" and x._a.ndim == 3:
            batched = True
            warn(
                "dropout2d: Received a 3-D input to dropout2d and assuming that channel-wise 1-D dropout "
                "behavior is desired - "
                "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
                "in a future "
                "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
                "maintain the 1-D "
                "channel-wise dropout behavior, please switch to using dropout1d instead."
            )
        if not batched and x._a.ndim == unbatched:
            x = x.unsqueeze_(0) if inplace else x.unsqueeze(0)
        shape = (*x._a.shape[:2], *(1,) * (x._a.ndim - 2))
        out = _drop(x, p, training, inplace, shape)
        return out if batched or input._a.ndim != unbatched else out.squeeze(0)

    FUNCTIONAL[name] = apply


_feature("dropout1d", (2, 3), 2)
_feature("dropout2d", (3, 4), 3)
_feature("dropout3d", (4, 5), 4)


@functional()
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_p(p)
    if not training or p == 0:
        return input
    not_covered("alpha_dropout in training")


# --- a few more pairs of tensors ----------------------------------------------------------------------------------


def _pair(name: str, node: str, kernel: Any, rule: Any) -> None:
    cls = node_class(node, rule, ("self", "other"))

    def apply(input: Any, other: Any) -> Tensor:
        from .arithmetic import compute
        from .promote import result_type

        d = result_type(input, other)
        if d.kind in "ib":
            d = dtypes.Defaults.floating
        out = compute(kernel, input, other, d)
        tensors = tuple(v if isinstance(v, Tensor) else None for v in (input, other))
        if tracking(*tensors):
            record(cls, out, tensors, (input, other))
        return out

    apply.__name__ = name
    register(name, apply)


def _both(first: Any, second: Any) -> Any:
    def rule(F: Any, node: Node, g: Any, x: Any, y: Any) -> Any:
        return (
            None if node.edges[0] is None else first(F, g, x, y),
            None if node.edges[1] is None else second(F, g, x, y),
        )

    return rule


_pair(
    "atan2",
    "Atan2Backward0",
    np.arctan2,
    _both(lambda F, g, x, y: g * (y / (x * x + y * y)), lambda F, g, x, y: g * (-x / (x * x + y * y))),
)
register("arctan2", lambda input, other: input.atan2(other))
_pair(
    "hypot",
    "HypotBackward0",
    np.hypot,
    _both(lambda F, g, x, y: g * (x / F.sqrt(x * x + y * y)), lambda F, g, x, y: g * (y / F.sqrt(x * x + y * y))),
)
_pair(
    "logaddexp",
    "LogaddexpBackward0",
    np.logaddexp,
    _both(lambda F, g, x, y: g / (1 + F.exp(y - x)), lambda F, g, x, y: g / (1 + F.exp(x - y))),
)
_pair(
    "logaddexp2",
    "Logaddexp2Backward0",
    np.logaddexp2,
    _both(
        lambda F, g, x, y: g / (1 + F.exp((y - x) * math.log(2))),
        lambda F, g, x, y: g / (1 + F.exp((x - y) * math.log(2))),
    ),
)


def _xlogy(x: Any, y: Any) -> Any:
    return np.where(np.isnan(y), y, np.where(x == 0, x.dtype.type(0), x * np.log(y))).astype(x.dtype)


_pair(
    "xlogy",
    "XlogyBackward0",
    _xlogy,
    _both(
        lambda F, g, x, y: F.where(
            (x == 0) & (y <= 0),
            0.0,
            g * F.log(F.where((x == 0) & (y <= 0), 1.0, y) if isinstance(y, (Tensor, np.ndarray, np.generic)) else y),  # type: ignore[operator]
        ),
        lambda F, g, x, y: g * x / y,
    ),
)


def _lerp_rule(F: Any, node: Node, g: Any, a: Any, b: Any, w: Any) -> Any:
    e = node.edges
    out = (None if e[0] is None else g * (1 - w), None if e[1] is None else g * w)
    return out if len(e) == 2 else (*out, None if e[2] is None else g * (b - a))


LerpBackward0 = node_class("LerpBackward0", _lerp_rule)
LerpBackward1 = node_class("LerpBackward1", _lerp_rule)


@op("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight (end - input), from the nearer end."""
    if input.dtype is not end.dtype:
        raise RuntimeError(
            f"expected dtype {input.dtype.legacy.lower()} for `end` but got dtype {end.dtype.legacy.lower()}"
        )
    a, b = bare(input), bare(end)
    w = bare(weight) if isinstance(weight, Tensor) else a.dtype.type(weight)
    out = finished(np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)).astype(a.dtype)[()], input.dtype)
    if isinstance(weight, Tensor):
        if tracking(input, end, weight):
            record(LerpBackward1, out, (input, end, weight), (input, end, weight))
    elif tracking(input, end):
        record(LerpBackward0, out, (input, end), (None, None, weight))
    return out


from .define import in_place  # noqa: E402

in_place("lerp", lerp)
FUNCTIONAL["one_hot"] = lambda tensor, num_classes=-1: _one_hot(tensor, num_classes)


def _one_hot(tensor: Tensor, num_classes: int) -> Tensor:
    if tensor.dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    a = np.asarray(tensor._a)
    if a.size and a.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        if not a.size:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(a.max()) + 1
    elif a.size and a.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return wrap((a[..., None] == np.arange(num_classes)).astype(np.int64), dtypes.int64)


__all__ = ["FUNCTIONAL", "functional", "modes"]
