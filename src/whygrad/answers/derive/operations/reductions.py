"""Operations that take many elements together: sums, norms, extremes, softmax."""

# The parameters are PyTorch's, whether they change the value or not.
# ruff: noqa: ARG001

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whygrad.answers.derive.operations.table import Array, Dims, UnsupportedError, axes, operation


@operation("sum")
def total(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.sum(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("builtin sum")
def total_of_items(items: Any, start: Any = 0) -> Any:
    """Python's own `sum`, over a list of tensors or over the first dimension of one."""
    return sum(items, start)


@operation("nansum")
def total_without_nan(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.nansum(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("mean")
def mean(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.mean(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("nanmean")
def mean_without_nan(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.nanmean(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("prod")
def product(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.prod(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("var")
def variance(
    a: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    freedom = correction if correction is not None else int(unbiased)
    axis = axes(dim, a.ndim)
    centred = a - np.mean(a, axis=axis, keepdims=True)
    count = a.size if axis is None else math.prod(a.shape[d] for d in axis)
    return np.sum(centred**2, axis=axis, keepdims=keepdim) / (count - freedom)


@operation("std")
def deviation(
    a: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> Any:
    return np.sqrt(variance(a, dim, unbiased, keepdim, correction=correction))


@operation("var_mean")
def variance_and_mean(a: Array, dim: Any = None, keepdim: bool = False, **named: Any) -> tuple[Any, Any]:
    average = mean(a, None if isinstance(dim, bool) else dim, keepdim)
    return variance(a, dim, keepdim=keepdim, **named), average


@operation("std_mean")
def deviation_and_mean(a: Array, dim: Any = None, keepdim: bool = False, **named: Any) -> tuple[Any, Any]:
    average = mean(a, None if isinstance(dim, bool) else dim, keepdim)
    return deviation(a, dim, keepdim=keepdim, **named), average


@operation("norm")
def norm(a: Array, p: Any = 2, dim: Dims = None, keepdim: bool = False) -> Any:
    """The p-norm of all elements, or along dimensions."""
    order = {"fro": 2.0, None: 2.0, "inf": math.inf, "-inf": -math.inf}.get(p, p)
    if not isinstance(order, int | float):
        raise UnsupportedError(f"p={p!r}")
    axis = axes(dim, a.ndim)
    size = np.abs(a)
    if order == math.inf:
        return np.max(size, axis=axis, keepdims=keepdim)
    if order == -math.inf:
        return np.min(size, axis=axis, keepdims=keepdim)
    if order == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdim) * 1.0
    if order == 2:
        return np.sqrt(np.sum(a * a, axis=axis, keepdims=keepdim))
    return np.sum(size**order, axis=axis, keepdims=keepdim) ** (1.0 / order)


@operation("linalg.vector_norm")
def vector_norm(a: Array, ord: Any = 2, dim: Dims = None, keepdim: bool = False) -> Any:  # noqa: A002
    return norm(a, ord, dim, keepdim)


@operation("linalg.norm")
def linalg_norm(a: Array, ord: Any = None, dim: Dims = None, keepdim: bool = False) -> Any:  # noqa: A002
    if ord not in (None, "fro", 2) or (ord == 2 and a.ndim != 1 and not isinstance(dim, int)):
        raise UnsupportedError(f"ord={ord!r}")
    return norm(a, 2, dim, keepdim)


@operation("dist")
def distance(a: Array, other: Array, p: float = 2) -> Any:
    return norm(a - other, p)


@operation("pairwise_distance")
def pairwise_distance(x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return norm(x1 - x2 + eps, p, -1, keepdim)


@operation("cosine_similarity")
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Any:
    lengths = np.maximum(norm(x1, 2, dim), eps) * np.maximum(norm(x2, 2, dim), eps)
    return np.sum(x1 * x2, axis=dim) / lengths


@operation("normalize")
def normalize(a: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return a / np.maximum(norm(a, p, dim, keepdim=True), eps)


# --- extremes -------------------------------------------------------------------------------------


def _extreme(a: Array, dim: Any, keepdim: bool, best: Any, place: Any, pair: Any) -> Any:
    if dim is None:
        return best(a)
    if isinstance(dim, np.ndarray):
        return pair(a, dim)
    if a.ndim == 0:
        return a, np.zeros((), dtype=np.int64)
    values = best(a, axis=dim, keepdims=keepdim)
    return values, place(a, axis=dim, keepdims=keepdim)


@operation("max")
def maximum(a: Array, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Of all elements; with `dim`, values and indices along it; with a second tensor, the larger of each pair."""
    return _extreme(a, dim if other is None else other, keepdim, np.max, np.argmax, np.maximum)


@operation("min")
def minimum(a: Array, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    return _extreme(a, dim if other is None else other, keepdim, np.min, np.argmin, np.minimum)


@operation("amax")
def largest(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.max(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("amin")
def smallest(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.min(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("aminmax")
def smallest_and_largest(a: Array, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    return smallest(a, dim, keepdim), largest(a, dim, keepdim)


@operation("argmax")
def place_of_largest(a: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    return np.argmax(a) if dim is None else np.argmax(a, axis=dim, keepdims=keepdim)


@operation("argmin")
def place_of_smallest(a: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    return np.argmin(a) if dim is None else np.argmin(a, axis=dim, keepdims=keepdim)


@operation("sort")
def ordered(a: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Any, Any]:
    order = np.argsort(-a if descending else a, axis=dim, kind="stable")
    return np.take_along_axis(a, order, axis=dim), order


@operation("topk")
def top(a: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:  # noqa: A002
    values, order = ordered(a, dim, descending=largest)
    return np.take(values, range(k), axis=dim), np.take(order, range(k), axis=dim)


# --- along a dimension ----------------------------------------------------------------------------


@operation("cumsum")
def running_total(a: Array, dim: int) -> Any:
    return np.cumsum(a, axis=dim) if a.ndim else a


@operation("cumprod")
def running_product(a: Array, dim: int) -> Any:
    return np.cumprod(a, axis=dim) if a.ndim else a


@operation("logsumexp")
def log_sum_exp(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    axis = axes(dim, a.ndim)
    peak = np.max(a, axis=axis, keepdims=True)
    summed = np.log(np.sum(np.exp(a - peak), axis=axis, keepdims=True)) + peak
    return summed if keepdim else np.squeeze(summed, axis=axis)


@operation("softmax")
def softmax(a: Array, dim: int | None = None, _stacklevel: int = 3) -> Any:
    return np.exp(log_softmax(a, dim))


@operation("log_softmax")
def log_softmax(a: Array, dim: int | None = None, _stacklevel: int = 3) -> Any:
    if dim is None:
        # PyTorch's own choice where none is given (it warns)
        dim = 0 if a.ndim in (0, 1, 3) else 1
    return a - log_sum_exp(a, dim, keepdim=True)


@operation("softmin")
def softmin(a: Array, dim: int | None = None, _stacklevel: int = 3) -> Any:
    return softmax(-a, dim)


@operation("glu")
def gated(a: Array, dim: int = -1) -> Any:
    value, gate = np.split(a, 2, axis=dim)
    return value / (1.0 + np.exp(-gate))


@operation("any")
def whether_any(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.any(a, axis=axes(dim, a.ndim), keepdims=keepdim)


@operation("all")
def whether_all(a: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    return np.all(a, axis=axes(dim, a.ndim), keepdims=keepdim)
