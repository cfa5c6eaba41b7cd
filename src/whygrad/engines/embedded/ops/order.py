"""Sorting and ranking: sort, topk, median, mode, running extrema, unique, bincount, searchsorted."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import bool_, int64
from ..graph import Node, node_class
from ..tensor import Tensor, wrap_dim
from .define import finished, not_covered, op, record, record_several, register, tracking, wrap
from .extrema import RESULT, _selected_rule


def _sort_key(a: Any, descending: bool) -> Any:
    """Places that sort an array; NaN counts as the largest."""
    if descending:
        flipped = np.flip(a, -1)
        order = np.argsort(flipped, axis=-1, kind="stable")
        return np.flip(a.shape[-1] - 1 - order, -1)
    return np.argsort(a, axis=-1, kind="stable")


SortBackward0 = node_class("SortBackward0", _selected_rule)
TopkBackward0 = node_class("TopkBackward0", _selected_rule)
KthvalueBackward0 = node_class("KthvalueBackward0", _selected_rule)
MedianBackward1 = node_class("MedianBackward1", _selected_rule)
ModeBackward0 = node_class("ModeBackward0", _selected_rule)
CummaxBackward0 = node_class("CummaxBackward0", _selected_rule)
CumminBackward0 = node_class("CumminBackward0", _selected_rule)


def _selection(name: str, cls: type[Node], x: Tensor, values: Any, indices: Any, d: int, keep: bool) -> Any:
    outs = (
        finished(np.ascontiguousarray(values) if values.ndim else values[()], x.dtype),
        finished(np.ascontiguousarray(indices).astype(np.int64) if np.ndim(indices) else np.int64(indices), int64),
    )
    if tracking(x):
        record_several(cls, outs, (x,), (indices, x._a.shape, d, keep), holds=True)
    return RESULT[name](*outs)


@op("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    a = input._a
    d = wrap_dim(dim, a.ndim)
    if not a.ndim:
        return _selection("sort", SortBackward0, input, np.asarray(a), np.int64(0), 0, True)
    indices = np.moveaxis(_sort_key(np.moveaxis(a, d, -1), descending), -1, d)
    return _selection("sort", SortBackward0, input, np.take_along_axis(a, indices, d), indices, d, True)


register("msort", lambda input: sort(input, 0)[0])


@op("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    return sort(input, dim, descending)[1]


@op("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    a = input._a
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d] if a.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError("selected index k out of range")
    if not a.ndim:
        return _selection("topk", TopkBackward0, input, np.asarray(a), np.int64(0), 0, True)
    moved = np.moveaxis(a, d, -1)
    indices = np.moveaxis(_sort_key(moved, largest)[..., :k], -1, d)
    return _selection("topk", TopkBackward0, input, np.take_along_axis(a, indices, d), indices, d, True)


def _one_place(name: str, cls: type[Node], x: Tensor, rank: Any, d: int, keepdim: bool) -> Any:
    a = x._a
    if not a.ndim:
        return _selection(name, cls, x, np.asarray(a), np.int64(0), 0, True)
    order = np.argsort(np.moveaxis(a, d, -1), axis=-1, kind="stable")
    indices = np.moveaxis(np.take_along_axis(order, rank[..., None], -1), -1, d)
    values = np.take_along_axis(a, indices, d)
    if not keepdim:
        values, indices = values.squeeze(d), indices.squeeze(d)
    return _selection(name, cls, x, values, indices, d, keepdim)


@op("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    a = input._a
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d] if a.ndim else 1
    if not 1 <= k <= n:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(d))
    rest = np.moveaxis(np.atleast_1d(a), d, -1).shape[:-1]
    return _one_place("kthvalue", KthvalueBackward0, input, np.full(rest, k - 1), d, keepdim)


@op("median")
def median(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower median; NaN if there is one."""
    a = np.atleast_1d(input._a)
    if dim is None:
        flat = np.ravel(a)
        if not flat.size:
            return finished(input.dtype.scalar(np.nan), input.dtype)
        nans = np.isnan(flat) if flat.dtype.kind == "f" else np.zeros(flat.shape, bool)
        place = int(np.argmax(nans)) if nans.any() else int(np.argsort(flat, kind="stable")[(flat.size - 1) // 2])
        out = finished(flat[place], input.dtype)
        if tracking(input):
            from .define import SavedOutput
            from .extrema import _evenly_rule

            record(node_class("MedianBackward0", _evenly_rule), out, (input,), (input, SavedOutput(out)))
        return out
    d = wrap_dim(dim, input._a.ndim)
    moved = np.moveaxis(a, d, -1)
    n = moved.shape[-1]
    rank = np.full(moved.shape[:-1], (n - 1) // 2)
    if a.dtype.kind == "f":
        has = np.isnan(moved).any(-1)
        rank = np.where(has, n - np.isnan(moved).sum(-1), rank)
    return _one_place("median", MedianBackward1, input, rank, d, keepdim)


@op("mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    a = np.atleast_1d(input._a)
    d = wrap_dim(dim, input._a.ndim)
    moved = np.moveaxis(a, d, -1)
    indices = np.zeros(moved.shape[:-1], np.int64)
    for at in np.ndindex(*moved.shape[:-1]):
        values, counts = np.unique(moved[at], return_counts=True)
        indices[at] = np.nonzero(moved[at] == values[np.argmax(counts)])[0][-1]
    full = np.expand_dims(indices, d)
    values = np.take_along_axis(a, full, d)
    if not input._a.ndim:
        return _selection("mode", ModeBackward0, input, np.asarray(input._a), np.int64(0), 0, True)
    if keepdim:
        return _selection("mode", ModeBackward0, input, values, full, d, True)
    return _selection("mode", ModeBackward0, input, values.squeeze(d), indices, d, False)


def _running(name: str, cls: type[Node], better: Any) -> None:
    def apply(input: Tensor, dim: int) -> Any:
        a = input._a
        d = wrap_dim(dim, a.ndim)
        if not a.ndim:
            return _selection(name, cls, input, np.asarray(a), np.int64(0), 0, True)
        moved = np.moveaxis(a, d, 0)
        indices = np.zeros(moved.shape, np.int64)
        values = moved.copy()
        for i in range(1, moved.shape[0]):
            take = better(moved[i], values[i - 1]) | np.isnan(moved[i])
            values[i] = np.where(take, moved[i], values[i - 1])
            indices[i] = np.where(take, i, indices[i - 1])
        return _selection(name, cls, input, np.moveaxis(values, 0, d), np.moveaxis(indices, 0, d), d, True)

    register(name, apply)


_running("cummax", CummaxBackward0, np.greater_equal)
_running("cummin", CumminBackward0, np.less_equal)


@op("unique")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    values, inverse, counts = np.unique(input._a, return_inverse=True, return_counts=True, axis=dim)
    if dim is None:
        inverse = inverse.reshape(input._a.shape)
    outs: list[Tensor] = [finished(values, input.dtype)]
    if tracking(input):
        record(Unique2Backward0, outs[0], (input,))
    if return_inverse:
        outs.append(wrap(np.asarray(inverse).astype(np.int64), int64))
    if return_counts:
        outs.append(wrap(counts.astype(np.int64), int64))
    return outs[0] if len(outs) == 1 else tuple(outs)


def _unique_rule(F: Any, node: Node, g: Any) -> Any:
    raise RuntimeError("the derivative for '_unique2' is not implemented.")


Unique2Backward0 = node_class("Unique2Backward0", _unique_rule)


@op("unique_consecutive")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    if dim is not None:
        not_covered("unique_consecutive with dim")
    flat = np.ravel(input._a)
    starts = np.concatenate([[True], flat[1:] != flat[:-1]]) if flat.size else np.zeros(0, bool)
    outs: list[Tensor] = [finished(flat[starts], input.dtype)]
    if return_inverse:
        outs.append(wrap((np.cumsum(starts) - 1).reshape(input._a.shape).astype(np.int64), int64))
    if return_counts:
        outs.append(wrap(np.diff(np.append(np.nonzero(starts)[0], flat.size)).astype(np.int64), int64))
    return outs[0] if len(outs) == 1 else tuple(outs)


@op("bincount")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    if input._a.ndim != 1 or input.dtype.kind != "i" or (input._a < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return wrap(np.bincount(input._a, minlength=minlength).astype(np.int64), int64)
    d = weights.dtype if weights.dtype is dtypes.float32 else dtypes.float64
    return finished(np.bincount(input._a, weights._a, minlength).astype(d.storage), d)


@op("searchsorted")
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None
) -> Tensor:
    if sorted_sequence._a.ndim != 1:
        not_covered("searchsorted of more than one dimension")
    v = input._a if isinstance(input, Tensor) else input
    r = np.searchsorted(sorted_sequence._a, v, "right" if right or side == "right" else "left")
    d = dtypes.int32 if out_int32 else int64
    return finished(np.asarray(r).astype(d.storage)[()], d)


@op("bucketize")
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@op("isin", method=False)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    a, b = (x._a if isinstance(x, Tensor) else x for x in (elements, test_elements))
    return finished(np.asarray(np.isin(a, b, invert=invert))[()], bool_)
