"""What backward rules and operations compute with when numbers are all that matters: functions on NumPy values.

The names are those of `differentiable`, so that a backward rule can be run with either.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes
from .special import digamma, erf, erfc, erfinv, i0, lgamma, polygamma

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # what `ops` adds


sin, cos, tan, sinh, cosh, tanh = np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh
exp, exp2, expm1, log, log2, log10, log1p, sqrt = (
    np.exp,
    np.exp2,
    np.expm1,
    np.log,
    np.log2,
    np.log10,
    np.log1p,
    np.sqrt,
)
floor, ceil, trunc, square = np.floor, np.ceil, np.trunc, np.square
maximum, minimum, isnan, isinf, isfinite, atan2 = np.maximum, np.minimum, np.isnan, np.isinf, np.isfinite, np.arctan2
logical_and, logical_or, logical_not = np.logical_and, np.logical_or, np.logical_not
where, einsum, stack, cat, flip, copysign = np.where, np.einsum, np.stack, np.concatenate, np.flip, np.copysign
abs = np.abs
SPECIAL = (digamma, erf, erfc, erfinv, i0, lgamma, polygamma)
take_along, zeros_like, ones_like = np.take_along_axis, np.zeros_like, np.ones_like
inner_product = np.dot


def sign(x: Any) -> Any:
    """-1, 0 or 1; PyTorch gives 0 for NaN."""
    return np.where(np.isnan(x), x.dtype.type(0), np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def pow(x: Any, y: Any) -> Any:
    if y.__class__ in (int, float):
        if y == 2:
            return x * x
        if y == 3:
            return x * x * x
        if y == 1:
            return x
        if y == 0.5:
            return np.sqrt(x)
        if y == -1:
            return 1 / x
        if y == -2:
            return 1 / (x * x)
    return np.power(x, y)


def sum(x: Any, dims: Any = None, keepdim: bool = False) -> Any:
    return np.add.reduce(x, axis=dims, keepdims=keepdim) if x.ndim else x  # type: ignore[call-overload]


def prod(x: Any, dims: Any = None, keepdim: bool = False) -> Any:
    return np.multiply.reduce(x, axis=dims, keepdims=keepdim) if x.ndim else x  # type: ignore[call-overload]


def cumsum(x: Any, dim: int) -> Any:
    return np.add.accumulate(x, axis=dim) if x.ndim else x


def reversed_cumsum(x: Any, dim: int) -> Any:
    return np.flip(np.add.accumulate(np.flip(x, dim), axis=dim), dim) if x.ndim else x


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `to`."""
    if len(shape) > len(to):
        return False
    return all(s in (1, t) for s, t in zip(reversed(shape), reversed(to), strict=False))


def sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting: add up what was repeated."""
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    axes = (*range(lead), *(i + lead for i, s in enumerate(shape) if s == 1 and x.shape[i + lead] != 1))
    if axes:
        x = np.add.reduce(x, axis=axes, keepdims=True)
    return x.reshape(shape) if lead else x


def expand(x: Any, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, shape) if x.shape != shape else x


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


def unsqueeze(x: Any, dim: int) -> Any:
    return np.expand_dims(x, dim)


def squeeze(x: Any, dim: int) -> Any:
    return np.squeeze(x, dim)


def permute(x: Any, dims: tuple[int, ...]) -> Any:
    return np.transpose(x, dims)


def t(x: Any) -> Any:
    return x.T


def transpose(x: Any, a: int, b: int) -> Any:
    return np.swapaxes(x, a, b) if x.ndim else x


def matmul(x: Any, y: Any) -> Any:
    return np.matmul(x, y)


def cast(x: Any, d: dtypes.dtype) -> Any:
    return dtypes.store(x, d)


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    return np.zeros(shape, like.dtype)


def ones(shape: tuple[int, ...], like: Any) -> Any:
    return np.ones(shape, like.dtype)


def full(shape: tuple[int, ...], value: Any, like: Any) -> Any:
    return np.full(shape, value, like.dtype)


def constant(array: Any, like: Any) -> Any:
    """A constant computed in NumPy, in the type of `like`."""
    return np.asarray(array).astype(like.dtype)


def connect(value: Any, x: Any) -> Any:
    """`value`; its graph also leads to `x`, with a gradient of zero (as PyTorch's formulas for flat activations do)."""
    return value


def detach(x: Any) -> Any:
    return x


def numbers(x: Any) -> Any:
    """The bare array, for what is not differentiated."""
    return x


def gather_flat(x: Any, places: Any) -> Any:
    return np.take(np.ravel(x), places)


def scatter_flat(x: Any, places: Any, shape: tuple[int, ...]) -> Any:
    """Add the elements of `x` at places (counted row by row) of zeros."""
    out = np.zeros(math.prod(shape), x.dtype)
    if not out.size:
        return out.reshape(shape)
    np.add.at(out, places, np.broadcast_to(x, places.shape))
    return out.reshape(shape)


def clear_flat(x: Any, places: Any) -> Any:
    """`x` with zeros at places."""
    out = np.array(x, order="C")
    out.reshape(-1)[places] = 0
    return out


def index(x: Any, key: Any) -> Any:
    return x[key]


def index_add_zeros(g: Any, key: Any, shape: tuple[int, ...], unique: bool = False) -> Any:
    """Zeros of `shape` with `g` added at `key`: what indexing sends back."""
    out = np.zeros(shape, g.dtype)
    if unique:
        out[key] = g
    else:
        np.add.at(out, key, g)
    return out


def gather(x: Any, dim: int, places: Any) -> Any:
    if x.ndim == 0:
        return x.reshape(1)[places.reshape(-1)].reshape(places.shape)
    return x[along(places, dim)]


def along(places: Any, dim: int) -> Any:
    """The key that `gather` and `scatter` read: `places` in `dim`, each position's own index elsewhere."""
    key = list(np.ogrid[tuple(slice(n) for n in places.shape)])
    key[dim] = places
    return tuple(key)


def scatter_add_zeros(g: Any, dim: int, places: Any, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, g.dtype)
    if out.ndim == 0:
        return out + g.sum()
    if not places.size:
        return out
    np.add.at(out, along(places, dim), g[tuple(slice(n) for n in places.shape)])
    return out


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    key = [slice(None)] * x.ndim
    key[dim] = slice(start, start + length)
    return x[tuple(key)]


def pad_zeros(x: Any, pads: Any) -> Any:
    return np.pad(x, pads)


def diagonal(x: Any, offset: int, a: int, b: int) -> Any:
    return np.diagonal(x, offset, a, b)


def heaviside_step(x: Any) -> Any:
    return x > 0


def conj(x: Any) -> Any:
    return np.conj(x)


def mean_scale(x: Any, n: int) -> Any:
    return x / n


def inv(x: Any) -> Any:
    return np.linalg.inv(x)


def solve(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def tril(x: Any, k: int = 0) -> Any:
    return np.tril(x, k)


def triu(x: Any, k: int = 0) -> Any:
    return np.triu(x, k)


def threshold_backward(g: Any, x: Any, threshold: float) -> Any:
    """`g` where `x` is beyond the threshold (or no number)."""
    if g.__class__ is not np.ndarray or g.dtype.kind != "f" or g.itemsize < 4 or not g.flags.c_contiguous:
        return np.where(x <= threshold, g.dtype.type(0), g)[()]
    bits = np.dtype(f"i{g.itemsize}")  # all bits of a number or none: seven times quicker than `where`
    kept = np.less_equal(x, threshold).astype(bits)
    kept -= 1
    kept &= g.view(bits)
    return kept.view(g.dtype)
