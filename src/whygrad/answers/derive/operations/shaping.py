"""Operations that move elements without changing them: shapes, joins, pieces, indexing, writes into pieces."""

# The parameters are PyTorch's, whether they change the value or not.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from whygrad.answers.derive.operations.table import Array, UnsupportedError, operation, several


@operation(
    "clone", "contiguous", "detach", "data", "to", "type", "type_as", "float", "double", "half", "bfloat16", "long",
    "int", "bool", "cpu", "cuda", "requires_grad_", "identity", "alias", "view_as_real", "real", "item", "tensor",
    "as_tensor", "asarray", "from_numpy", "numpy", "retain_grad",
)  # fmt: skip
def same(a: Any) -> Any:
    """A copy, a cut or a conversion: the dtype of the recorded result is applied to every operation alike."""
    return np.array(a)


# --- shapes ---------------------------------------------------------------------------------------


@operation("reshape")
def reshape(a: Array, shape: Sequence[int]) -> Any:
    """Stands for `view`, `flatten`, `squeeze` and the like too: the recorded result says the shape."""
    return np.reshape(a, shape)


@operation("expand")
def expand(a: Array, shape: Sequence[int]) -> Any:
    """To the recorded result's shape."""
    return np.broadcast_to(a, shape)


@operation("transpose", "swapaxes", "swapdims")
def transpose(a: Array, dim0: int, dim1: int) -> Any:
    return np.swapaxes(a, dim0, dim1)


@operation("t", "T", "numpy_T")
def transposed(a: Array) -> Any:
    return np.transpose(a)


@operation("mT", "adjoint", "mH")
def matrix_transposed(a: Array) -> Any:
    return np.swapaxes(a, -1, -2)


@operation("permute")
def permute(a: Array, *dims: Any) -> Any:
    return np.transpose(a, several(dims[0], dims[1:]))


@operation("movedim", "moveaxis")
def move(a: Array, source: Any, destination: Any) -> Any:
    return np.moveaxis(a, source, destination)


@operation("repeat", "tile")
def repeat(a: Array, *sizes: Any) -> Any:
    return np.tile(a, several(sizes[0], sizes[1:]))


@operation("repeat_interleave")
def repeat_each(a: Array, repeats: Any, dim: int | None = None) -> Any:
    return np.repeat(a, repeats, axis=dim)


@operation("flip")
def flip(a: Array, *dims: Any) -> Any:
    return np.flip(a, axis=several(dims[0], dims[1:]))


@operation("roll")
def roll(a: Array, shifts: Any, dims: Any = None) -> Any:
    return np.roll(a, shifts, axis=tuple(dims) if isinstance(dims, list) else dims)


# --- joins and pieces -----------------------------------------------------------------------------


@operation("cat", "concat", "concatenate")
def join(tensors: Sequence[Array], dim: int = 0) -> Any:
    return np.concatenate(tensors, axis=dim)


@operation("stack")
def stack(tensors: Sequence[Array], dim: int = 0) -> Any:
    return np.stack(tensors, axis=dim)


@operation("hstack")
def stack_columns(tensors: Sequence[Array]) -> Any:
    return np.hstack(tensors)


@operation("vstack")
def stack_rows(tensors: Sequence[Array]) -> Any:
    return np.vstack(tensors)


