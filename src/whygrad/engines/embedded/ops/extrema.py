"""Extrema: max, min, amax, argmax, all, any."""

# mypy: no-warn-return-any
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import int64
from ..graph import Node, node_class
from ..tensor import Tensor, wrap_dim
from .define import (
    SavedOutput,
    check_tensor,
    differentiable,
    finished,
    op,
    record,
    record_several,
    register,
    tracking,
)
from .reduce import dims_of, spread


def named_result(name: str, fields: tuple[str, ...]) -> Any:
    """A `torch.return_types` tuple, printed as PyTorch prints it."""

    def __repr__(self: Any) -> str:  # noqa: N807
        inner = ",\n".join(f"{f}={getattr(self, f)!r}" for f in fields)
        return f"torch.return_types.{name}(\n{inner})"

    cls = namedtuple(name, fields)  # type: ignore[misc]
    cls.__repr__ = __repr__  # type: ignore[method-assign]
    cls.__module__ = "torch.return_types"
    return cls


RESULT = {
    n: named_result(n, ("values", "indices"))
    for n in ("max", "min", "sort", "topk", "kthvalue", "median", "mode", "cummax", "cummin", "nanmedian")
}
RESULT["aminmax"] = named_result("aminmax", ("min", "max"))


def _evenly_rule(F: Any, node: Node, g: Any, x: Any, r: Any) -> Any:
    """All elements that are the extremum share the gradient evenly."""
    mask = F.isnan(x) if np.isnan(F.numbers(r)).any() else x == r
    return F.where(mask, g / int(np.sum(F.numbers(mask))), 0.0)


def _shared_rule(F: Any, node: Node, g: Any, x: Any, r: Any, dims: Any, keep: bool) -> Any:
    shape = tuple(x.shape)
    mask = x == spread(F, r, shape, dims, keep)
    count = np.sum(F.numbers(mask), axis=dims, keepdims=True) if shape else 1
    return F.where(mask, spread(F, g, shape, dims, keep) / F.constant(count, g), 0.0)


def _selected_rule(F: Any, node: Node, g: Any, indices: Any, shape: Any, dim: int, keep: bool) -> Any:
    """The gradient goes to the element that was selected."""
    g = g[0]
    if g is None:
        return None
    if not shape:
        return g
    if not keep:
        g, indices = F.unsqueeze(g, dim), np.expand_dims(indices, dim)
    return F.scatter_add_zeros(g, dim, indices, shape)


MaxBackward1 = node_class("MaxBackward1", _evenly_rule, ("self", "result"))
MinBackward1 = node_class("MinBackward1", _evenly_rule, ("self", "result"))
AmaxBackward0 = node_class("AmaxBackward0", _shared_rule, ("self", "result"))
AminBackward0 = node_class("AminBackward0", _shared_rule, ("self", "result"))


def _need_elements(name: str, a: Any, dim: Any) -> None:
    if a.size == 0 and dim is None:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the "
            "'dim' argument."
        )
    if dim is not None and a.ndim and a.shape[wrap_dim(dim, a.ndim)] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {wrap_dim(dim, a.ndim)} to have non-zero size.")


def _extremum(name: str, reduce: Any, arg: Any, stem: str) -> Any:
    along_node = node_class(f"{stem}Backward0", _selected_rule)
    whole_node = MaxBackward1 if name == "max" else MinBackward1

    def apply(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        check_tensor(name, input)
        a = input._a
        if isinstance(dim, Tensor):
            return getattr(differentiable, "maximum" if name == "max" else "minimum")(input, dim)
        _need_elements(name, a, dim)
        if dim is None:
            out = finished(reduce(a), input.dtype)
            if tracking(input):
                record(whole_node, out, (input,), (input, SavedOutput(out)))
            return out
        where = wrap_dim(dim, a.ndim)
        indices = arg(a, axis=where, keepdims=keepdim) if a.ndim else np.int64(0)
        if a.ndim:
            full = indices if keepdim else np.expand_dims(indices, where)
            values = np.take_along_axis(a, full, where)  # type: ignore[arg-type]
            values = values if keepdim else values.squeeze(where)
        else:
            values = a
        outs = (
            finished(values[()] if not values.ndim else values, input.dtype),
            finished(indices.astype(np.int64), int64),
        )
        if tracking(input):
            record_several(along_node, outs, (input,), (indices, a.shape, where, keepdim), holds=True)
        return RESULT[name](*outs)

    apply.__name__ = name

    def all_forms(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        return apply(input, dim if other is None else other, keepdim)

    register(name, all_forms)
    return apply


max_ = _extremum("max", np.max, np.argmax, "Max")
min_ = _extremum("min", np.min, np.argmin, "Min")


def _amax(name: str, reduce: Any, cls: type[Node]) -> None:
    def apply(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        check_tensor(name, input)
        a = input._a
        dims = dims_of(dim, a.ndim)
        if a.size == 0:
            if dim in ((), None):
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                    "reduction dim "
                    "with the 'dim' argument."
                )
            for d in dims:
                if a.shape[d] == 0:
                    raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        out = finished(reduce(a, axis=dims, keepdims=keepdim) if a.ndim else a, input.dtype)
        if tracking(input):
            record(cls, out, (input,), (input, SavedOutput(out), dims, keepdim))
        return out

    apply.__name__ = name
    register(name, apply, F=name)


_amax("amax", np.max, AmaxBackward0)
_amax("amin", np.min, AminBackward0)


@op("aminmax")
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    dims = () if dim is None else dim
    return RESULT["aminmax"](differentiable.amin(input, dims, keepdim), differentiable.amax(input, dims, keepdim))


def _arg(name: str, kernel: Any) -> None:
    def apply(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        check_tensor(name, input)
        a = input._a
        if a.size == 0:
            _need_elements(name, a, dim)
        if dim is None:
            r = np.int64(kernel(a))
            return finished(r.reshape((1,) * a.ndim) if keepdim else r, int64)
        where = wrap_dim(dim, a.ndim)
        r = kernel(a, axis=where, keepdims=keepdim) if a.ndim else np.int64(0)
        return finished(r.astype(np.int64), int64)

    apply.__name__ = name
    register(name, apply)


_arg("argmax", np.argmax)
_arg("argmin", np.argmin)


def _truth(name: str, kernel: Any) -> None:
    def apply(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        a = input._a
        r = kernel(a, axis=dims_of(dim, a.ndim), keepdims=keepdim) if a.ndim else np.bool_(a != 0)
        d = dtypes.uint8 if input.dtype is dtypes.uint8 else dtypes.bool_
        return finished(r.astype(d.storage), d)

    apply.__name__ = name
    register(name, apply)


_truth("all", np.all)
_truth("any", np.any)


@op("count_nonzero")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    a = input._a
    return finished(np.asarray(np.count_nonzero(a, axis=dims_of(dim, a.ndim))).astype(np.int64)[()], int64)
