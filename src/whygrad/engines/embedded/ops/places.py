"""Operations that read and write places: index_select, gather, scatter, index_add, masks."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import differentiable, dtypes, kernels
from ..dtypes import bool_, int64
from ..graph import Node, node_class
from ..tensor import Tensor, brackets, wrap_dim
from .define import check_tensor, finished, in_place, not_covered, op, record, tracking, wrap
from .shape import reshape


def _along_rule(F: Any, node: Node, g: Any, dim: int, places: Any, shape: Any) -> Any:
    key = (*(slice(None),) * dim, places)
    return F.index_add_zeros(g, key, shape) if shape else F.sum_to(g, ())


IndexSelectBackward0 = node_class("IndexSelectBackward0", _along_rule)


@op("index_select", F="index_select")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The places `index` of a dimension."""
    check_tensor("index_select", input)
    a = input._a
    d = wrap_dim(dim, a.ndim)
    if index._a.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in (int64, dtypes.int32):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    places = np.atleast_1d(index._a)
    n = a.shape[d] if a.ndim else 1
    if places.size and ((places < 0) | (places >= n)).any():
        raise IndexError("index out of range in self")
    out = finished(np.take(a, places, axis=d) if a.ndim else np.asarray(a), input.dtype)
    if tracking(input):
        record(IndexSelectBackward0, out, (input,), (d, places, a.shape), holds=True)
    return out


GatherBackward0 = node_class(
    "GatherBackward0", lambda F, node, g, dim, places, shape: F.scatter_add_zeros(g, dim, places, shape)
)


def _check_gather(name: str, x: Tensor, d: int, index: Tensor) -> None:
    a, i = x._a, index._a
    if i.size and index.dtype not in (int64, dtypes.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if i.size == 0:
        return
    if max(i.ndim, 1) != max(a.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'input' if name == 'gather' else 'self'} tensor"
        )
    for k in range(i.ndim):
        if k != d and i.shape[k] > a.shape[k]:
            raise RuntimeError(
                f"Size does not match at dimension {k} expected index {brackets(i.shape)} to be no larger than self "
                f"{brackets(a.shape)} apart from dimension {d}"
            )
    n = a.shape[d] if a.ndim else 1
    bad = i[(i < 0) | (i >= n)] if i.ndim else (np.asarray([i]) if not 0 <= i < n else np.zeros(0))
    if bad.size:
        raise RuntimeError(f"index {int(bad.flat[0])} is out of bounds for dimension {d} with size {n}")


