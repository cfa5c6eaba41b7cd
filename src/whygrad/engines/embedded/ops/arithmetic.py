"""+, -, *, / and their kin, with the shortest path from call to result for float tensors."""

# mypy: no-warn-return-any
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..graph import Node, changed_in_place, node_class, sequence
from ..modes import modes
from ..tensor import Tensor
from ..warn import user_stack
from .define import (
    INFERENCE_SAVED,
    TORCH,
    check_tensor,
    differentiable,
    finished,
    in_place,
    op,
    record,
    register,
    tracking,
)
from .promote import broadcast_error, in_type, result_type

_new = object.__new__
Saves = Callable[[Any, Any], tuple[Any, ...]]


def compute(operation: Any, x: Any, y: Any, d: dtypes.dtype) -> Tensor:
    """An elementwise operation in type `d`, broadcast."""
    xa, ya = in_type(x, d), in_type(y, d)
    try:
        a = operation(xa, ya)
    except ValueError:
        raise broadcast_error(xa.shape, ya.shape) from None
    return finished(a, d)


def arithmetic(operation: Any, cls: type[Node], saves: Any) -> Any:
    """`x (operation) y` for a tensor and a tensor or number. `saves`: 'none', 'both' (mul) or 'other' (div)."""
    saves_both, saves_other = saves == "both", saves == "other"

    def apply(x: Tensor, y: Any) -> Any:
        d = x.dtype
        kind = y.__class__
        if kind is float or kind is int:
            tracked, other_tracked = x._rg, False
            if d.plain:
                a = operation(x._a, y)
            else:
                return _slow(x, y)
        elif isinstance(y, Tensor):
            if d is not y.dtype or not d.plain:
                return _slow(x, y)
            other_tracked = y._rg
            tracked = x._rg or other_tracked
            try:
                a = operation(x._a, y._a)
            except ValueError:
                raise broadcast_error(x._a.shape, y._a.shape) from None
        else:
            return _slow(x, y)
        out = _new(Tensor)
        out._a = a
        out.dtype = d
        out._vc = [0] if not modes.inference else None
        if tracked and modes.grad:
            out._rg = True
            node = out._edge = _new(cls)
            node.edges = (
                (x._edge or x) if x._rg else None,
                (y._edge or y) if other_tracked else None,
            )
            node.shape = a.shape
            node.dtype = d
            node.seq = next(sequence)
            if saves_both:
                node.saved = (x if other_tracked else None, y if x._rg else None)
            elif saves_other:
                node.saved = (x if other_tracked else None, y)
            else:
                node.saved = ()
                node.versions = None
                if modes.anomaly:
                    _remember_stack(node)
                return out
            vx, vy = x._vc, (y._vc if kind is not float and kind is not int else _ZERO)
            if vx is None or vy is None:
                _refuse_inference(node)
            node.versions = (vx[0] if vx else 0, vy[0] if vy else 0)
            if modes.anomaly:
                _remember_stack(node)
        else:
            out._rg = False
            out._edge = None
        return out

    def _slow(x: Tensor, y: Any) -> Any:
        if isinstance(y, np.generic):
            y = y.item()
        if not isinstance(y, (Tensor, int, float, complex)):
            return NotImplemented
        d = result_type(x, y)
        if (cls is DivBackward0) and d.kind in "ib":
            d = dtypes.Defaults.floating
        out = compute(operation, x, y, d)
        if tracking(x, y if isinstance(y, Tensor) else None):
            other = y if isinstance(y, Tensor) else None
            if saves_both:
                saved: tuple[Any, ...] = (x if other is not None and other._rg else None, y if x._rg else None)
            elif saves_other:
                saved = (x if other is not None and other._rg else None, y)
            else:
                saved = ()
            record(cls, out, (x, other), saved, holds=bool(saved))
        return out

    return apply


_ZERO = [0]


def _refuse_inference(node: Node) -> None:
    for s in node.saved or ():
        if isinstance(s, Tensor) and s._vc is None:
            raise RuntimeError(INFERENCE_SAVED)


def _remember_stack(node: Node) -> None:
    node.stack = user_stack()


