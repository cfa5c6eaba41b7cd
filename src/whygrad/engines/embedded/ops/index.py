"""Indexing: `x[key]`, `x[key] = value`, `index_put`."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from .. import differentiable, dtypes, kernels
from ..dtypes import bool_, int64
from ..graph import Node, node_class
from ..tensor import Tensor, brackets, share
from ..views import adopt, check_overlap, check_writable
from ..warn import warn
from .define import finished, op, record, tracking, wrap
from .diagonals import alias
from .factories import build
from .parts import _select, slice_view
from .shape import unsqueeze

# --- reading ------------------------------------------------------------------------------------------------------


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]: integers, slices, None and ... give views, one after the other; tensors and lists pick and copy."""
    share(x)
    if key.__class__ is int:
        a = x._a
        if not a.ndim:
            _refuse_0d()
        n = a.shape[0]
        if not -n <= key < n:
            raise IndexError(f"index {key} is out of bounds for dimension 0 with size {n}")
        return _select(x, 0, key % n)
    if key.__class__ is slice and x._a.ndim:
        return _slice(x, 0, key, whole=False)  # alone, even a slice of everything is a node of its own
    seen, places = _views(x, key)
    if places is None:
        return alias(x) if seen is x else seen
    return _take(seen, places)


def _refuse_0d() -> None:
    raise IndexError(
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert "
        "a 0-dim "
        "tensor to a number"
    )


def _as_tuple(key: Any) -> tuple[Any, ...]:
    if isinstance(key, tuple):
        return key
    return (key,)


def _is_places(k: Any) -> bool:
    return isinstance(k, (list, np.ndarray, range)) or (
        isinstance(k, Tensor) and (k._a.ndim > 0 or k.dtype.kind == "b")
    )


def _consumes(k: Any) -> int:
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    if isinstance(k, Tensor) and k.dtype in (bool_, dtypes.uint8):
        return int(k._a.ndim)
    if isinstance(k, np.ndarray) and k.dtype == bool:
        return int(k.ndim)
    return 1


def _views(x: Tensor, key: Any) -> tuple[Tensor, list[Any] | None]:
    """Apply the view parts of a key; what remains are places, one entry a dimension (None: the whole dimension)."""
    parts = _as_tuple(key)
    used = sum([_consumes(k) for k in parts])
    if used > x._a.ndim:
        if x._a.ndim == 0 and used == 1:
            _refuse_0d()
        raise IndexError(f"too many indices for tensor of dimension {x._a.ndim}")
    dim = 0
    places: list[Any] = []
    picked = False
    for k in parts:
        if k is None:
            x = unsqueeze(x, dim)
            places.append(None)
            dim += 1
        elif k is Ellipsis:
            skip = x._a.ndim - dim - (used - sum([_consumes(p) for p in parts[: _position(parts)]]))
            places.extend([None] * skip)
            dim += skip
        elif isinstance(k, slice):
            x = _slice(x, dim, k)
            places.append(None)
            dim += 1
        elif isinstance(k, bool):
            x = unsqueeze(x, dim)
            places.append(np.zeros(1 if k else 0, np.int64))
            picked = True
            dim += 1
        elif _is_places(k):
            for p in _places_of(k, x, dim):
                places.append(p)
                dim += 1
            picked = True
        else:
            x = _pick(x, dim, k)
    return x, (places if picked else None)


def _position(parts: tuple[Any, ...]) -> int:
    return next(i for i, p in enumerate(parts) if p is Ellipsis)


def _pick(x: Tensor, dim: int, k: Any) -> Tensor:
    if isinstance(k, float):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            "(got float)"
        )
    if isinstance(k, str):
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
            "pytorch 2.9; use "
            "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
            "x[torch.tensor(seq)], which "
            "will result either in an error or a different result"
        )
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(k, Tensor) and k.dtype.kind != "i":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    try:
        i = k.__index__()
    except AttributeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(k).__name__})"
        ) from None
    n = x._a.shape[dim]
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {n}")
    return _select(x, dim, i % n)


def _slice(x: Tensor, dim: int, k: slice, whole: bool = True) -> Tensor:
    n = x._a.shape[dim]
    if k.step is not None and int(k.step) <= 0:
        raise ValueError("step must be greater than zero")
    bounds = [None if v is None else (v if v.__class__ is int else v.__index__()) for v in (k.start, k.stop, k.step)]
    start, stop, step = slice(*bounds).indices(n)
    if whole and start == 0 and stop == n and step == 1:
        return x
    return slice_view(x, dim, start, max(stop, start), step)


def _places_of(k: Any, x: Tensor, dim: int) -> list[Any]:
    """Index arrays of a tensor, list or array; a mask gives one for each of its dimensions."""
    if isinstance(k, Tensor):
        a, d = k._a, k.dtype
    else:
        t = build(list(k) if isinstance(k, range) else k, None)
        a, d = t._a, t.dtype
        if a.size == 0:
            a, d = a.astype(np.int64), int64
    if d is dtypes.uint8 or d is bool_:
        a = np.asarray(a != 0)
        shape = x._a.shape
        for i, n in enumerate(a.shape):
            if n != shape[dim + i]:
                raise IndexError(
                    f"The shape of the mask {brackets(a.shape)} at index {i} does not match the shape of the "
                    "indexed tensor "
                    f"{brackets(shape)} at index {dim + i}"
                )
        return list(np.nonzero(a)) if a.ndim else [np.zeros(int(a), np.int64)]
    if d.kind != "i":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return [np.asarray(a).astype(np.int64)]