@op("gather", F="gather_tensor")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Along a dimension, the element that `index` names for each position."""
    d = wrap_dim(dim, input._a.ndim)
    _check_gather("gather", input, d, index)
    places = index._a
    a = input._a
    if places.size == 0:
        out = finished(np.zeros(places.shape, input.dtype.storage), input.dtype)
        if tracking(input):
            record(GatherBackward0, out, (input,), (d, places, a.shape), holds=True)
        return out
    if a.ndim == 0 or places.ndim == 0:
        r = np.reshape(np.atleast_1d(a)[np.atleast_1d(places)], places.shape)
    else:
        r = kernels.gather(a, d, places)
    out = finished(r if r.ndim else r[()], input.dtype)
    if tracking(input):
        record(GatherBackward0, out, (input,), (d, np.atleast_1d(places) if a.ndim else places, a.shape), holds=True)
    return out


@op("take_along_dim")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    d = wrap_dim(dim, input._a.ndim)
    shape = [max(m, n) if i != d else 0 for i, (m, n) in enumerate(zip(input._a.shape, indices._a.shape, strict=True))]
    places = np.where(indices._a < 0, indices._a + input._a.shape[d], indices._a)
    indices = wrap(places, int64)
    left = input.expand([input._a.shape[d] if i == d else s for i, s in enumerate(shape)])
    right = indices.expand([indices._a.shape[d] if i == d else s for i, s in enumerate(shape)])
    return gather(left, d, right)


def scatter_add_zeros(g: Tensor, dim: int, places: Any, shape: tuple[int, ...]) -> Tensor:
    out = finished(kernels.scatter_add_zeros(np.asarray(g._a), dim, places, shape), g.dtype)
    if tracking(g):
        record(_ScatterZeros, out, (g,), (dim, places, g._a.shape))
    return out


def _scatter_zeros_rule(F: Any, node: Node, g: Any, dim: int, places: Any, shape: Any) -> Any:
    picked = F.gather(g, dim, places)
    if tuple(places.shape) == tuple(shape):
        return picked
    return F.index_add_zeros(picked, tuple(slice(n) for n in places.shape), shape, True)


_ScatterZeros = node_class("ScatterAddBackward0", _scatter_zeros_rule)
differentiable.scatter_add_zeros = scatter_add_zeros
differentiable.gather = lambda x, dim, places: gather(x, dim, wrap(np.asarray(places), int64))


def _scatter_rule(F: Any, node: Node, g: Any, dim: int, places: Any, mode: str, shape: Any) -> Any:
    dx = None
    if node.edges[0] is not None:
        dx = g
        if mode == "put":
            mask = np.zeros(tuple(g.shape), bool)
            if mask.ndim:
                mask[kernels.along(places, dim)] = True
            else:
                mask = np.ones((), bool)
            dx = F.where(F.as_mask(mask), 0.0, g)
    if len(node.edges) == 1:
        return dx
    dsrc = None
    if node.edges[1] is not None:
        dsrc = F.gather(g, dim, places)
        if tuple(places.shape) != tuple(shape):
            dsrc = F.index_add_zeros(dsrc, tuple(slice(n) for n in places.shape), shape, True)
    return dx, dsrc


kernels.as_mask = lambda m: m
differentiable.as_mask = lambda m: wrap(m, bool_)
ScatterBackward0 = node_class("ScatterBackward0", _scatter_rule)
ScatterBackward1 = node_class("ScatterBackward1", _scatter_rule)
ScatterAddBackward0 = node_class("ScatterAddBackward0", _scatter_rule)


def _scatter(name: str, input: Tensor, dim: int, index: Tensor, src: Any, mode: str) -> Tensor:
    d = wrap_dim(dim, input._a.ndim)
    if isinstance(src, Tensor) and index._a.size and max(index._a.ndim, 1) != max(src._a.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    _check_gather(name, input, d, index)
    places = np.atleast_1d(index._a)
    a = np.array(np.atleast_1d(input._a))
    if isinstance(src, Tensor):
        if src.dtype is not input.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
        s = np.atleast_1d(src._a)
        if places.size and any(m > n for m, n in zip(places.shape, s.shape, strict=True)):
            raise RuntimeError(
                f"Expected index {brackets(index._a.shape)} to be no larger than self {brackets(input._a.shape)} "
                "apart from "
                f"dimension {d} and to be no larger size than src {brackets(src._a.shape)}"
            )
        v = s[tuple(slice(n) for n in places.shape)]
    else:
        v = dtypes.store(np.asarray(src), input.dtype)
    key = kernels.along(places, d)
    if mode == "add":
        np.add.at(a, key, v)
    elif mode == "multiply":
        np.multiply.at(a, key, v)
    elif places.size:
        a[key] = v
    a = a.reshape(input._a.shape)
    out = finished(a if a.ndim else a[()], input.dtype)
    if isinstance(src, Tensor):
        if tracking(input, src):
            if mode == "multiply":
                not_covered("the gradient of scatter with reduce='multiply'")
            cls = ScatterAddBackward0 if mode == "add" else ScatterBackward0
            record(cls, out, (input, src), (d, places, mode, np.atleast_1d(src._a).shape), holds=True)
    elif tracking(input):
        record(ScatterBackward1, out, (input,), (d, places, mode, None), holds=True)
    return out


@op("scatter", F="scatter")
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    mode = {None: "put", "add": "add", "multiply": "multiply"}.get(reduce)
    if mode is None:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return _scatter("scatter", input, dim, index, value if src is None else src, mode)


in_place("scatter", scatter)


@op("scatter_add", F="scatter_add")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return _scatter("scatter_add", input, dim, index, src, "add")


in_place("scatter_add", scatter_add)


@op("index_add", F="index_add")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Rows of `source` added at the places `index`."""
    d = wrap_dim(dim, input._a.ndim)
    a = np.array(np.atleast_1d(input._a))
    places = np.atleast_1d(index._a)
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"index_add_(): self ({input.dtype.legacy}) and source ({source.dtype.legacy}) must have the same "
            "scalar type"
        )
    if places.size != (source._a.shape[d] if source._a.ndim else 1):
        raise RuntimeError(
            "index_add_(): Number of indices ("
            + str(places.size)
            + ") should be equal to source.size(dim): ("
            + str(source._a.shape[d] if source._a.ndim else 1)
            + "), for dim: "
            + str(d)
        )
    if places.size and ((places < 0) | (places >= a.shape[d])).any():
        raise IndexError("index out of range in self")
    key = (*(slice(None),) * d, places)
    np.add.at(a, key, source._a * a.dtype.type(alpha) if alpha != 1 else source._a)  # type: ignore[arg-type]
    out = finished(a.reshape(input._a.shape), input.dtype)
    if tracking(input, source):
        record(IndexAddBackward0, out, (input, source), (key, alpha, source._a.shape), holds=True)
    return out


