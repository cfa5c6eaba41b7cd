"""Operations that work on each element by itself, operands broadcast against each other."""

# The parameters are PyTorch's, whether they change the value or not.
# ruff: noqa: ARG001

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whygrad.answers.derive.operations.table import TABLE, Array, UnsupportedError, kink, operation

# --- arithmetic -----------------------------------------------------------------------------------


@operation("add", "__add__", "__radd__")
def add(a: Any, other: Any, *, alpha: float = 1) -> Any:
    return a + alpha * other if alpha != 1 else a + other


@operation("sub", "subtract")
def subtract(a: Any, other: Any, *, alpha: float = 1) -> Any:
    return a - alpha * other if alpha != 1 else a - other


@operation("rsub")
def subtract_from(a: Any, other: Any, *, alpha: float = 1) -> Any:
    return other - alpha * a


@operation("mul", "multiply")
def multiply(a: Any, other: Any) -> Any:
    return a * other


@operation("div", "divide", "true_divide", "truediv")
def divide(a: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    match rounding_mode:
        case None:
            return np.true_divide(a, other)
        case "floor":
            return np.floor_divide(a, other)
        case "trunc":
            return np.trunc(np.true_divide(a, other))
    raise UnsupportedError(f"rounding_mode={rounding_mode!r}")


@operation("pow", "float_power")
def power(a: Any, exponent: Any) -> Any:
    return np.power(np.asarray(a, dtype=np.float64) if isinstance(a, int | float) else a, exponent)


@operation("clamp", "clip")
def clamp(a: Array, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    if min is not None:
        a = np.maximum(a, min)
    return np.minimum(a, max) if max is not None else a


@operation("hardtanh")
def hard_tanh(a: Array, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    return np.clip(a, min_val, max_val)


@operation("clamp_min")
def clamp_below(a: Array, min: Any) -> Any:  # noqa: A002
    return np.maximum(a, min)


@operation("clamp_max")
def clamp_above(a: Array, max: Any) -> Any:  # noqa: A002
    return np.minimum(a, max)


@operation("where")
def where(condition: Array, a: Any, other: Any) -> Any:
    return np.where(condition, a, other)


@operation("lerp")
def lerp(a: Array, end: Any, weight: Any) -> Any:
    return a + weight * (end - a)


@operation("addcmul")
def addcmul(a: Array, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return a + value * tensor1 * tensor2


@operation("addcdiv")
def addcdiv(a: Array, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return a + value * tensor1 / tensor2


@operation("xlogy")
def xlogy(a: Any, other: Any) -> Any:
    return np.where(np.asarray(a) == 0, 0.0, a * np.log(np.where(np.asarray(a) == 0, 1.0, other)))


@operation("masked_fill")
def masked_fill(a: Array, mask: Array, value: Any) -> Any:
    return np.where(mask, value, a)


@operation("fill_", "full_like")
def filled(a: Array, value: Any = None, *, fill_value: Any = None) -> Any:
    return np.full(np.shape(a), fill_value if value is None else value, dtype=np.float64)


@operation("zero_", "zeros_like")
def zeros(a: Array) -> Any:
    return np.zeros(np.shape(a))


@operation("ones_like")
def ones(a: Array) -> Any:
    return np.ones(np.shape(a))


# --- functions of one number ----------------------------------------------------------------------


def error_function(a: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(a)


def sigmoid(a: Any) -> Any:
    return 0.5 * (1.0 + np.tanh(0.5 * a))


operation("sigmoid", "expit")(sigmoid)
operation("erf")(error_function)


@operation("rsqrt")
def inverse_root(a: Array) -> Any:
    return 1.0 / np.sqrt(a)


@operation("frac")
def fraction(a: Array) -> Any:
    return a - np.trunc(a)


@operation("erfc")
def complementary_error_function(a: Array) -> Any:
    return np.vectorize(math.erfc, otypes=[np.float64])(a)


@operation("lgamma", "gammaln")
def log_gamma(a: Array) -> Any:
    return np.vectorize(math.lgamma, otypes=[np.float64])(a)


@operation("logit")
def logit(a: Array, eps: float | None = None) -> Any:
    if eps is not None:
        a = np.clip(a, eps, 1 - eps)
    return np.log(a / (1 - a))


@operation("round")
def rounded(a: Array, *, decimals: int = 0) -> Any:
    return np.round(a, decimals)


# --- activations ----------------------------------------------------------------------------------


@operation("relu")
def relu(a: Array, inplace: bool = False) -> Any:
    return np.maximum(a, 0.0)


@operation("relu6")
def relu6(a: Array, inplace: bool = False) -> Any:
    return np.clip(a, 0.0, 6.0)


@operation("leaky_relu")
def leaky_relu(a: Array, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return np.where(a > 0, a, negative_slope * a)


@operation("prelu")
def prelu(a: Array, weight: Array) -> Any:
    if weight.size > 1:
        weight = weight.reshape((-1,) + (1,) * (a.ndim - 2))
    return np.where(a > 0, a, weight * a)


@operation("elu")
def elu(a: Array, alpha: float = 1.0, inplace: bool = False) -> Any:
    return np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0.0)))


@operation("celu")
def celu(a: Array, alpha: float = 1.0, inplace: bool = False) -> Any:
    return np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0.0) / alpha))


@operation("selu")
def selu(a: Array, inplace: bool = False) -> Any:
    return 1.0507009873554804934193349852946 * elu(a, 1.6732632423543772848170429916717)


@operation("gelu")
def gelu(a: Array, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    return 0.5 * a * (1 + error_function(a / math.sqrt(2)))


@operation("silu")
def silu(a: Array, inplace: bool = False) -> Any:
    return a * sigmoid(a)


@operation("mish")
def mish(a: Array, inplace: bool = False) -> Any:
    return a * np.tanh(np.logaddexp(0.0, a))


@operation("softplus")
def softplus(a: Array, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Linear above the threshold, as PyTorch has it."""
    return np.where(a * beta > threshold, a, np.logaddexp(0.0, a * beta) / beta)


@operation("logsigmoid")
def log_sigmoid(a: Array) -> Any:
    return -np.logaddexp(0.0, -a)


@operation("softsign")
def softsign(a: Array) -> Any:
    return a / (1 + np.abs(a))


@operation("tanhshrink")
def tanhshrink(a: Array) -> Any:
    return a - np.tanh(a)


@operation("hardsigmoid")
def hard_sigmoid(a: Array, inplace: bool = False) -> Any:
    return np.clip(a / 6 + 0.5, 0.0, 1.0)


@operation("hardswish")
def hard_swish(a: Array, inplace: bool = False) -> Any:
    return a * np.clip(a + 3, 0.0, 6.0) / 6


@operation("softshrink")
def softshrink(a: Array, lambd: float = 0.5) -> Any:
    return np.sign(a) * np.maximum(np.abs(a) - lambd, 0.0)


@operation("threshold")
def threshold(a: Array, threshold: float, value: float, inplace: bool = False) -> Any:
    return np.where(a > threshold, a, value)


UFUNCS: dict[str, Any] = {
    "neg": np.negative, "negative": np.negative, "pos": np.positive, "positive": np.positive,
    "abs": np.abs, "absolute": np.abs, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "square": np.square,
    "reciprocal": np.reciprocal, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "arcsin": np.arcsin, "acos": np.arccos, "arccos": np.arccos, "atan": np.arctan, "arctan": np.arctan,
    "atan2": np.arctan2, "arctan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "arcsinh": np.arcsinh, "acosh": np.arccosh, "arccosh": np.arccosh,
    "atanh": np.arctanh, "arctanh": np.arctanh, "sign": np.sign, "sgn": np.sign, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "fix": np.trunc, "sinc": np.sinc, "maximum": np.maximum,
    "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2, "floordiv": np.floor_divide, "floor_divide": np.floor_divide, "mod": np.mod,
    "remainder": np.mod, "fmod": np.fmod, "gt": np.greater, "greater": np.greater, "ge": np.greater_equal,
    "greater_equal": np.greater_equal, "lt": np.less, "less": np.less, "le": np.less_equal,
    "less_equal": np.less_equal, "eq": np.equal, "ne": np.not_equal, "not_equal": np.not_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_not": np.logical_not,
    "logical_xor": np.logical_xor, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "invert": np.invert, "bitwise_not": np.invert, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "deg2rad": np.deg2rad, "rad2deg": np.rad2deg,
}  # fmt: skip
"""NumPy's own functions under PyTorch's names."""

TABLE.update(UFUNCS)


# --- where slopes jump ----------------------------------------------------------------------------


@kink("relu", "abs", "absolute", "leaky_relu", "prelu", "selu", "sqrt")
def meets_zero(a: Array, *_: Any, **__: Any) -> bool:
    return bool(np.any(np.asarray(a) == 0))


@kink("relu6")
def meets_zero_or_six(a: Array, *_: Any, **__: Any) -> bool:
    return bool(np.any((a == 0) | (a == 6)))


@kink("norm", "linalg.norm", "linalg.vector_norm")
def is_all_zero(a: Array, *_: Any, **__: Any) -> bool:
    return not np.any(a)


@kink("maximum", "minimum", "fmax", "fmin", "l1_loss")
def meets_the_other(a: Any, other: Any, *_: Any, **__: Any) -> bool:
    return bool(np.any(np.asarray(a) == np.asarray(other)))


@kink("clamp", "clip", "hardtanh", "clamp_min", "clamp_max")
def meets_a_bound(a: Array, *bounds: Any, **named: Any) -> bool:
    return any(bound is not None and bool(np.any(a == bound)) for bound in (*bounds, *named.values()))


@kink("max", "min", "amax", "amin")
def is_tied(a: Array, *arguments: Any, **named: Any) -> bool:
    """Whether two elements share the largest or smallest value of all: a tie, roughly, along any dimension."""
    if arguments and isinstance(arguments[0], np.ndarray) and arguments[0].dtype.kind == "f":
        return bool(np.any(a == arguments[0]))
    return np.unique(a).size < np.size(a)


@kink("floor", "ceil", "trunc", "round", "frac", "sign", "mod", "remainder", "floordiv", "floor_divide")
def meets_a_step(a: Any, other: Any = 1, *_: Any, **__: Any) -> bool:
    ratio = np.asarray(a) / np.asarray(other)
    return bool(np.any(ratio == np.round(ratio)))