def _numpy_key(x: Tensor, places: list[Any]) -> tuple[Any, ...]:
    shape = x._a.shape
    for dim, p in enumerate(places):
        if p is not None and p.size:
            n = shape[dim]
            bad = p[(p < -n) | (p >= n)]
            if bad.size:
                raise IndexError(f"index {int(bad.flat[0])} is out of bounds for dimension {dim} with size {n}")
    return tuple(slice(None) if p is None else p for p in places)


def _take(x: Tensor, places: list[Any]) -> Tensor:
    key = _numpy_key(x, places)
    try:
        a = x._a[key]
    except IndexError:
        shapes = ", ".join(brackets(p.shape) for p in places if p is not None)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    out = finished(np.array(a) if a.base is not None else a, x.dtype)
    if tracking(x):
        record(IndexBackward0, out, (x,), (key, x._a.shape), holds=True)
    return out


IndexBackward0 = node_class("IndexBackward0", lambda F, node, g, key, shape: F.index_add_zeros(g, key, shape))


def index_add_zeros(g: Tensor, key: Any, shape: tuple[int, ...], unique: bool = False) -> Tensor:
    """Zeros with `g` added at `key`, differentiably."""
    out = finished(kernels.index_add_zeros(g._a, key, shape, unique), g.dtype)
    if tracking(g):
        record(_IndexAddZeros, out, (g,), (key,))
    return out


def read_key(x: Tensor, key: Any) -> Tensor:
    out = finished(np.array(x._a[key]), x.dtype)
    if tracking(x):
        record(IndexBackward0, out, (x,), (key, x._a.shape), holds=True)
    return out


_IndexAddZeros = node_class("IndexPutBackward0", lambda F, node, g, key: F.index(g, key))
differentiable.index_add_zeros = index_add_zeros
differentiable.index = read_key

# --- writing ------------------------------------------------------------------------------------------------------


def _index_put_rule(F: Any, node: Node, g: Any, key: Any, shape: Any, accumulate: bool) -> Any:
    """What was overwritten gets nothing; the values get the gradient at their places."""
    dx = None
    if node.edges[0] is not None:
        dx = g if accumulate else F.where(F.constant_mask(key, g), 0.0, g)
    dv = None if len(node.edges) < 2 or node.edges[1] is None else F.index(g, key)
    return dx, dv


def _constant_mask(key: Any, g: Any) -> Any:
    mask = np.zeros(tuple(g.shape), bool)
    mask[key] = True
    return mask


kernels.constant_mask = _constant_mask
differentiable.constant_mask = lambda key, g: wrap(_constant_mask(key, g), bool_)
IndexPutBackward0 = node_class("IndexPutBackward0", _index_put_rule)


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """x[key] = value: copy into the view, or put at the places."""
    share(x)
    if not isinstance(value, Tensor):
        if not isinstance(value, (int, float, complex, np.generic, np.ndarray)):
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.{x.dtype.legacy}Tensor")
        value = build(value, x.dtype)
    seen, places = _views(x, key)
    if places is None:
        target = seen
        if value._a.ndim == 0:
            target.fill_(value)
            return
        if value._a.shape != target._a.shape and value._a.size != 1:
            value = _strip_ones(value, target._a.shape)
        target.copy_(value)
        return
    put(seen, places, value, False)


def _strip_ones(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    while value._a.ndim > len(shape) and value._a.shape[0] == 1:
        value = value.squeeze(0)
    return value.expand(shape)


def put(x: Tensor, places: list[Any], value: Tensor, accumulate: bool) -> Tensor:
    key = _numpy_key(x, places)
    check_writable(x)
    if value.dtype is not x.dtype:
        if value._a.ndim == 0:
            value = value.to(x.dtype)
        else:
            raise RuntimeError(
                f"Index put requires the source and destination dtypes match, got {x.dtype.legacy} for the "
                "destination and "
                f"{value.dtype.legacy} for the source."
            )
    check_overlap(x)
    a = np.array(x._a)
    where = a[key].shape
    v = value._a
    while v.ndim > len(where) and v.shape[0] == 1:
        v = v[0]
    try:
        v = np.broadcast_to(v, where)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {brackets(value._a.shape)} cannot be broadcast to indexing "
            "result of "
            f"shape {brackets(where)}"
        ) from None
    if accumulate:
        np.add.at(a, key, v)
    else:
        a[key] = v
    out = wrap(a, x.dtype)
    if tracking(x, value):
        record(IndexPutBackward0, out, (x, value), (key, where, accumulate), holds=True)
    return adopt(x, out)


Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem


@op("index_put_", torch=True)
def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    places: list[Any] = []
    for k in indices:
        places.extend([None] if k is None else _places_of(k, self, len(places)))
    return put(self, places, values, accumulate)


@op("index_put")
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    return input.clone().index_put_(indices, values, accumulate)
