"""Joining tensors and repeating, flipping and rolling their elements."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, kernels
from ..dtypes import int64
from ..graph import Node, node_class
from ..tensor import Tensor, brackets, wrap_dim
from .define import (
    finished,
    op,
    record,
    register,
    tracking,
    wrap,
)
from .shape import clone, flatten, reshape, sizes_of, transpose, unsqueeze


def _cat_rule(F: Any, node: Node, g: Any, dim: int, sizes: Any) -> Any:
    out, at = [], 0
    for edge, n in zip(node.edges, sizes, strict=True):
        out.append(None if edge is None else (F.narrow(g, dim, at, n) if n is not None else F.zeros((0,), g)))
        at += n or 0
    return tuple(out)


def _stack_rule(F: Any, node: Node, g: Any, dim: int, n: int) -> Any:
    return tuple(None if node.edges[i] is None else F.squeeze(F.narrow(g, dim, i, 1), dim) for i in range(n))


CatBackward0 = node_class("CatBackward0", _cat_rule)
StackBackward0 = node_class("StackBackward0", _stack_rule)


def _common(tensors: Any) -> dtypes.dtype:
    from .promote import result_type

    return result_type(*tensors)


def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Join along a dimension."""
    if isinstance(tensors, Tensor):
        raise TypeError("cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
        if x._a.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    d = _common(tensors)
    real = [x for x in tensors if x._a.shape != (0,)] or tensors[:1]
    first = real[0]._a
    where = wrap_dim(dim, first.ndim)
    for x in real[1:]:
        if x._a.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {x._a.ndim}")
    for i, x in enumerate(tensors):
        if x._a.shape == (0,):
            continue
        for k, (m, n) in enumerate(zip(first.shape, x._a.shape, strict=True)):
            if m != n and k != where:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {where}. Expected size {m} but got size {n} for "
                    f"tensor number {i} in the list."
                )
    out = finished(np.concatenate([dtypes.store(x._a, d) for x in real], axis=where), d)
    if tracking(*tensors):
        sizes = tuple(None if x._a.shape == (0,) and first.ndim != 1 else x._a.shape[where] for x in tensors)
        record(CatBackward0, out, tuple(tensors), (where, sizes))
    return out


for _name in ("cat", "concat", "concatenate"):
    register(_name, cat, method=False, F=_name)


