"""Parts of a tensor as views: select, narrow, split, chunk, unbind."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

from ..graph import Node, node_class
from ..modes import modes
from ..tensor import Tensor, brackets, wrap, wrap_dim
from ..views import view_of
from .define import (
    op,
    record_several,
    register,
    view_operation,
)


def _select_rule(F: Any, node: Node, g: Any, key: Any, shape: Any) -> Any:
    """The gradient of a part: zeros around it."""
    return F.index_add_zeros(g, key, shape, True)


SelectBackward0 = node_class("SelectBackward0", _select_rule)
SliceBackward0 = node_class("SliceBackward0", _select_rule)


@op("select", F="select")
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """One place of a dimension, as a view."""
    a = input._a
    if a.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, a.ndim)
    i = int(index)
    n = a.shape[d]
    if not -n <= i < n:
        raise IndexError(f"select(): index {i} out of range for tensor of size {brackets(a.shape)} at dimension {d}")
    return _select(input, d, i % n)


def _select(x: Tensor, d: int, i: int) -> Tensor:
    a = x._a
    key = (i, ...) if d == 0 else (*(slice(None),) * d, i, ...)
    return view_operation(SelectBackward0, x, a[key], key, a.shape)


def slice_view(x: Tensor, d: int, start: int, stop: int, step: int) -> Tensor:
    key = (*(slice(None),) * d, slice(start, stop, step))
    return view_operation(SliceBackward0, x, x._a[key], key, x._a.shape)


@op("narrow", F="narrow")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    a = input._a
    if a.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if isinstance(start, Tensor) and (start._a.ndim or start.dtype.kind != "i"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    if start < 0:
        start += n
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return slice_view(input, d, start, start + length, 1)


def _split_rule(F: Any, node: Node, g: Any, shape: Any, sizes: Any, dim: int) -> Any:
    known = next(x for x in g if x is not None)
    parts = [F.zeros(node.outputs[i][0], known) if x is None else x for i, x in enumerate(g)]
    return F.cat(parts, dim)


def _unbind_rule(F: Any, node: Node, g: Any, dim: int) -> Any:
    known = next(x for x in g if x is not None)
    parts = [F.zeros(node.outputs[i][0], known) if x is None else x for i, x in enumerate(g)]
    return F.stack(parts, dim)


SplitBackward0 = node_class("SplitBackward0", _split_rule)
SplitWithSizesBackward0 = node_class("SplitWithSizesBackward0", _split_rule)
UnbindBackward0 = node_class("UnbindBackward0", _unbind_rule)


def _several_views(x: Tensor, arrays: list[Any], cls: type[Node], *saved: Any) -> tuple[Tensor, ...]:
    outs = tuple(view_of(x, a, "several") for a in arrays)
    if x._rg and modes.grad and outs:
        record_several(cls, outs, (x,), saved)
    for number, o in enumerate(outs):
        if o._view is not None:
            o._view.maker = (cls.__name__.removesuffix("Backward0"), number)
    return outs


def _pieces(a: Any, dim: int, sizes: Any) -> list[Any]:
    out, at = [], 0
    for n in sizes:
        out.append(a[(*(slice(None),) * dim, slice(at, at + n))])
        at += n
    return out


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts."""
    a = tensor._a
    if a.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        if size == 0 and n:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        count = max((n + size - 1) // size, 1) if size else 1
        sizes = [min(size, n - i * size) for i in range(count)]
        return _several_views(tensor, _pieces(a, d, sizes), SplitBackward0, a.shape, tuple(sizes), d)
    sizes = [int(s) for s in split_size_or_sections]
    if sum(sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}), "
            "but got "
            f"split_sizes={brackets(sizes)}"
        )
    return _several_views(tensor, _pieces(a, d, sizes), SplitWithSizesBackward0, a.shape, tuple(sizes), d)


register("split", split, F="split")
Tensor.split = lambda self, split_size, dim=0: split(self, split_size, dim)  # type: ignore[attr-defined]
register("split_with_sizes", lambda self, split_sizes, dim=0: split(self, list(split_sizes), dim))


@op("chunk")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size but the last."""
    if input._a.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input._a.shape[wrap_dim(dim, input._a.ndim)]
    size = (n + chunks - 1) // chunks
    if size == 0 and n == 0:
        return split(input, [0] * chunks, dim)
    return split(input, size, dim)


UnsafeSplitBackward0 = node_class("UnsafeSplitBackward0", _split_rule)


@op("unsafe_chunk")
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk` for a tensor that nobody else will look at: its parts are no views."""
    a = input._a
    d = wrap_dim(dim, a.ndim)
    size = (a.shape[d] + chunks - 1) // chunks
    sizes = [min(size, a.shape[d] - i * size) for i in range(max((a.shape[d] + size - 1) // max(size, 1), 1))]
    outs = tuple(wrap(part, input.dtype) for part in _pieces(a, d, sizes))
    if input._rg and modes.grad:
        record_several(UnsafeSplitBackward0, outs, (input,), (a.shape, tuple(sizes), d))
    return outs


@op("tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    d = wrap_dim(dim, input._a.ndim)
    n = input._a.shape[d]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {k}")
        ends = [(n // k) * (i + 1) + min(i + 1, n % k) for i in range(k)]
    else:
        ends = [min(max(e + n if e < 0 else e, 0), n) for e in indices_or_sections] + [n]
    outs, start = [], 0
    for e in ends:
        outs.append(slice_view(input, d, start, max(e, start), 1))
        start = e
    return tuple(outs)


for _name, _dim in (("hsplit", 1), ("vsplit", 0), ("dsplit", 2)):
    register(
        _name,
        lambda input, indices_or_sections, _d=_dim: tensor_split(
            input, indices_or_sections, 0 if _d == 1 and input._a.ndim == 1 else _d
        ),
    )


@op("unbind", F="unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A view of each place of a dimension."""
    a = input._a
    if a.ndim == 0:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, a.ndim)
    lead = (slice(None),) * d
    return _several_views(input, [a[(*lead, i, ...)] for i in range(a.shape[d])], UnbindBackward0, d)
