"""Views and rearrangements: the same numbers in another shape or order."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes, kernels
from ..dtypes import Size
from ..graph import Node, node_class
from ..tensor import Tensor, brackets, share, wrap_dim
from ..warn import warn
from .define import (
    check_tensor,
    differentiable,
    not_covered,
    op,
    record,
    register,
    tracking,
    view_operation,
    wrap,
)
from .promote import broadcast_shape


def sizes_of(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(shape) == 1 and not isinstance(shape[0], (int, Tensor, np.integer)):
        shape = tuple(shape[0])
    return tuple(s if s.__class__ is int else s.__index__() for s in shape)


def infer_shape(sizes: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """Fill in a -1."""
    unknown = [i for i, s in enumerate(sizes) if s == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for s in sizes:
        if s < -1:
            raise RuntimeError(f"invalid shape dimension {s}")
    known = math.prod(s for s in sizes if s != -1)
    if unknown:
        if known == 0 and numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {brackets(sizes)} because the unspecified "
                "dimension size "
                "-1 can be any value and is ambiguous"
            )
        if known == 0 or numel % known:
            raise RuntimeError(f"shape '{brackets(sizes)}' is invalid for input of size {numel}")
        sizes = tuple(numel // known if s == -1 else s for s in sizes)
    elif known != numel:
        raise RuntimeError(f"shape '{brackets(sizes)}' is invalid for input of size {numel}")
    return sizes


def usual_order(memory_format: Any) -> None:
    """Elements lie row by row here; channels_last is refused."""
    if memory_format is dtypes.channels_last:
        not_covered("torch.channels_last")


def _back_to_shape(F: Any, node: Node, g: Any, shape: tuple[int, ...]) -> Any:
    """A reshape's gradient is a reshape."""
    return F.reshape(g, shape)


ViewBackward0 = node_class("ViewBackward0", _back_to_shape)
UnsafeViewBackward0 = node_class("UnsafeViewBackward0", _back_to_shape)
CloneBackward0 = node_class("CloneBackward0", lambda F, node, g: g)
AliasBackward0 = node_class("AliasBackward0", lambda F, node, g: g)


