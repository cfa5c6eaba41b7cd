"""Sums, means, products, extrema, norms: what makes many numbers into few."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import kernels
from ..dtypes import dtype, int64
from ..graph import Node, node_class
from ..tensor import Tensor, wrap_dim
from ..warn import warn
from .define import (
    SavedOutput,
    bare,
    check_tensor,
    differentiable,
    finished,
    op,
    record,
    register,
    tracking,
)


def dims_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front; all of them for None and ()."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int):
        dims = (wrap_dim(dim, ndim),)
    else:
        dims = tuple(wrap_dim(d, ndim) for d in dim)  # type: ignore[assignment]
        if not dims:
            return tuple(range(ndim))
    if len(set(dims)) != len(dims):
        twice = next(d for d in dims if dims.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return dims if ndim else ()


def spread(F: Any, g: Any, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced value back over the dimensions it came from."""
    if not keepdim and len(dims) < len(shape):
        kept = tuple(1 if i in dims else s for i, s in enumerate(shape))
        g = F.reshape(g, kept)
    return F.expand(g, shape)


def reduction_shape(shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    if keepdim:
        return tuple(1 if i in dims else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in dims)


# --- sum and mean ------------------------------------------------------------------------------------------------

SumBackward0 = node_class("SumBackward0", lambda F, node, g, shape: F.expand(g, shape))
SumBackward1 = node_class("SumBackward1", lambda F, node, g, shape, dims, keep: spread(F, g, shape, dims, keep))
MeanBackward0 = node_class(
    "MeanBackward0", lambda F, node, g, shape, n: F.expand(g, shape) / n if n else F.expand(g, shape)
)
MeanBackward1 = node_class(
    "MeanBackward1", lambda F, node, g, shape, dims, keep, n: spread(F, g, shape, dims, keep) / n
)


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    check_tensor("sum", input)
    d = dtype or (int64 if input.dtype.kind in "ib" else input.dtype)
    a = input._a
    if dim is not None and not isinstance(dim, (int, tuple, list)):
        raise TypeError(
            f"sum() received an invalid combination of arguments - got ({type(dim).__name__}), but expected one of:\n"
            " * (*, torch.dtype dtype = None)\n * (tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = "
            "None)\n"
        )
    dims = None if dim is None else dims_of(dim, a.ndim)
    if a.ndim:
        r = np.add.reduce(a, axis=dims, keepdims=keepdim, dtype=d.compute if d.compute is not a.dtype else None)  # type: ignore[call-overload]
    else:
        r = a
    out = finished(r, d)
    if tracking(input):
        if dim is None:
            record(SumBackward0, out, (input,), (a.shape,))
        else:
            record(SumBackward1, out, (input,), (a.shape, dims, keepdim))
    return out


register("sum", sum, F="sum")


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    check_tensor("mean", input)
    d = dtype or input.dtype
    if d.kind in "ib":
        what = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {what} dtype must be either a floating point or complex "
            "dtype. Got: "
            f"{d.legacy}"
        )
    a = input._a
    dims = dims_of(dim, a.ndim)
    n = math.prod([a.shape[i] for i in dims])
    r = np.add.reduce(a, axis=dims, keepdims=keepdim, dtype=d.compute) if a.ndim else a.astype(d.compute)  # type: ignore[call-overload]
    out = finished(r / d.compute.type(n), d)
    if tracking(input):
        if dim is None or (a.ndim == 0):
            record(MeanBackward0, out, (input,), (a.shape, n))
        else:
            record(MeanBackward1, out, (input,), (a.shape, dims, keepdim, n))
    return out


register("mean", mean, F="mean")


def _where_nan(x: Tensor) -> Tensor:
    return differentiable.where(x.isnan(), 0.0, x)


@op("nansum")
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    return sum(_where_nan(input), dim, keepdim, dtype=dtype)


@op("nanmean")
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    return nansum(input, dim, keepdim, dtype=dtype) / sum(~input.isnan(), dim, keepdim)


# --- variance ----------------------------------------------------------------------------------------------------


def _var_rule(F: Any, node: Node, g: Any, x: Any, dims: Any, keep: bool, correction: Any, n: int) -> Any:
    """d var/dx = 2 (x - mean) / (n - correction)."""
    spread_g = spread(F, g, tuple(x.shape), dims, keep)
    left = max(n - correction, 0)
    centred = x - F.sum(x, dims, True) / n if n else x
    return (2.0 / left if left else math.inf) * spread_g * centred


def _std_rule(F: Any, node: Node, g: Any, x: Any, r: Any, dims: Any, keep: bool, correction: Any, n: int) -> Any:
    """Through the variance; 0 where the deviation is 0."""
    return _var_rule(F, node, F.where(r == 0, 0.0, g / (r * 2)), x, dims, keep, correction, n)


VarBackward0 = node_class("VarBackward0", _var_rule, ("self",))
StdBackward0 = node_class("StdBackward0", _std_rule, ("self", "result"))


def _moments(
    name: str,
    input: Tensor,
    dim: Any,
    unbiased: Any,
    keepdim: bool,
    correction: Any,
    root: bool,
) -> Tensor:
    check_tensor(name, input)
    if input.dtype.kind not in "fc":
        raise RuntimeError(f"{name} only supports floating point and complex dtypes")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    a = bare(input)
    dims = dims_of(dim, a.ndim)
    n = math.prod([a.shape[i] for i in dims])
    if n - correction <= 0:
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input "
            "numel divided by output numel)."
        )
    wide = np.asarray(a, np.float64)
    m = np.mean(wide, axis=dims, keepdims=True) if n else np.full_like(np.sum(wide, axis=dims, keepdims=True), np.nan)
    r = np.sum((wide - m) ** 2, axis=dims, keepdims=keepdim) / np.float64(max(n - correction, 0))
    if root:
        r = np.sqrt(r)
    out = finished(np.asarray(r, a.dtype)[()], input.dtype)
    if tracking(input):
        if root:
            record(StdBackward0, out, (input,), (input, SavedOutput(out), dims, keepdim, correction, n))
        else:
            record(VarBackward0, out, (input,), (input, dims, keepdim, correction, n))
    return out


