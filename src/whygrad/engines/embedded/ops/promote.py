"""Which type an operation computes in: PyTorch's promotion of tensors, tensors without dimensions, and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import dtype, promote_types
from ..tensor import Tensor


def combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """A tensor without dimensions (or a number) changes the type only if its kind is higher."""
    if higher is None:
        return lower
    if lower is None or higher.kind == "c":
        return higher
    if higher.kind == "f":
        return higher.to_complex() if lower.kind == "c" else higher
    if higher.kind == "b" or lower.kind in "fc":
        return promote_types(higher, lower)
    return higher


def result_type(*operands: Any) -> dtype:
    """The type of an operation on these tensors and numbers."""
    with_dims = without = numbers = None
    for o in operands:
        if isinstance(o, Tensor):
            if o._a.ndim:
                with_dims = o.dtype if with_dims is None else promote_types(with_dims, o.dtype)
            else:
                without = o.dtype if without is None else promote_types(without, o.dtype)
        else:
            d = dtypes.of_scalar(o)
            numbers = d if numbers is None else promote_types(numbers, d)
    found = combine(combine(with_dims, without), numbers)
    assert found is not None
    return found


def in_type(operand: Any, d: dtype) -> Any:
    """An operand's numbers in the type `d` computes in."""
    if isinstance(operand, Tensor):
        a = operand._a
        return a if a.dtype is d.compute else dtypes.store(a, d).astype(d.compute, copy=False)
    return scalar_in(operand, d)


_C_NAMES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t"}


def scalar_in(value: Any, d: dtype) -> Any:
    if d.kind == "i":
        value = int(value)
        info = np.iinfo(d.storage)
        low = -int(info.max) - 1 if d is dtypes.uint8 else int(info.min)
        if not low <= value <= int(info.max):
            raise RuntimeError(f"value cannot be converted to type {_C_NAMES[d._name]} without overflow")
        return d.scalar(value % 256 if d is dtypes.uint8 else value)
    return d.compute.type(value)


def broadcast_error(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError:
    ndim = max(len(a), len(b))
    for i in range(ndim - 1, -1, -1):
        m, n = _at(a, ndim, i), _at(b, ndim, i)
        if m != n and m != 1 and n != 1:
            return RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {i}"
            )
    return RuntimeError(f"shapes {list(a)} and {list(b)} do not broadcast")


def _at(shape: tuple[int, ...], ndim: int, i: int) -> int:
    j = i - (ndim - len(shape))
    return shape[j] if j >= 0 else 1


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    out: tuple[int, ...] = ()
    for s in shapes:
        try:
            out = np.broadcast_shapes(out, s)
        except ValueError:
            raise broadcast_error(out, s) from None
    return out