@op("view", torch=False)
def view(self: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape; refused where that needs a copy."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        not_covered("Tensor.view(dtype)")
    sizes = infer_shape(sizes_of(shape if size is None else (size,)), self._a.size)
    share(self)
    a = self._a.reshape(sizes)
    if not np.may_share_memory(a, self._a) and a.size:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return view_operation(ViewBackward0, self, a, self._a.shape)


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Another shape: a view where possible, else a copy."""
    sizes = infer_shape(sizes_of(shape), input._a.size)
    share(input)
    a = input._a.reshape(sizes)
    if np.may_share_memory(a, input._a) or a.size == 0:
        return view_operation(ViewBackward0, input, a, input._a.shape)
    out = wrap(a, input.dtype)
    if tracking(input):
        copied = clone(input)
        record(UnsafeViewBackward0, out, (copied,), (input._a.shape,))
    return out


def unsafe_view(input: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """A fresh result in another shape: nobody knows the old one, so it is no view."""
    out = wrap(input._a.reshape(sizes), input.dtype)
    if tracking(input):
        record(UnsafeViewBackward0, out, (input,), (input._a.shape,))
    return out


register("reshape", lambda input, *shape, **k: reshape(input, *(shape or (k["shape"],))), F="reshape")


@op("view_as", torch=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    return view(self, other.shape)


@op("reshape_as", torch=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    return reshape(self, other.shape)


@op("clone", F="clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with the same history."""
    usual_order(memory_format)
    a = input._a
    out = wrap(np.array(a, order="K") if isinstance(a, np.ndarray) else a, input.dtype)
    if tracking(input):
        record(CloneBackward0, out, (input,))
    return out


@op("contiguous", torch=False)
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    usual_order(memory_format)
    if is_contiguous(self):
        return self
    out = wrap(np.ascontiguousarray(self._a), self.dtype)
    if tracking(self):
        record(CloneBackward0, out, (self,))
    return out


@op("is_contiguous", torch=False)
def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    usual_order(memory_format)
    return not isinstance(self._a, np.ndarray) or bool(self._a.flags.c_contiguous)


@op("stride", torch=False)
def stride(self: Tensor, dim: int | None = None) -> Any:
    """Steps in elements; where NumPy leaves the step of a size-1 dimension free, PyTorch's choice."""
    a = np.asarray(self._a)
    steps = [s // a.itemsize for s in a.strides]
    if a.flags.c_contiguous:
        step = 1
        for i in range(a.ndim - 1, -1, -1):
            if a.shape[i] == 1 or a.size == 0:
                steps[i] = step
            step *= max(a.shape[i], 1)
    return tuple(steps) if dim is None else steps[wrap_dim(dim, a.ndim)]


@op("storage_offset", torch=False)
def storage_offset(self: Tensor) -> int:
    return (address(self._a) - address(memory(self))) // int(self._a.itemsize)


def memory(x: Tensor) -> Any:
    """The array that owns the memory in which a tensor lies."""
    share(x)
    owner = x._a
    while True:
        base = getattr(owner.base, "base", None) if not isinstance(owner.base, np.ndarray) else owner.base
        if not isinstance(base, np.ndarray):  # `as_strided` puts an object of its own between
            return owner
        owner = base


def address(a: Any) -> int:
    return int(a.__array_interface__["data"][0])


class Storage:
    """The memory that tensors share, as far as anybody needs to ask: where it lies and how large it is."""

    def __init__(self, array: Any):
        self._array = array

    def data_ptr(self) -> int:
        return address(self._array)

    def nbytes(self) -> int:
        return int(self._array.nbytes)

    size = __len__ = nbytes


@op("untyped_storage", torch=False)
def untyped_storage(self: Tensor) -> Storage:
    return Storage(memory(self))


@op("data_ptr", torch=False)
def data_ptr(self: Tensor) -> int:
    share(self)
    return address(self._a)


def _geometry(name: str, cls: type[Node], forward: Any) -> Any:
    """A view made by a function of the array that also says what backward needs."""

    def apply(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_tensor(name, input)
        share(input)
        a, saved = forward(input._a, *args, **kwargs)
        return view_operation(cls, input, a, *saved)

    apply.__name__ = name
    register(name, apply, F=name)
    return apply


def _transpose(a: Any, dim0: int, dim1: int) -> Any:
    i, j = wrap_dim(dim0, a.ndim), wrap_dim(dim1, a.ndim)
    return (a.swapaxes(i, j) if a.ndim else a.view()), (i, j)


TransposeBackward0 = node_class("TransposeBackward0", lambda F, node, g, i, j: F.transpose(g, i, j))
TBackward0 = node_class("TBackward0", lambda F, node, g: F.transpose(g, 0, 1) if len(g.shape) == 2 else g)
PermuteBackward0 = node_class(
    "PermuteBackward0", lambda F, node, g, dims: F.permute(g, tuple(int(d) for d in np.argsort(dims)))
)
transpose = _geometry("transpose", TransposeBackward0, _transpose)
for _alias in ("swapaxes", "swapdims"):
    register(_alias, lambda input, axis0, axis1: transpose(input, axis0, axis1))


def _t(a: Any) -> Any:
    if a.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return a.T, ()


t = _geometry("t", TBackward0, _t)


def permute(input: Tensor, *dims: Any) -> Tensor:
    """Dimensions in another order."""
    order = sizes_of(dims)
    share(input)
    ndim = input._a.ndim
    if len(order) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    wrapped = tuple(wrap_dim(d, ndim) for d in order)
    if len(set(wrapped)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return view_operation(PermuteBackward0, input, input._a.transpose(wrapped), wrapped)


register("permute", lambda input, *dims, **k: permute(input, *(dims or (k["dims"],))), F="permute")


def _numpy_t(x: Tensor) -> Tensor:
    if x._a.ndim not in (0, 2):
        warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
            "will throw "
            "an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange("
            "x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return permute(x, tuple(range(x._a.ndim - 1, -1, -1)))


def _matrix_t(x: Tensor) -> Tensor:
    if x._a.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {x._a.ndim}-D tensor.")
    return transpose(x, -2, -1)


Tensor.T = property(_numpy_t)  # type: ignore[attr-defined]
Tensor.mT = property(_matrix_t)  # type: ignore[attr-defined]
Tensor.H = property(lambda x: t(x))  # type: ignore[attr-defined]
Tensor.mH = property(_matrix_t)  # type: ignore[attr-defined]
Tensor.real = property(lambda x: x)  # type: ignore[attr-defined]
register("adjoint", _matrix_t)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    n = input._a.ndim
    src = [wrap_dim(d, n) for d in ([source] if isinstance(source, int) else source)]
    dst = [wrap_dim(d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    order = [d for d in range(n) if d not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return permute(input, tuple(order))


register("movedim", movedim)
register("moveaxis", movedim)

UnsqueezeBackward0 = node_class("UnsqueezeBackward0", lambda F, node, g, dim: F.squeeze(g, dim))
SqueezeBackward0 = node_class("SqueezeBackward0", _back_to_shape)
SqueezeBackward1 = node_class("SqueezeBackward1", _back_to_shape)
SqueezeBackward2 = node_class("SqueezeBackward2", _back_to_shape)


def _unsqueeze(a: Any, dim: int) -> Any:
    n = a.ndim + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    where = dim + n if dim < 0 else dim
    shape = (*a.shape[:where], 1, *a.shape[where:])
    return (a.reshape(shape) if a.flags.c_contiguous else np.expand_dims(a, where)), (where,)


unsqueeze = _geometry("unsqueeze", UnsqueezeBackward0, _unsqueeze)


@op("squeeze", F="squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1."""
    check_tensor("squeeze", input)
    share(input)
    a = input._a
    if dim is None:
        return view_operation(SqueezeBackward0, input, a.squeeze(), a.shape)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    dims = tuple(wrap_dim(d, a.ndim) for d in dims)
    if len(set(dims)) != len(dims):
        raise RuntimeError(
            f"dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    gone = tuple(d for d in dims if a.ndim and a.shape[d] == 1)
    cls = SqueezeBackward1 if isinstance(dim, int) else SqueezeBackward2
    return view_operation(cls, input, a.squeeze(gone) if gone else a.view(), a.shape)


ExpandBackward0 = node_class("ExpandBackward0", lambda F, node, g, shape: F.sum_to(g, shape))


def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Dimensions of size 1 repeated without a copy."""
    wanted = sizes_of(sizes)
    share(input)
    a = input._a
    if len(wanted) < a.ndim:
        raise RuntimeError(
            f"expand(torch.{input.dtype.legacy}Tensor{{{brackets(a.shape)}}}, size={brackets(wanted)}): the number of "
            f"sizes provided ({len(wanted)}) must be greater or equal to the number of dimensions in the tensor "
            f"({a.ndim})"
        )
    lead = len(wanted) - a.ndim
    shape = []
    for i, s in enumerate(wanted):
        if i < lead:
            if s == -1:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}"
                )
            shape.append(s)
        else:
            have = a.shape[i - lead]
            if s == -1:
                s = have
            if have not in (1, s):
                raise RuntimeError(
                    f"The expanded size of the tensor ({s}) must match the existing size ({have}) at non-singleton "
                    f"dimension {i}.  Target sizes: {brackets(wanted)}.  Tensor sizes: {brackets(a.shape)}"
                )
            shape.append(s)
    out = np.broadcast_to(a, tuple(shape))
    return view_operation(ExpandBackward0, input, out, a.shape)


Tensor.expand = lambda self, *sizes, **k: expand(self, *(sizes or (k["size"],)))  # type: ignore[attr-defined]
differentiable.expand = expand


@op("expand_as", torch=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    return expand(self, other.shape)


@op("broadcast_to", F="broadcast_to")
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    return expand(input, size)


@op("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    many = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    shape = broadcast_shape(*(t._a.shape for t in many))
    return tuple(expand(t, shape) for t in many)


register(
    "broadcast_shapes",
    lambda *shapes: Size(broadcast_shape(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes])),
    method=False,
)


@op("sum_to_size", torch=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    shape = sizes_of(size)
    if not kernels.expandable(shape, self._a.shape):
        raise RuntimeError(f"size {{{brackets(shape)}}} is not expandable to size {{{brackets(self._a.shape)}}}.")
    return sum_to(self, shape)


def sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    if x._a.shape == tuple(shape):
        return x
    lead = x._a.ndim - len(shape)
    axes = (*range(lead), *(i + lead for i, s in enumerate(shape) if s == 1 and x._a.shape[i + lead] != 1))
    return reshape(x.sum(axes, True) if axes else x, tuple(shape))


differentiable.sum_to = sum_to


@op("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join neighbouring dimensions."""
    a = input._a
    i, j = wrap_dim(start_dim, a.ndim), wrap_dim(end_dim, a.ndim)
    if i > j:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if a.ndim == 0:
        return reshape(input, (1,))
    if i == j:
        return input
    return reshape(input, (*a.shape[:i], math.prod(a.shape[i : j + 1]), *a.shape[j + 1 :]))


@op("ravel")
def ravel(input: Tensor) -> Tensor:
    return reshape(contiguous(input), (-1,))


@op("unflatten")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    i = wrap_dim(dim, input._a.ndim)
    sizes = tuple(sizes)
    have = input._a.shape[i]
    if math.prod(sizes) != have and -1 not in sizes:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {i} ({have}) in the "
            "input tensor"
        )
    return view(input, (*input._a.shape[:i], *infer_shape(sizes, have), *input._a.shape[i + 1 :]))
