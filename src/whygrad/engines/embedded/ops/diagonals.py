"""Diagonals and triangles, views of any geometry, and primitives that only backward rules use."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import kernels
from ..dtypes import int64
from ..graph import Node, node_class
from ..tensor import Tensor, share, wrap_dim
from ..views import positions, view_of
from .define import (
    differentiable,
    finished,
    not_covered,
    op,
    record,
    register,
    tracking,
    view_operation,
    wrap,
)
from .shape import AliasBackward0, clone, contiguous, reshape


def _diagonal_rule(F: Any, node: Node, g: Any, places: Any, shape: Any) -> Any:
    return F.scatter_flat(g, places, shape)


DiagonalBackward0 = node_class("DiagonalBackward0", _diagonal_rule)


@op("diagonal", F="diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of the diagonal, its dimension last."""
    a = input._a
    i, j = wrap_dim(dim1, a.ndim), wrap_dim(dim2, a.ndim)
    if i == j:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    d = np.diagonal(a, offset, i, j)
    d.flags.writeable = True
    order = np.arange(a.size).reshape(a.shape)
    return view_operation(DiagonalBackward0, input, d, np.diagonal(order, offset, i, j), a.shape)


@op("diag_embed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A matrix with this diagonal."""
    a = input._a
    n = a.ndim + 1
    i, j = (d + n if d < 0 else d for d in (dim1, dim2))
    if i == j:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = a.shape[-1] + abs(offset)
    shape = list(a.shape[:-1])
    for d in sorted((i, j)):
        shape.insert(d, size)
    order = np.arange(math.prod(shape)).reshape(shape)
    places = np.diagonal(order, offset, i, j)
    out = finished(kernels.scatter_flat(a, places, tuple(shape)), input.dtype)
    if tracking(input):
        record(DiagEmbedBackward0, out, (input,), (places,))
    return out


DiagEmbedBackward0 = node_class("DiagEmbedBackward0", lambda F, node, g, places: F.gather_flat(g, places))


@op("diag")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    if input._a.ndim == 1:
        return diag_embed(input, diagonal)
    if input._a.ndim == 2:
        return clone(differentiable.diagonal(input, diagonal))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._a.ndim}D")


@op("diagflat")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    return diag_embed(reshape(contiguous(input), (-1,)), offset)


@op("trace")
def trace(input: Tensor) -> Tensor:
    if input._a.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._a.ndim}")
    return differentiable.diagonal(input).sum()


TrilBackward0 = node_class("TrilBackward0", lambda F, node, g, k: F.tril(g, k))
TriuBackward0 = node_class("TriuBackward0", lambda F, node, g, k: F.triu(g, k))


def _triangle(name: str, kernel: Any, cls: type[Node]) -> None:
    def apply(input: Tensor, diagonal: int = 0) -> Tensor:
        if input._a.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        out = finished(kernel(input._a, diagonal), input.dtype)
        if tracking(input):
            record(cls, out, (input,), (diagonal,))
        return out

    apply.__name__ = name
    register(name, apply, F=name)
    from .define import in_place

    in_place(name, apply)


_triangle("tril", np.tril, TrilBackward0)
_triangle("triu", np.triu, TriuBackward0)


def _indices(name: str, kernel: Any) -> None:
    def apply(
        row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None, layout: Any = None
    ) -> Tensor:
        return finished(np.stack(kernel(row, offset, col)).astype(dtype.storage), dtype)

    register(name, apply, method=False)


_indices("tril_indices", np.tril_indices)
_indices("triu_indices", np.triu_indices)


# --- primitives that only backward rules use ----------------------------------------------------------------------


def gather_flat(x: Tensor, places: Any) -> Tensor:
    out = finished(kernels.gather_flat(x._a, places), x.dtype)
    if tracking(x):
        record(_GatherFlat, out, (x,), (places, x._a.shape))
    return out


def scatter_flat(x: Tensor, places: Any, shape: tuple[int, ...]) -> Tensor:
    out = finished(kernels.scatter_flat(x._a, places, shape), x.dtype)
    if tracking(x):
        record(_ScatterFlat, out, (x,), (places,))
    return out


_GatherFlat = node_class("TakeBackward0", lambda F, node, g, places, shape: F.scatter_flat(g, places, shape))
_ScatterFlat = node_class("PutBackward0", lambda F, node, g, places: F.gather_flat(g, places))


def clear_flat(x: Tensor, places: Any) -> Tensor:
    mask = np.ones(x._a.size, x.dtype.storage)
    mask[places] = 0
    return x * wrap(mask.reshape(x._a.shape), x.dtype)


for _f in (gather_flat, scatter_flat, clear_flat):
    setattr(differentiable, _f.__name__, _f)


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of any geometry over the memory."""
    share(input)
    owner = input._a
    here = owner.__array_interface__["data"][0]
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    flat = np.lib.stride_tricks.as_strided(owner, (owner.size,), (owner.itemsize,))
    offset = (
        (here - owner.__array_interface__["data"][0]) // owner.itemsize if storage_offset is None else storage_offset
    )
    a = np.lib.stride_tricks.as_strided(flat[offset:], tuple(size), tuple(s * owner.itemsize for s in stride))
    if tracking(input) and (owner.size != input._a.size):
        not_covered("the gradient of as_strided of a view")
    out = view_of(input, a)
    if tracking(input):
        record(_AsStrided, out, (input,), (positions(input, out), input._a.shape))
    return out


_AsStrided = node_class("AsStridedBackward0", _diagonal_rule)
register("as_strided", as_strided)


@op("unfold", torch=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Sliding windows over a dimension, as a view."""
    a = self._a
    d = wrap_dim(dimension, a.ndim)
    n = a.shape[d] if a.ndim else 1
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    share(self)
    a = self._a if self._a.ndim else self._a.reshape(1)
    order = np.arange(a.size).reshape(a.shape)
    key = (*(slice(None),) * d, slice(None, None, step))
    windows = np.lib.stride_tricks.sliding_window_view(a, size, d, writeable=True)[key]
    places = np.lib.stride_tricks.sliding_window_view(order, size, d)[key]
    if not self._a.ndim:
        windows, places = windows[0], places[0]
    return view_operation(UnfoldBackward0, self, windows, places, self._a.shape)


UnfoldBackward0 = node_class("UnfoldBackward0", _diagonal_rule)


@op("alias", method=False, torch=False, F="alias")
def alias(x: Tensor) -> Tensor:
    share(x)
    return view_operation(AliasBackward0, x, x._a.view())