def _add_rule(F: Any, node: Node, g: Any) -> Any:
    """z = x + y;  dz/dx = 1, dz/dy = 1."""
    return g, g


def _sub_rule(F: Any, node: Node, g: Any) -> Any:
    """z = x - y;  dz/dx = 1, dz/dy = -1."""
    return g, (-g if node.edges[1] is not None else None)


def _mul_rule(F: Any, node: Node, g: Any, x: Any, y: Any) -> Any:
    """z = x * y;  dz/dx = y, dz/dy = x."""
    return (None if y is None else g * y), (None if x is None else g * x)


def _div_rule(F: Any, node: Node, g: Any, x: Any, y: Any) -> Any:
    """z = x / y;  dz/dx = 1/y, dz/dy = -(x/y)/y."""
    edges = node.edges
    return (None if edges[0] is None else g / y), (None if edges[1] is None else -g * ((x / y) / y))


AddBackward0 = node_class("AddBackward0", _add_rule)
SubBackward0 = node_class("SubBackward0", _sub_rule)
MulBackward0 = node_class("MulBackward0", _mul_rule, ("self", "other"))
DivBackward0 = node_class("DivBackward0", _div_rule, ("self", "other"))

_add = arithmetic(operator.add, AddBackward0, "none")
_sub_any = arithmetic(operator.sub, SubBackward0, "none")
_mul = arithmetic(operator.mul, MulBackward0, "both")
_div = arithmetic(operator.truediv, DivBackward0, "other")


def _is_bool(v: Any) -> bool:
    return v.dtype is dtypes.bool_ if isinstance(v, Tensor) else isinstance(v, bool)


def _sub(x: Tensor, y: Any) -> Any:
    if x.dtype is dtypes.bool_:
        if isinstance(y, (Tensor, bool)) and _is_bool(y):
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
                "operator instead."
            )
        _refuse_bool_minus()
    if isinstance(y, Tensor) and y.dtype is dtypes.bool_:
        _refuse_bool_minus()
    return _sub_any(x, y)


def _refuse_bool_minus() -> None:
    raise RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead."
    )


def _named(name: str, apply: Any) -> Any:
    def function(input: Any, other: Any, *, alpha: Any = None) -> Tensor:
        check_tensor(name, input)
        if alpha is not None and alpha != 1:
            if input.dtype.kind in "ib" and isinstance(alpha, float):
                raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
            other = other * alpha
        out = apply(input, other)
        if out is NotImplemented:
            raise TypeError(f"{name}(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
        return out

    function.__name__ = name
    return function


add, sub = _named("add", _add), _named("sub", _sub)
subtract = _named("subtract", _sub)


def mul(input: Any, other: Any) -> Tensor:
    check_tensor("mul", input)
    out = _mul(input, other)
    if out is NotImplemented:
        raise TypeError(f"mul(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    return out


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    check_tensor("div", input)
    if rounding_mode is None:
        out = _div(input, other)
        if out is NotImplemented:
            raise TypeError(f"div(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
        return out
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '" + str(rounding_mode) + "'"
        )
    d = result_type(input, other)
    if d is dtypes.bool_:
        not_implemented = "div_floor_cpu" if rounding_mode == "floor" else "div_trunc_cpu"
        raise RuntimeError(f"\"{not_implemented}\" not implemented for 'Bool'")
    _refuse_zero_division(other, d)
    out = compute(_floor_divide if rounding_mode == "floor" else _trunc_divide, input, other, d)
    if tracking(input, other if isinstance(other, Tensor) else None):
        record(DivBackward1, out, (input, other if isinstance(other, Tensor) else None))
    return out


def _refuse_zero_division(other: Any, d: dtypes.dtype) -> None:
    if d.kind == "i":
        zero = (other._a == 0).any() if isinstance(other, Tensor) else other == 0
        if zero:
            raise RuntimeError("ZeroDivisionError")


def _floor_divide(x: Any, y: Any) -> Any:
    """C++'s floor of the quotient: infinite for a zero divisor, where NumPy gives NaN."""
    if x.dtype.kind != "f":
        return np.floor_divide(x, y)
    quotient = np.floor_divide(x, y)
    return np.where(y == 0, x / y, quotient)


def _trunc_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    quotient = np.floor_divide(x, y)
    return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0)))