@op("stack", method=False, F="stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Join along a new dimension."""
    if isinstance(tensors, Tensor):
        raise TypeError("stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    first = tensors[0]._a
    n = first.ndim + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    where = dim + n if dim < 0 else dim
    for i, x in enumerate(tensors):
        if x._a.shape != first.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {brackets(first.shape)} at entry 0 and "
                f"{brackets(x._a.shape)} at entry {i}"
            )
    d = _common(tensors)
    out = finished(np.stack([dtypes.store(x._a, d) for x in tensors], axis=where), d)
    if tracking(*tensors):
        record(StackBackward0, out, tuple(tensors), (where, len(tensors)))
    return out


def _atleast(n: int) -> Any:
    def apply(x: Tensor) -> Tensor:
        k = x._a.ndim
        if k >= n:
            return x
        shape = x._a.shape
        if n == 1:
            return reshape(x, (1,))
        if n == 2:
            return reshape(x, (1, 1)) if k == 0 else unsqueeze(x, 0)
        return reshape(x, (1, 1, 1)) if k == 0 else reshape(x, (1, shape[0], 1)) if k == 1 else unsqueeze(x, -1)

    def public(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return apply(tensors[0])
        many = tensors[0] if len(tensors) == 1 else tensors
        return tuple(apply(x) for x in many)

    register(f"atleast_{n}d", public, method=False)
    return apply


_one, _two, _three = _atleast(1), _atleast(2), _atleast(3)
register(
    "hstack", lambda tensors: cat([_one(x) for x in tensors], 0 if _one(tensors[0])._a.ndim == 1 else 1), method=False
)
register("vstack", lambda tensors: cat([_two(x) for x in tensors], 0), method=False)
register("row_stack", lambda tensors: cat([_two(x) for x in tensors], 0), method=False)
register("dstack", lambda tensors: cat([_three(x) for x in tensors], 2), method=False)
register(
    "column_stack", lambda tensors: cat([reshape(x, (-1, 1)) if x._a.ndim < 2 else x for x in tensors], 1), method=False
)


# --- repeating, flipping, rolling ---------------------------------------------------------------------------------


def _repeat_rule(F: Any, node: Node, g: Any, shape: Any, repeats: Any) -> Any:
    """Add up the copies."""
    lead = len(repeats) - len(shape)
    padded = (1,) * lead + tuple(shape)
    split_shape = tuple(v for r, s in zip(repeats, padded, strict=True) for v in (r, s))
    if 0 in repeats:
        return F.zeros(shape, g)
    g = F.sum(F.reshape(g, split_shape), tuple(range(0, 2 * len(repeats), 2)))
    return F.reshape(g, shape)


RepeatBackward0 = node_class("RepeatBackward0", _repeat_rule)


def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """Copies beside copies."""
    times = sizes_of(repeats)
    a = np.asarray(self._a)
    if len(times) < a.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(r < 0 for r in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(times)}: {brackets(times)}")
    out = finished(np.tile(a, times), self.dtype)
    if tracking(self):
        record(RepeatBackward0, out, (self,), (a.shape, times))
    return out


Tensor.repeat = lambda self, *repeats, **k: repeat(self, *(repeats or (k["repeats"],)))  # type: ignore[attr-defined]


def tile(input: Tensor, *dims: Any) -> Tensor:
    times = sizes_of(dims)
    return repeat(input, (1,) * (input._a.ndim - len(times)) + times)


register("tile", lambda input, *dims, **k: tile(input, *(dims or (k["dims"],))))

FlipBackward0 = node_class("FlipBackward0", lambda F, node, g, dims: F.flip(g, dims))


def flip(input: Tensor, *dims: Any) -> Tensor:
    where = tuple(wrap_dim(d, input._a.ndim) for d in sizes_of(dims))
    if len(set(where)) != len(where):
        raise RuntimeError(
            f"dim {next(d for d in where if where.count(d) > 1)} appears multiple times in the list of dims"
        )
    a = np.asarray(input._a)
    out = finished(np.flip(a, where).copy() if a.ndim else a.copy(), input.dtype)
    if tracking(input):
        record(FlipBackward0, out, (input,), (where,))
    return out


register("flip", lambda input, *dims, **k: flip(input, *(dims or (k["dims"],))), F="flip")


@op("fliplr")
def fliplr(input: Tensor) -> Tensor:
    if input._a.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@op("flipud")
def flipud(input: Tensor) -> Tensor:
    if input._a.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


kernels.roll = np.roll
RollBackward0 = node_class(
    "RollBackward0", lambda F, node, g, shifts, dims: F.roll(g, tuple(-s for s in shifts), dims or None)
)


@op("roll", F="roll")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Move elements around the end of a dimension."""
    moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    where = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if where and len(where) != len(moves):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(where)}")
    axes = tuple(wrap_dim(d, input._a.ndim) for d in where)
    out = finished(np.roll(input._a, moves if axes else moves[0], axes or None), input.dtype)
    if tracking(input):
        record(RollBackward0, out, (input,), (moves, axes))
    return out


@op("rot90")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    a, b = dims
    k %= 4
    if k == 2:
        return flip(input, (a, b))
    if k == 1:
        return transpose(flip(input, (b,)), a, b)
    if k == 3:
        return flip(transpose(input, a, b), (b,))
    return clone(input)


@op("repeat_interleave")
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element several times in a row."""
    if repeats is None:
        counts = input._a
        return finished(np.repeat(np.arange(counts.shape[0]), counts), int64)
    x = flatten(input) if dim is None else input
    d = 0 if dim is None else wrap_dim(dim, input._a.ndim)
    n = x._a.shape[d] if x._a.ndim else 1
    counts = repeats._a if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.size not in (1, n):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({d}) = {n}"
        )
    places = np.repeat(np.arange(n), counts if counts.size == n and counts.ndim else int(counts.reshape(-1)[0]))
    return x.index_select(d, wrap(places, int64))