@operation("split")
def pieces(a: Array, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    length = a.shape[dim]
    sizes = split_size if not isinstance(split_size, int) else [split_size] * -(-length // split_size)
    bounds = np.cumsum(sizes)[:-1]
    return tuple(np.split(a, bounds, axis=dim))


@operation("chunk")
def chunks(a: Array, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    return pieces(a, -(-a.shape[dim] // chunks), dim)


@operation("unbind")
def slices(a: Array, dim: int = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(a, dim, 0))


@operation("narrow")
def narrow(a: Array, dim: int, start: int, length: int) -> Any:
    return np.take(a, range(start, start + length), axis=dim)


@operation("select")
def select(a: Array, dim: int, index: int) -> Any:
    return np.take(a, index, axis=dim)


@operation("getitem")
def item_at(a: Any, index: Any) -> Any:
    return a[index]


@operation("index_select")
def select_many(a: Array, dim: int, index: Array) -> Any:
    return np.take(a, index, axis=dim)


@operation("gather")
def gather(a: Array, dim: int, index: Array) -> Any:
    narrowed = tuple(
        slice(None) if axis == dim % max(a.ndim, 1) else slice(size) for axis, size in enumerate(index.shape)
    )
    return np.take_along_axis(a[narrowed], index, axis=dim)


@operation("take")
def take(a: Array, index: Array) -> Any:
    return np.take(a, index)


@operation("masked_select")
def masked_select(a: Array, mask: Array) -> Any:
    a, mask = np.broadcast_arrays(a, mask)
    return a[mask]


@operation("diag")
def diagonal_or_matrix(a: Array, diagonal: int = 0) -> Any:
    return np.diag(a, diagonal)


@operation("diagonal")
def diagonal(a: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return np.diagonal(a, offset, dim1, dim2)


@operation("trace")
def trace(a: Array) -> Any:
    return np.trace(a)


@operation("tril")
def lower_triangle(a: Array, diagonal: int = 0) -> Any:
    return np.tril(a, diagonal)


@operation("triu")
def upper_triangle(a: Array, diagonal: int = 0) -> Any:
    return np.triu(a, diagonal)


@operation("pad")
def pad(a: Array, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """PyTorch counts the widths from the last dimension."""
    if mode != "constant" or any(width < 0 for width in pad):
        raise UnsupportedError(f"mode={mode!r}" if mode != "constant" else "a negative width")
    last = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    widths = [(0, 0)] * (a.ndim - len(last)) + last[::-1]
    return np.pad(a, widths, constant_values=value or 0.0)


# --- writes in place: the receiver's new value ----------------------------------------------------


@operation("copy_")
def copied(a: Array, other: Any, non_blocking: bool = False) -> Any:
    return np.broadcast_to(np.asarray(other, dtype=np.float64), np.shape(a))


@operation("setitem", "setitem_")
def with_item(a: Array, index: Any, value: Any) -> Any:
    written = np.array(a)
    written[index] = value
    return written


@operation("index_add", "index_add_")
def with_added_rows(a: Array, dim: int, index: Array, source: Array, *, alpha: float = 1) -> Any:
    """Rows that come several times add up."""
    added = np.moveaxis(np.array(a), dim, 0)
    np.add.at(added, index, alpha * np.moveaxis(source, dim, 0))
    return np.moveaxis(added, 0, dim)


@operation("scatter_add", "scatter_add_")
def with_scattered_sums(a: Array, dim: int, index: Array, src: Array) -> Any:
    added = np.array(a)
    places: list[Any] = list(np.indices(index.shape))
    places[dim] = index
    np.add.at(added, tuple(places), src[tuple(map(slice, index.shape))])
    return added


# --- made from nothing ----------------------------------------------------------------------------


@operation("zeros")
def zeros(*size: Any) -> Any:
    return np.zeros(several(size[0], size[1:]))


@operation("ones")
def ones(*size: Any) -> Any:
    return np.ones(several(size[0], size[1:]))


@operation("full")
def full(size: Sequence[int], fill_value: Any) -> Any:
    return np.full(tuple(size), fill_value)


@operation("eye")
def identity_matrix(n: int, m: int | None = None) -> Any:
    return np.eye(n, m)


@operation("arange")
def counted(start: float, end: float | None = None, step: float = 1) -> Any:
    return np.arange(0, start, step) if end is None else np.arange(start, end, step)


@operation("linspace")
def evenly_spaced(start: float, end: float, steps: int) -> Any:
    return np.linspace(start, end, steps)


@operation("one_hot")
def one_hot(a: Array, num_classes: int = -1) -> Any:
    return np.eye(int(a.max()) + 1 if num_classes < 0 else num_classes, dtype=np.int64)[a]