def _zero_rule(F: Any, node: Node, g: Any) -> Any:
    """Piecewise constant: the gradient is zero wherever it exists."""
    zero = F.zeros_like(g)
    return zero if len(node.edges) == 1 else (zero,) * len(node.edges)


DivBackward1 = node_class("DivBackward1", _zero_rule)


def floor_divide(input: Any, other: Any) -> Tensor:
    check_tensor("floor_divide", input)
    d = result_type(input, other)
    _refuse_zero_division(other, d)
    out = compute(_floor_divide, input, other, d)
    tensors = (input, other if isinstance(other, Tensor) else None)
    if tracking(*tensors) and d.kind == "f":
        record(NotImplementedNode, out, tensors[: 2 if tensors[1] is not None else 1], ("aten::floor_divide",))
    return out


def _not_differentiable(F: Any, node: Node, g: Any, name: str) -> Any:
    raise RuntimeError(f"derivative for {name} is not implemented")


class _NotImplemented(Node):
    """An operation that PyTorch records without knowing its derivative."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::NotImplemented"


NotImplementedNode = node_class("NotImplemented", _not_differentiable, base=_NotImplemented)


def _rsub(x: Tensor, y: Any) -> Any:
    """y - x for a number y."""
    if isinstance(y, Tensor):
        return _sub(y, x)
    if not isinstance(y, (int, float, complex)):
        return NotImplemented
    if x.dtype is dtypes.bool_:
        _refuse_bool_minus()
    d = result_type(x, y)
    out = compute(lambda a, b: b - a, x, y, d)
    if tracking(x):
        record(RsubBackward1, out, (x,))
    return out


RsubBackward1 = node_class("RsubBackward1", lambda F, node, g: -g)


def reciprocal_rule(F: Any, node: Node, g: Any, r: Any) -> Any:
    """z = 1/x;  dz/dx = -z*z."""
    return -g * (r * r)


# --- operators --------------------------------------------------------------------------------------------------


def _rtruediv(x: Tensor, y: Any) -> Any:
    if not isinstance(y, (int, float, complex, Tensor)):
        return NotImplemented
    return x.reciprocal() * y


def _floordiv(x: Tensor, y: Any) -> Any:
    return floor_divide(x, y)


def _rfloordiv(x: Tensor, y: Any) -> Any:
    from .factories import tensor

    return floor_divide(tensor(y), x)


def _iadd(name: str) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(other, (Tensor, int, float, complex, np.generic)):
            return NotImplemented
        return getattr(self, name)(other)

    return method


for _name, _function in (("add", add), ("sub", sub), ("mul", mul), ("div", div), ("floor_divide", floor_divide)):
    register(_name, _function, F=_name)
    in_place(_name, _function)
for _alias, _function in (("subtract", subtract), ("multiply", mul), ("divide", div), ("true_divide", div)):
    register(_alias, _function)
    in_place(_alias, _function)


@op("rsub")
def rsub(input: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    if isinstance(other, Tensor):
        return sub(other, input, alpha=alpha)
    return _rsub(input * alpha if alpha != 1 else input, other)


Tensor.__add__ = _add
Tensor.__radd__ = _add
Tensor.__sub__ = _sub
Tensor.__rsub__ = _rsub
Tensor.__mul__ = _mul
Tensor.__rmul__ = _mul
Tensor.__truediv__ = _div
Tensor.__rtruediv__ = _rtruediv
Tensor.__floordiv__ = _floordiv
Tensor.__rfloordiv__ = _rfloordiv  # type: ignore[attr-defined]
Tensor.__iadd__ = _iadd("add_")  # type: ignore[attr-defined]
Tensor.__isub__ = _iadd("sub_")  # type: ignore[attr-defined]
Tensor.__imul__ = _iadd("mul_")  # type: ignore[attr-defined]
Tensor.__itruediv__ = _iadd("div_")  # type: ignore[attr-defined]
Tensor.__ifloordiv__ = _iadd("floor_divide_")  # type: ignore[attr-defined]

__all__ = ["TORCH", "add", "changed_in_place", "compute", "differentiable", "div", "mul", "sub"]
