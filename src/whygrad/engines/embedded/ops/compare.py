"""Comparisons, logic, bits, remainders: what gives bool or integers, and what is flat almost everywhere."""

# mypy: no-warn-return-any
from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import bool_
from ..graph import Node, node_class
from ..tensor import Tensor
from .arithmetic import compute
from .define import check_tensor, finished, in_place, op, record, register, tracking
from .promote import broadcast_error, in_type, result_type


def _comparison(name: str, operation: Any, aliases: tuple[str, ...] = ()) -> Any:
    def apply(input: Tensor, other: Any) -> Any:
        if isinstance(other, np.generic):
            other = other.item()
        if not isinstance(other, (Tensor, int, float, complex)):
            return NotImplemented
        xa: Any
        if input.dtype.plain and (other.__class__ is float or other.__class__ is int):
            return finished(operation(input._a, other), bool_)
        d = result_type(input, other)
        if d.kind == "i" and not isinstance(other, Tensor):
            return finished(operation(input._a, other), bool_)
        xa, ya = in_type(input, d), in_type(other, d)
        try:
            a = operation(xa, ya)
        except ValueError:
            raise broadcast_error(xa.shape, ya.shape) from None
        return finished(a, bool_)

    def public(input: Tensor, other: Any) -> Tensor:
        check_tensor(name, input)
        out = apply(input, other)
        if out is NotImplemented:
            raise TypeError(f"{name}(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
        return out

    for n in (name, *aliases):
        register(n, public, F=n)
        in_place(n, public, cast=True)
    setattr(Tensor, f"__{name}__", apply)
    return public


eq = _comparison("eq", operator.eq)
ne = _comparison("ne", operator.ne, ("not_equal",))
lt = _comparison("lt", operator.lt, ("less",))
le = _comparison("le", operator.le, ("less_equal",))
gt = _comparison("gt", operator.gt, ("greater",))
ge = _comparison("ge", operator.ge, ("greater_equal",))


def _logical(name: str, kernel: Any) -> None:
    def apply(input: Tensor, other: Tensor) -> Tensor:
        check_tensor(name, input)
        check_tensor(name, other, 2, "other")
        try:
            return finished(kernel(input._a, other._a), bool_)
        except ValueError:
            raise broadcast_error(input._a.shape, other._a.shape) from None

    apply.__name__ = name
    register(name, apply)
    in_place(name, apply, cast=True)


_logical("logical_and", np.logical_and)
_logical("logical_or", np.logical_or)
_logical("logical_xor", np.logical_xor)


@op("logical_not")
def logical_not(input: Tensor) -> Tensor:
    return finished(np.logical_not(input._a), bool_)


in_place("logical_not", logical_not, cast=True)


def _bitwise(name: str, kernel: Any, dunder: str | None, cpp: str) -> None:
    def apply(input: Any, other: Any) -> Any:
        if not isinstance(input, Tensor):
            from .factories import tensor

            input = tensor(input)
        if not isinstance(other, (Tensor, int, bool)):
            return NotImplemented
        d = result_type(input, other)
        if d.kind not in "ib" or (d is bool_ and "shift" in cpp):
            raise RuntimeError(f"\"{cpp}\" not implemented for '{d.legacy}'")
        return compute(kernel, input, other, d)

    apply.__name__ = name
    register(name, apply)
    in_place(name, apply)
    if dunder:
        setattr(Tensor, f"__{dunder}__", apply)
        setattr(Tensor, f"__r{dunder}__", lambda x, y: apply(y, x))
        setattr(Tensor, f"__i{dunder}__", lambda x, y: getattr(x, name + "_")(y))


_bitwise("bitwise_and", np.bitwise_and, "and", "bitwise_and_cpu")
_bitwise("bitwise_or", np.bitwise_or, "or", "bitwise_or_cpu")
_bitwise("bitwise_xor", np.bitwise_xor, "xor", "bitwise_xor_cpu")
_bitwise("bitwise_left_shift", np.left_shift, "lshift", "lshift_cpu")
_bitwise("bitwise_right_shift", np.right_shift, "rshift", "rshift_cpu")


@op("bitwise_not")
def bitwise_not(input: Tensor) -> Tensor:
    if input.dtype.kind not in "ib":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return finished(np.invert(input._a), input.dtype)


in_place("bitwise_not", bitwise_not)
Tensor.__invert__ = bitwise_not


def _floor_mod(x: Any, y: Any) -> Any:
    if x.dtype.kind != "f":
        return np.remainder(x, y)
    r = np.fmod(x, y)
    return np.where((r != 0) & ((y < 0) != (r < 0)), r + y, r).astype(x.dtype)


def _remainder_rule(F: Any, node: Node, g: Any, x: Any, y: Any) -> Any:
    """x mod y = x - floor(x/y) y (or trunc for fmod)."""
    dx = g if node.edges[0] is not None else None
    if len(node.edges) == 1:
        return dx
    dy = None if node.edges[1] is None else -g * (F.floor(x / y) if node.floors else F.trunc(x / y))
    return dx, dy


def _modulo(name: str, kernel: Any, stem: str, floors: bool) -> Any:
    with_number = node_class(f"{stem}Backward0", _remainder_rule)
    with_tensor = node_class(f"{stem}Backward1", _remainder_rule, ("self", "other"))
    with_number.floors = with_tensor.floors = floors  # type: ignore[attr-defined]

    def apply(input: Any, other: Any) -> Any:
        if not isinstance(input, Tensor):
            from .factories import tensor

            input = tensor(input)
        if not isinstance(other, (Tensor, int, float)):
            return NotImplemented
        d = result_type(input, other)
        if d is bool_:
            raise RuntimeError(f"\"{name}_cpu\" not implemented for 'Bool'")
        if d.kind == "i":
            zero = (other._a == 0).any() if isinstance(other, Tensor) else other == 0
            if zero:
                raise RuntimeError("ZeroDivisionError")
        out = compute(kernel, input, other, d)
        if isinstance(other, Tensor):
            if tracking(input, other):
                record(with_tensor, out, (input, other), (input, other) if other._rg else (None, None))
        elif tracking(input):
            record(with_number, out, (input,), (None, None))
        return out

    apply.__name__ = name
    register(name, apply)
    in_place(name, apply)
    return apply


remainder = _modulo("remainder", _floor_mod, "Remainder", True)
fmod = _modulo("fmod", np.fmod, "Fmod", False)
Tensor.__mod__ = remainder
Tensor.__rmod__ = lambda x, y: remainder(y, x)  # type: ignore[attr-defined]
Tensor.__imod__ = lambda x, y: x.remainder_(y)  # type: ignore[attr-defined]


def _test(name: str, kernel: Any, for_integers: bool) -> None:
    def apply(input: Tensor) -> Tensor:
        check_tensor(name, input)
        if input.dtype.kind in "ib":
            return finished(np.full(input._a.shape, for_integers)[()], bool_)
        return finished(kernel(input._a), bool_)

    apply.__name__ = name
    register(name, apply, F=name)


_test("isnan", np.isnan, False)
_test("isinf", np.isinf, False)
_test("isfinite", np.isfinite, True)
_test("isposinf", np.isposinf, False)
_test("isneginf", np.isneginf, False)
_test("signbit", np.signbit, False)


@op("isreal")
def isreal(input: Tensor) -> Tensor:
    return finished(np.isreal(input._a), bool_)


@op("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are the same."""
    check_tensor("equal", input)
    check_tensor("equal", other, 2, "other")
    return builtins.bool(input._a.shape == other._a.shape and (input._a == other._a).all())


def _close(x: Tensor, y: Tensor, rtol: float, atol: float, equal_nan: bool) -> Any:
    if x.dtype is not y.dtype:
        raise RuntimeError(f"{x.dtype.legacy} did not match {y.dtype.legacy}")
    a, b = x._a, y._a
    if x.dtype.kind in "ib":
        a, b = a.astype(np.float64), b.astype(np.float64)
    try:
        close = np.isclose(a, b, rtol, atol, equal_nan)
    except ValueError:
        raise broadcast_error(a.shape, b.shape) from None
    return close


@op("isclose")
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    return finished(_close(input, other, rtol, atol, equal_nan), bool_)


@op("allclose")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    return builtins.bool(np.all(_close(input, other, rtol, atol, equal_nan)))


@op("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    return input._a.shape == other._a.shape


@op("heaviside")
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return finished(np.heaviside(input._a, values._a).astype(input.dtype.storage), input.dtype)


@op("is_tensor", method=False)
def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)


@op("is_floating_point", method=False)
def is_floating_point(input: Tensor) -> bool:
    check_tensor("is_floating_point", input)
    return input.dtype.is_floating_point


@op("is_complex", method=False)
def is_complex(input: Tensor) -> bool:
    return input.dtype.is_complex


@op("is_nonzero")
def is_nonzero(input: Tensor) -> bool:
    return builtins.bool(input)


register("numel", lambda input: input.numel(), method=False)
register("result_type", lambda tensor1, tensor2: result_type(tensor1, tensor2), method=False)
register("can_cast", dtypes.can_cast, method=False)
register("promote_types", dtypes.promote_types, method=False)