def _index_add_rule(F: Any, node: Node, g: Any, key: Any, alpha: Any, shape: Any) -> Any:
    ds = None
    if node.edges[1] is not None:
        ds = F.index(F.reshape(g, (1,)) if not g.shape else g, key) * alpha
        ds = F.reshape(ds, shape)
    return (g if node.edges[0] is not None else None), ds


IndexAddBackward0 = node_class("IndexAddBackward0", _index_add_rule)
in_place("index_add", index_add)


@op("index_fill")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    mask = np.zeros(np.atleast_1d(input._a).shape, bool)
    mask[(*(slice(None),) * wrap_dim(dim, input._a.ndim), index._a)] = True
    return masked_fill(input, wrap(mask.reshape(input._a.shape), bool_), value)


in_place("index_fill", index_fill)


@op("index_copy")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    d = wrap_dim(dim, input._a.ndim)
    return input.clone().index_put_((*(wrap(np.arange(n), int64) for n in ()), *_lead(input, d), index), source)  # type: ignore[var-annotated]


def _lead(x: Tensor, d: int) -> tuple[Any, ...]:
    return (None,) * d


in_place("index_copy", index_copy)


@op("take")
def take(input: Tensor, index: Tensor) -> Tensor:
    n = input._a.size
    places = np.asarray(index._a)
    if places.size and ((places < -n) | (places >= n)).any():
        raise IndexError(f"out of range: tried to access index {int(places.max())} on a tensor of {n} elements.")
    return differentiable.gather_flat(input, places % max(n, 1))


# --- masks --------------------------------------------------------------------------------------------------------


def _masked_fill_rule(F: Any, node: Node, g: Any, mask: Any) -> Any:
    dx = None if node.edges[0] is None else F.where(mask, 0.0, g)
    if len(node.edges) == 1:
        return dx
    return dx, (None if node.edges[1] is None else F.sum(F.where(mask, g, 0.0)))


MaskedFillBackward0 = node_class("MaskedFillBackward0", _masked_fill_rule, ("mask",))
MaskedFillBackward1 = node_class("MaskedFillBackward1", _masked_fill_rule, ("mask",))


@op("masked_fill", F="masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` where the mask is true."""
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.legacy}")
    v = value._a if isinstance(value, Tensor) else value
    if isinstance(value, Tensor) and value._a.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value._a.ndim} "
            "dimension(s)."
        )
    if (
        not isinstance(value, Tensor)
        and input.dtype.kind == "i"
        and isinstance(value, float)
        and not math.isfinite(value)
    ):
        raise RuntimeError(f"value cannot be converted to type {input.dtype._name}_t without overflow")
    from .promote import broadcast_shape

    broadcast_shape(input._a.shape, mask._a.shape)
    a = np.where(mask._a, dtypes.store(np.asarray(v), input.dtype), input._a)
    out = finished(a if a.ndim else a[()], input.dtype)
    tensor_value = value if isinstance(value, Tensor) else None
    if tracking(input, tensor_value):
        if tensor_value is None:
            record(MaskedFillBackward0, out, (input,), (mask,))
        else:
            record(MaskedFillBackward1, out, (input, tensor_value), (mask,))
    return out


in_place("masked_fill", masked_fill)


@op("masked_select")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype is not bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    from .promote import broadcast_shape

    shape = broadcast_shape(input._a.shape, mask._a.shape)
    places = np.nonzero(np.broadcast_to(mask._a, shape).ravel())[0]
    x = input if input._a.shape == shape else input.expand(shape)
    out = finished(np.ravel(x._a)[places], input.dtype)
    if tracking(input):
        record(MaskedSelectBackward0, out, (x,), (places, shape), holds=True)
    return out


MaskedSelectBackward0 = node_class(
    "MaskedSelectBackward0", lambda F, node, g, places, shape: F.scatter_flat(g, places, shape)
)


@op("masked_scatter")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.legacy}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter_: expected self and source to have same dtypes but got {input.dtype.legacy} and "
            f"{source.dtype.legacy}"
        )
    if mask._a.ndim > input._a.ndim:
        input = input.expand(mask._a.shape)
    flat = np.broadcast_to(mask._a, input._a.shape).ravel()
    places = np.nonzero(flat)[0]
    kept = masked_fill(input, mask, 0)
    chosen = reshape(source, (-1,)).narrow(0, 0, places.size)
    return kept + differentiable.scatter_flat(chosen, places, input._a.shape)


in_place("masked_scatter", masked_scatter)


@op("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    where = np.nonzero(np.atleast_1d(input._a))
    if as_tuple:
        return tuple(wrap(w, int64) for w in where)
    stacked = np.stack(where, 1) if input._a.ndim else np.zeros((int(bool(input._a)), 0), np.int64)
    return wrap(stacked.astype(np.int64), int64)


@op("argwhere")
def argwhere(input: Tensor) -> Tensor:
    return nonzero(input)