@op("var", F="var")
def var(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    return _moments("var", input, dim, unbiased, keepdim, correction, False)


@op("std", F="std")
def std(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    return _moments("std", input, dim, unbiased, keepdim, correction, True)


@op("var_mean", method=False)
def var_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    m = mean(input, None if isinstance(dim, bool) else dim, keepdim)
    return _moments("var_mean", input, dim, unbiased, keepdim, correction, False), m


@op("std_mean", method=False)
def std_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    m = mean(input, None if isinstance(dim, bool) else dim, keepdim)
    return _moments("std_mean", input, dim, unbiased, keepdim, correction, True), m


# --- products and running sums -----------------------------------------------------------------------------------


def _prod_rule(F: Any, node: Node, g: Any, x: Any, r: Any, dim: Any, keep: bool) -> Any:
    """d prod/dx_i = the product of the others: prod / x_i, and by running products where there are zeros."""
    shape = tuple(x.shape)
    if not shape:
        return g
    if dim is None:
        if not (F.numbers(x) == 0).any():
            return g * r / x
        flat = F.reshape(x, (math.prod(shape),))
        return F.reshape(F.expand(F.reshape(g, (1,)), flat.shape) * _others(F, flat, 0), shape)
    if not keep:
        g, r = F.unsqueeze(g, dim), F.unsqueeze(r, dim)
    if not (F.numbers(x) == 0).any():
        return g * r / x
    return g * _others(F, x, dim)


def _others(F: Any, x: Any, dim: int) -> Any:
    """For each element the product of all others along `dim`."""
    n = x.shape[dim]
    one = F.ones((*x.shape[:dim], 1, *x.shape[dim + 1 :]), x)
    before = F.cumprod(F.cat([one, F.narrow(x, dim, 0, n - 1)], dim), dim)
    after = F.flip(F.cumprod(F.flip(F.cat([F.narrow(x, dim, 1, n - 1), one], dim), (dim,)), dim), (dim,))
    return before * after


kernels.cumprod = lambda x, dim: np.multiply.accumulate(x, axis=dim)
ProdBackward0 = node_class("ProdBackward0", _prod_rule, ("self", "result"))
ProdBackward1 = node_class("ProdBackward1", _prod_rule, ("self", "result"))


@op("prod", F="prod")
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    check_tensor("prod", input)
    d = dtype or (int64 if input.dtype.kind in "ib" else input.dtype)
    a = input._a
    where = None if dim is None else wrap_dim(dim, a.ndim)
    r = np.multiply.reduce(a, axis=where, keepdims=keepdim, dtype=d.compute) if a.ndim else a  # type: ignore[call-overload]
    out = finished(r, d)
    if tracking(input):
        record(
            ProdBackward0 if dim is None else ProdBackward1, out, (input,), (input, SavedOutput(out), where, keepdim)
        )
    return out


CumsumBackward0 = node_class("CumsumBackward0", lambda F, node, g, dim: F.reversed_cumsum(g, dim))


@op("cumsum", F="cumsum")
def cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    check_tensor("cumsum", input)
    d = dtype or (int64 if input.dtype.kind in "ib" else input.dtype)
    where = wrap_dim(dim, input._a.ndim)
    a = input._a.astype(d.compute, copy=False)
    out = finished(np.add.accumulate(a, axis=where) if a.ndim else a, d)
    if tracking(input):
        record(CumsumBackward0, out, (input,), (where,))
    return out


def _reversed_cumsum(x: Tensor, dim: int) -> Tensor:
    return x.flip(dim).cumsum(dim).flip(dim) if x._a.ndim else x


differentiable.reversed_cumsum = _reversed_cumsum


def _cumprod_rule(F: Any, node: Node, g: Any, x: Any, r: Any, dim: int) -> Any:
    """Without zeros: reversed running sum of g*r, divided by x; else term by term."""
    if not x.shape or x.shape[dim] == 1:
        return g
    if not (F.numbers(x) == 0).any():
        return F.reversed_cumsum(r * g, dim) / x
    n = x.shape[dim]
    parts = []
    for k in range(n):
        before = F.prod(F.narrow(x, dim, 0, k), dim, True) if k else F.ones((*x.shape[:dim], 1, *x.shape[dim + 1 :]), x)
        rest = F.narrow(x, dim, k + 1, n - k - 1)
        one = F.ones((*x.shape[:dim], 1, *x.shape[dim + 1 :]), x)
        without = before * F.cumprod(F.cat([one, rest], dim), dim)
        parts.append(F.sum(F.narrow(g, dim, k, n - k) * without, (dim,), True))
    return F.cat(parts, dim)


CumprodBackward0 = node_class("CumprodBackward0", _cumprod_rule, ("self", "result"))


@op("cumprod", F="cumprod")
def cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    check_tensor("cumprod", input)
    d = dtype or (int64 if input.dtype.kind in "ib" else input.dtype)
    where = wrap_dim(dim, input._a.ndim)
    a = input._a.astype(d.compute, copy=False)
    out = finished(np.multiply.accumulate(a, axis=where) if a.ndim else a, d)
    if tracking(input):
        record(CumprodBackward0, out, (input,), (input, SavedOutput(out), where))
    return out
