"""Matrix products, convolutions, pooling, and the linear algebra that NumPy has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from whygrad.answers.derive.operations.reductions import softmax
from whygrad.answers.derive.operations.table import Array, UnsupportedError, operation


@operation("matmul", "mm", "bmm", "mv", "__matmul__")
def matmul(a: Array, other: Array) -> Any:
    return np.matmul(a, other)


@operation("dot", "vdot", "inner")
def inner(a: Array, other: Array) -> Any:
    return np.inner(a, other)


@operation("outer", "ger")
def outer(a: Array, other: Array) -> Any:
    return np.outer(a, other)


@operation("einsum")
def einsum(equation: str, *operands: Any) -> Any:
    arrays = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return np.einsum(equation.replace(" ", ""), *arrays)


@operation("tensordot")
def tensordot(a: Array, b: Array, dims: Any = 2) -> Any:
    return np.tensordot(a, b, axes=dims)


@operation("cross", "linalg.cross")
def cross(a: Array, other: Array, dim: int = -1) -> Any:
    return np.cross(a, other, axis=dim)


@operation("addmm", "addmv", "baddbmm")
def add_product(a: Array, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1) -> Any:
    return beta * a + alpha * np.matmul(mat1, mat2)


@operation("linear")
def linear(a: Array, weight: Array, bias: Array | None = None) -> Any:
    """y = x Wᵀ + b"""
    y = np.matmul(a, weight.T)
    return y if bias is None else y + bias


@operation("bilinear")
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Any:
    y = np.einsum("...i,kij,...j->...k", input1, weight, input2)
    return y if bias is None else y + bias


@operation("scaled_dot_product_attention")
def attention(
    query: Array, key: Array, value: Array, attn_mask: Array | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None,
) -> Any:  # fmt: skip
    if dropout_p:
        raise UnsupportedError("its dropout drew random numbers")
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) * (scale or 1 / math.sqrt(query.shape[-1]))
    if is_causal:
        attn_mask = np.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf) if attn_mask.dtype == bool else scores + attn_mask
    return np.matmul(softmax(scores, -1), value)


# --- convolutions and pooling ---------------------------------------------------------------------


def _each(value: Any, dimensions: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * dimensions
    return tuple(value) * dimensions if len(value) == 1 else tuple(value)


def _windows(
    a: Array, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], fill: float
) -> Array:
    """All windows of the last dimensions: (..., out1, out2, ..., kernel1, kernel2, ...)."""
    dimensions = len(kernel)
    leading = a.ndim - dimensions
    a = np.pad(a, [(0, 0)] * leading + [(width, width) for width in padding], constant_values=fill)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(a, extents, axis=tuple(range(leading, a.ndim)))
    steps = [slice(None, None, s) for s in stride]
    inside = [slice(None, None, d) for d in dilation]
    chosen: Array = windows[tuple([slice(None)] * leading + steps + inside)]
    return chosen


def _convolution(
    dimensions: int, a: Array, weight: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    if isinstance(padding, str):
        if padding == "same" and any(k % 2 == 0 for k in weight.shape[2:]):
            raise UnsupportedError("padding='same' with an even kernel")
        spread = _each(dilation, dimensions)
        padding = [0 if padding == "valid" else d * (k - 1) // 2 for k, d in zip(weight.shape[2:], spread, strict=True)]
    batched = a.ndim == dimensions + 2
    windows = _windows(
        a if batched else a[np.newaxis], weight.shape[2:], _each(stride, dimensions), _each(padding, dimensions),
        _each(dilation, dimensions), 0.0,
    )  # fmt: skip
    outputs, inputs = weight.shape[0] // groups, weight.shape[1]
    kernel_axes = list(range(2 + dimensions, 2 + 2 * dimensions))
    parts = []
    for group in range(groups):
        taken = windows[:, group * inputs : (group + 1) * inputs]
        kernel = weight[group * outputs : (group + 1) * outputs]
        part = np.tensordot(taken, kernel, axes=([1, *kernel_axes], list(range(1, 2 + dimensions))))
        parts.append(np.moveaxis(part, -1, 1))
    y = np.concatenate(parts, axis=1)
    if bias is not None:
        y = y + bias.reshape(-1, *(1,) * dimensions)
    return y if batched else y[0]


@operation("conv1d")
def conv1d(
    a: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    return _convolution(1, a, weight, bias, stride, padding, dilation, groups)


@operation("conv2d")
def conv2d(
    a: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    return _convolution(2, a, weight, bias, stride, padding, dilation, groups)


def _pooled(
    dimensions: int, a: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, rounds_up: bool, reduce: Any
) -> Any:
    if rounds_up:
        raise UnsupportedError("ceil_mode=True is not in the table")
    kernel = _each(kernel_size, dimensions)
    windows = _windows(
        a, kernel, _each(stride if stride not in (None, [], ()) else kernel, dimensions), _each(padding, dimensions),
        _each(dilation, dimensions), -np.inf if reduce is np.max else 0.0,
    )  # fmt: skip
    return reduce(windows, axis=tuple(range(-dimensions, 0)))


@operation("max_pool1d")
def max_pool1d(
    a: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    return _pooled(1, a, kernel_size, stride, padding, dilation, ceil_mode, np.max)


@operation("max_pool2d")
def max_pool2d(
    a: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    return _pooled(2, a, kernel_size, stride, padding, dilation, ceil_mode, np.max)


@operation("avg_pool1d")
def avg_pool1d(a: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False) -> Any:
    return _pooled(1, a, kernel_size, stride, padding, 1, ceil_mode, np.mean)


@operation("avg_pool2d")
def avg_pool2d(a: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False) -> Any:
    return _pooled(2, a, kernel_size, stride, padding, 1, ceil_mode, np.mean)


@operation("adaptive_avg_pool1d", "adaptive_avg_pool2d")
def adaptive_average(a: Array, output_size: Any) -> Any:
    dimensions = 2 if not isinstance(output_size, int) or a.ndim > 3 else 1
    sizes = _each(output_size, dimensions)
    leading = a.shape[: a.ndim - dimensions]
    y = np.empty((*leading, *sizes))
    for cell in product(*map(range, sizes)):
        region: tuple[Any, ...] = tuple(
            slice(i * length // size, -(-(i + 1) * length // size))
            for i, size, length in zip(cell, sizes, a.shape[-dimensions:], strict=True)
        )
        at: tuple[Any, ...] = (..., *cell)
        y[at] = a[(..., *region)].mean(axis=tuple(range(-dimensions, 0)))
    return y


# --- linear algebra -------------------------------------------------------------------------------


@operation("inverse", "linalg.inv")
def inverse(a: Array) -> Any:
    return np.linalg.inv(a)


@operation("det", "linalg.det")
def determinant(a: Array) -> Any:
    return np.linalg.det(a)


@operation("logdet")
def log_determinant(a: Array) -> Any:
    return np.log(np.linalg.det(a))


@operation("slogdet", "linalg.slogdet")
def sign_and_log_determinant(a: Array) -> tuple[Any, Any]:
    sign, size = np.linalg.slogdet(a)
    return sign, size


@operation("linalg.solve")
def solve(a: Array, b: Array) -> Any:
    return np.linalg.solve(a, b)


@operation("linalg.cholesky", "cholesky")
def cholesky(a: Array) -> Any:
    return np.linalg.cholesky(a)
