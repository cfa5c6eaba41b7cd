"""Functions of one tensor, element by element: one line each, the derivative beside the function.

In a rule, `g` is the gradient of the result, `x` the saved input, `r` the saved result.
"""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import differentiable, dtypes, kernels
from ..graph import Node, node_class, sequence
from ..modes import modes
from ..tensor import Tensor
from .arithmetic import reciprocal_rule
from .define import (
    SavedOutput,
    bare,
    check_tensor,
    finished,
    in_place,
    not_covered,
    op,
    record,
    register,
    tracking,
    wrap,
)

Rule = Callable[..., Any]


def unary(
    name: str,
    kernel: Callable[[Any], Any],
    node: str,
    rule: Rule | None,
    save: str = "",
    *,
    F: str | None = None,
    aliases: tuple[str, ...] = (),
    floats_only: bool = True,
    inplace: bool = True,
    method: bool = True,
    torch: bool = True,
) -> Any:
    """Define a function of one tensor. `save`: 'x' (its input), 'r' (its result) or '' (neither)."""
    if rule is None:
        rule = _no_slope
    if save == "":
        without = rule

        def rule(F: Any, node: Node, g: Any) -> Any:
            return without(F, g)

    else:
        with_saved = rule

        def rule(F: Any, node: Node, g: Any, s: Any) -> Any:
            return with_saved(F, g, s)  # type: ignore[call-arg]

    cls = node_class(node, rule, {"": (), "x": ("self",), "r": ("result",)}[save])

    def apply(input: Tensor) -> Tensor:
        check_tensor(name, input)
        d = input.dtype
        if d.plain:
            a = kernel(input._a)
        elif d.is_floating_point:
            a = dtypes.store(kernel(bare(input)), d)
        elif d.is_complex:
            not_covered(f"{name} of complex tensors")
        elif floats_only:
            d = dtypes.Defaults.floating
            a = kernel(input._a.astype(d.storage))
        else:
            a = kernel(input._a)
        out = finished(a, d)
        if input._rg and modes.grad:
            record(cls, out, (input,), () if save == "" else (input,) if save == "x" else (SavedOutput(out),))
        return out

    apply.__name__ = name
    register(name, apply, F=F or name, method=method, torch=torch)
    for alias in aliases:
        register(alias, apply, F=alias, method=method, torch=torch)
    if inplace:
        for n in (name, *aliases):
            in_place(n, apply)
    return apply


def _no_slope(F: Any, g: Any) -> Any:
    """A step function: zero wherever the derivative exists."""
    return F.zeros_like(g)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _round(x: Any) -> Any:
    return np.rint(x)


def _frac(x: Any) -> Any:
    return x - np.trunc(x)


def _sinc(x: Any) -> Any:
    return np.where(x == 0, x.dtype.type(1), np.sin(math.pi * x) / (math.pi * x)).astype(x.dtype)


PI2 = math.pi / 180

unary("sin", np.sin, "SinBackward0", lambda F, g, x: g * F.cos(x), "x")
unary("cos", np.cos, "CosBackward0", lambda F, g, x: g * -F.sin(x), "x")
unary("tan", np.tan, "TanBackward0", lambda F, g, r: g * (1 + r * r), "r")
unary("sinh", np.sinh, "SinhBackward0", lambda F, g, x: g * F.cosh(x), "x")
unary("cosh", np.cosh, "CoshBackward0", lambda F, g, x: g * F.sinh(x), "x")
unary("tanh", np.tanh, "TanhBackward0", lambda F, g, r: F.tanh_backward(g, r), "r")
unary("asin", np.arcsin, "AsinBackward0", lambda F, g, x: g * F.pow(1 - x * x, -0.5), "x", aliases=("arcsin",))
unary("acos", np.arccos, "AcosBackward0", lambda F, g, x: g * -F.pow(1 - x * x, -0.5), "x", aliases=("arccos",))
unary("atan", np.arctan, "AtanBackward0", lambda F, g, x: g / (x * x + 1), "x", aliases=("arctan",))
unary("asinh", np.arcsinh, "AsinhBackward0", lambda F, g, x: g * F.pow(x * x + 1, -0.5), "x", aliases=("arcsinh",))
unary("acosh", np.arccosh, "AcoshBackward0", lambda F, g, x: g * F.pow(x * x - 1, -0.5), "x", aliases=("arccosh",))
unary("atanh", np.arctanh, "AtanhBackward0", lambda F, g, x: g * (1 / (1 - x * x)), "x", aliases=("arctanh",))
unary("exp", np.exp, "ExpBackward0", lambda F, g, r: g * r, "r")
unary("exp2", np.exp2, "Exp2Backward0", lambda F, g, r: g * r * math.log(2), "r")
unary("expm1", np.expm1, "Expm1Backward0", lambda F, g, r: g * (r + 1), "r")
unary("log", np.log, "LogBackward0", lambda F, g, x: g / x, "x")
unary("log2", np.log2, "Log2Backward0", lambda F, g, x: g / (x * 0.6931471805599453), "x")
unary("log10", np.log10, "Log10Backward0", lambda F, g, x: g / (x * 2.3025850929940456), "x")
unary("log1p", np.log1p, "Log1PBackward0", lambda F, g, x: g / (x + 1), "x")
unary("sqrt", np.sqrt, "SqrtBackward0", lambda F, g, r: g / (2 * r), "r")
unary("rsqrt", lambda x: 1 / np.sqrt(x), "RsqrtBackward0", lambda F, g, r: -0.5 * g * F.pow(r, 3), "r")
unary("reciprocal", lambda x: 1 / x, "ReciprocalBackward0", lambda F, g, r: -g * (r * r), "r")
unary("sigmoid", _sigmoid, "SigmoidBackward0", lambda F, g, r: F.sigmoid_backward(g, r), "r")
unary("relu", _relu, "ReluBackward0", lambda F, g, r: F.threshold_backward(g, r, 0), "r", floats_only=False)
unary("neg", np.negative, "NegBackward0", lambda F, g: -g, aliases=("negative",), floats_only=False)
_neg = Tensor.neg  # type: ignore[attr-defined]


def negate(input: Tensor) -> Tensor:
    if isinstance(input, Tensor) and input.dtype is dtypes.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or "
            "`logical_not()` operator instead."
        )
    return _neg(input)


for _name in ("neg", "negative"):
    register(_name, negate, F=_name)
unary("abs", np.abs, "AbsBackward0", lambda F, g, x: g * F.sign(x), "x", aliases=("absolute",), floats_only=False)
unary("sign", kernels.sign, "SignBackward0", None, floats_only=False)
unary("sgn", kernels.sign, "SgnBackward0", None, floats_only=False)
unary("floor", np.floor, "FloorBackward0", None, floats_only=False)
unary("ceil", np.ceil, "CeilBackward0", None, floats_only=False)
unary("trunc", np.trunc, "TruncBackward0", None, floats_only=False, aliases=("fix",))
unary("frac", _frac, "FracBackward0", lambda F, g: g, floats_only=False)
unary("erf", kernels.erf, "ErfBackward0", lambda F, g, x: 2 / math.sqrt(math.pi) * F.exp(-(x * x)) * g, "x")  # type: ignore[attr-defined]
unary("erfc", kernels.erfc, "ErfcBackward0", lambda F, g, x: -2 / math.sqrt(math.pi) * F.exp(-(x * x)) * g, "x")  # type: ignore[attr-defined]
unary("erfinv", kernels.erfinv, "ErfinvBackward0", lambda F, g, r: 0.5 * math.sqrt(math.pi) * F.exp(r * r) * g, "r")  # type: ignore[attr-defined]
unary("lgamma", kernels.lgamma, "LgammaBackward0", lambda F, g, x: g * F.digamma(x), "x")  # type: ignore[attr-defined]
unary("digamma", kernels.digamma, "DigammaBackward0", lambda F, g, x: g * F.polygamma(1, x), "x")  # type: ignore[attr-defined]
unary("sinc", _sinc, "SincBackward0", lambda F, g, x: _sinc_rule(F, g, x), "x")
unary("deg2rad", lambda x: x * x.dtype.type(PI2), "Deg2RadBackward0", lambda F, g: g * PI2)
unary("rad2deg", lambda x: x * x.dtype.type(180 / math.pi), "Rad2DegBackward0", lambda F, g: g * (180 / math.pi))


def _sinc_rule(F: Any, g: Any, x: Any) -> Any:
    px = x * math.pi
    slope = g * ((px * F.cos(px) - F.sin(px)) / (px * x))
    return F.where(x == 0, 0.0, slope)


def square(input: Tensor) -> Tensor:
    """x**2, and recorded as such."""
    if not isinstance(input, Tensor) or not input.dtype.plain:
        return pow_(input, 2)
    a = input._a
    out = wrap(a * a, input.dtype)
    if input._rg and modes.grad:
        record(PowBackward0, out, (input,), (input, 2))
    return out


def _sign_pow_rule(F: Any, node: Node, g: Any, x: Any, n: Any) -> Any:
    """z = x**n;  dz/dx = n * x**(n-1); nothing flows for n = 0."""
    if n == 0:
        return F.zeros_like(g)
    if n == 2 and F.RAW:
        return g * (x * 2)
    return g * F.scaled(F.pow(x, n - 1), n)


def _pow_both_rule(F: Any, node: Node, g: Any, x: Any, y: Any, r: Any) -> Any:
    """z = x**y;  dz/dx = y x**(y-1), dz/dy = z ln x, which is 0 where x = 0 and y >= 0."""
    dx = dy = None
    if node.edges[0] is not None:
        dx = F.where(y == 0, 0.0, g * (y * F.pow(x, y - 1)))
    if node.edges[1] is not None:
        dy = g * F.where((x == 0) & (y >= 0), 0.0, r * F.log(x))
    return dx, dy


def _pow_exponent_rule(F: Any, node: Node, g: Any, base: Any, y: Any, r: Any) -> Any:
    """z = c**y;  dz/dy = z ln c."""
    if base == 0:
        return F.where(y >= 0, 0.0, g * (r * -math.inf))
    return g * (r * (math.log(base) if base > 0 else math.nan))


PowBackward0 = node_class("PowBackward0", _sign_pow_rule, ("self", "exponent"))
PowBackward1 = node_class("PowBackward1", _pow_both_rule, ("self", "exponent", "result"))
PowBackward2 = node_class("PowBackward2", _pow_exponent_rule)

_new = object.__new__


def pow_(input: Any, exponent: Any) -> Any:
    """input ** exponent, either of which may be a number."""
    if isinstance(exponent, np.generic):
        exponent = exponent.item()
    if not isinstance(exponent, Tensor):
        if not isinstance(exponent, (int, float, complex)):
            raise TypeError(
                "pow() received an invalid combination of arguments - got "
                f"({_kind(input)}, {type(exponent).__name__}), but expected one of:\n * (Tensor input, Tensor "
                "exponent, *, Tensor out = None)\n * (Number self, Tensor exponent, *, Tensor out = None)\n * "
                "(Tensor input, Number exponent, *, Tensor out = None)\n"
            )
        if not isinstance(input, Tensor):
            raise TypeError(
                "pow() received an invalid combination of arguments - got "
                f"({_kind(input)}, {_kind(exponent)}), but expected one of:\n * (Tensor input, Tensor exponent, *, "
                "Tensor out = None)\n * (Number self, Tensor exponent, *, Tensor out = None)\n * (Tensor input, "
                "Number exponent, *, Tensor out = None)\n"
            )
        d = input.dtype
        if d.plain:
            a = kernels.pow(input._a, exponent)
            if a.dtype is not d.storage:
                a = a.astype(d.storage)
            if a is input._a and isinstance(a, np.ndarray):
                a = a.copy()
            out = finished(a, d)
        else:
            out = _pow_slow(input, exponent)
        if input._rg and modes.grad:
            record(PowBackward0, out, (input,), (input, exponent))
        return out
    if not isinstance(input, Tensor):
        d = _result_type(input, exponent)
        out = finished(np.power(_in_type(input, d), _in_type(exponent, d)), d)
        if tracking(exponent):
            record(PowBackward2, out, (exponent,), (input, exponent, SavedOutput(out)))
        return out
    from .arithmetic import compute

    d = _result_type(input, exponent)
    if d.kind == "i" and (exponent._a < 0).any():
        out = _integer_power(input, exponent, d)
    else:
        out = compute(np.power, input, exponent, d)
    if tracking(input, exponent):
        record(PowBackward1, out, (input, exponent), (input, exponent, SavedOutput(out)))
    return out


def _kind(v: Any) -> str:
    return "Tensor" if isinstance(v, Tensor) else type(v).__name__


def _pow_slow(x: Tensor, exponent: Any) -> Tensor:
    d = _result_type(x, exponent)
    if d.kind == "i":
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return finished(np.power(_in_type(x, d), d.scalar(exponent)), d)
    if d is dtypes.bool_:
        return finished(np.power(x._a, exponent).astype(bool), d)
    return finished(np.asarray(kernels.pow(_in_type(x, d), exponent), d.compute)[()], d)


def _integer_power(x: Tensor, y: Tensor, d: dtypes.dtype) -> Tensor:
    a, b = np.broadcast_arrays(_in_type(x, d), _in_type(y, d))
    positive = np.power(a, np.maximum(b, 0))
    negative = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return finished(np.where(b < 0, negative, positive).astype(d.storage), d)


from .promote import in_type as _in_type  # noqa: E402
from .promote import result_type as _result_type  # noqa: E402


def _pow_public(input: Any, exponent: Any) -> Any:
    return pow_(input, exponent)


def _dunder_pow(x: Tensor, y: Any) -> Any:
    if not isinstance(y, (Tensor, int, float, complex, np.generic)):
        return NotImplemented
    return pow_(x, y)


def _dunder_rpow(x: Tensor, y: Any) -> Any:
    if not isinstance(y, (Tensor, int, float, complex, np.generic)):
        return NotImplemented
    return pow_(y, x)


def float_power(input: Any, exponent: Any) -> Tensor:
    """Like pow, always in double precision."""
    wide = [v.to(dtypes.float64) if isinstance(v, Tensor) else float(v) for v in (input, exponent)]
    return pow_(*wide)


register("pow", _pow_public, F="pow")
in_place("pow", pow_)
register("square", square, F="square")
in_place("square", square)
register("float_power", float_power)
Tensor.__pow__ = _dunder_pow
Tensor.__rpow__ = _dunder_rpow
Tensor.__ipow__ = lambda self, y: self.pow_(y)  # type: ignore[attr-defined]
Tensor.__neg__ = Tensor.neg  # type: ignore[attr-defined]
Tensor.__abs__ = Tensor.abs  # type: ignore[attr-defined]


@op("positive")
def positive(input: Tensor) -> Tensor:
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


Tensor.__pos__ = positive  # type: ignore[operator]


def round_(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Half to even; the gradient is zero."""
    if input.dtype.kind == "i":
        return input.clone()
    a = bare(input)
    if decimals == 0:
        r = np.rint(a)
    elif decimals > 0:
        scale = a.dtype.type(10**decimals)
        r = np.rint(a * scale) / scale
    else:
        scale = a.dtype.type(10 ** (-decimals))
        r = np.rint(a / scale) * scale
    out = finished(r, input.dtype)
    if tracking(input):
        record(RoundBackward0, out, (input,))
    return out


RoundBackward0 = node_class("RoundBackward0", lambda F, node, g: F.zeros_like(g))
register("round", round_)
in_place("round", round_)


# --- clamping, choosing ------------------------------------------------------------------------------------------


def _clamp_rule(F: Any, node: Node, g: Any, x: Any, low: Any, high: Any) -> Any:
    """The gradient passes where the value was inside, the edges included."""
    inside = (
        (x >= low) & (x <= high) if low is not None and high is not None else x >= low if high is None else x <= high
    )
    dx = F.where(inside, g, 0.0)
    if len(node.edges) == 1:
        return dx
    dlow = dhigh = None
    if node.edges[1] is not None:
        below = x < low
        dlow = F.where(below & (low < high) if high is not None else below, g, 0.0)
    if node.edges[2] is not None:
        above = x > high
        dhigh = F.where(above | (high < low) if low is not None else above, g, 0.0)
    return dx, dlow, dhigh


ClampBackward1 = node_class("ClampBackward1", _clamp_rule, ("self", "min", "max"))
ClampBackward0 = node_class("ClampBackward0", _clamp_rule, ("self", "min", "max"))
ClampMinBackward0 = node_class("ClampMinBackward0", _clamp_rule, ("self", "min", "max"))
ClampMaxBackward0 = node_class("ClampMaxBackward0", _clamp_rule, ("self", "min", "max"))


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limit values to [min, max]; numbers or tensors."""
    return _clamped(input, min, max, ClampBackward1)


def _clamped(input: Tensor, min: Any, max: Any, cls: type[Node]) -> Tensor:
    check_tensor("clamp", input)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (min, max) if b is not None]
    d = _result_type(input, *bounds)
    a = _in_type(input, d)
    low = None if min is None else _in_type(min, d)
    high = None if max is None else _in_type(max, d)
    from .promote import broadcast_shape

    broadcast_shape(*[v.shape for v in (a, low, high) if v is not None])
    r = a if low is None else np.maximum(a, low)
    if high is not None:
        r = np.minimum(r, high)
    out = finished(r if r is not input._a else r.copy(), d)
    tensors = (min if isinstance(min, Tensor) else None, max if isinstance(max, Tensor) else None)
    if tracking(input, *tensors):
        if tensors == (None, None):
            record(cls, out, (input,), (input, min, max))
        else:
            record(ClampBackward0, out, (input, *tensors), (input, min, max))
    return out


def clamp_min(input: Tensor, min: Any) -> Tensor:
    return _clamped(input, min, None, ClampMinBackward0)


def clamp_max(input: Tensor, max: Any) -> Tensor:
    return _clamped(input, None, max, ClampMaxBackward0)


for _name, _function in (("clamp", clamp), ("clip", clamp), ("clamp_min", clamp_min), ("clamp_max", clamp_max)):
    register(_name, _function, F=_name)
    in_place(_name, _function)


def _where_rule(F: Any, node: Node, g: Any, condition: Any) -> Any:
    dx = None if node.edges[0] is None else F.where(condition, g, F.zeros((), g))
    dy = None if node.edges[1] is None else F.where(condition, F.zeros((), g), g)
    return dx, dy


WhereBackward0 = node_class("WhereBackward0", _where_rule, ("condition",))


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Choose element by element."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.dtype is not dtypes.bool_ and condition.dtype is not dtypes.uint8:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype " + condition.dtype.legacy
        )
    d = _result_type(input, other)
    x, y = _in_type(input, d), _in_type(other, d)
    from .promote import broadcast_shape

    broadcast_shape(*(v.shape for v in (condition._a, x, y)))
    a = np.where(condition._a, x, y)
    out = finished(a if a.ndim else a[()], d)
    x_, y_ = (v if isinstance(v, Tensor) else None for v in (input, other))
    if tracking(x_, y_):
        record(WhereBackward0, out, (x_, y_), (condition,))
    return out


register("where", where, method=False, F="where")
Tensor.where = lambda self, condition, other: where(condition, self, other)  # type: ignore[attr-defined]


def _max_binary_rule(F: Any, node: Node, g: Any, x: Any, y: Any) -> Any:
    """At a tie each side gets half."""
    larger = node.larger
    half = F.where(x == y, g / 2, g)
    dx = None if node.edges[0] is None else F.where(x < y if larger else x > y, 0.0, half)
    dy = None if node.edges[1] is None else F.where(x > y if larger else x < y, 0.0, half)
    return dx, dy


def _extremum(name: str, kernel: Any, node: str, larger: bool) -> Any:
    cls = node_class(node, _max_binary_rule, ("self", "other"))
    cls.larger = larger  # type: ignore[attr-defined]

    def apply(input: Tensor, other: Tensor) -> Tensor:
        from .arithmetic import compute

        check_tensor(name, input)
        check_tensor(name, other, 2, "other")
        out = compute(kernel, input, other, _result_type(input, other))
        if tracking(input, other):
            record(cls, out, (input, other), (input, other))
        return out

    apply.__name__ = name
    register(name, apply, F=name)
    return apply


maximum = _extremum("maximum", np.maximum, "MaximumBackward0", True)
minimum = _extremum("minimum", np.minimum, "MinimumBackward0", False)


@op("nan_to_num", F="nan_to_num")
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN and infinities; the gradient is zero there."""
    if input.dtype.kind in "ib":
        return input.clone()
    info = dtypes.finfo(input.dtype)
    a = bare(input)
    r = np.nan_to_num(
        a,
        nan=0.0 if nan is None else nan,
        posinf=info.max if posinf is None else posinf,
        neginf=info.min if neginf is None else neginf,
    )
    out = finished(np.asarray(r, a.dtype)[()], input.dtype)
    if tracking(input):
        record(NanToNumBackward0, out, (input,), (input,))
    return out


def _finite_rule(F: Any, node: Node, g: Any, x: Any) -> Any:
    return F.where(F.isfinite(x), g, 0.0)


NanToNumBackward0 = node_class("NanToNumBackward0", _finite_rule, ("self",))
in_place("nan_to_num", nan_to_num)


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma."""
    out = finished(kernels.polygamma(n, input._a), input.dtype)  # type: ignore[attr-defined]
    if tracking(input):
        record(PolygammaBackward0, out, (input,), (input, n))
    return out


PolygammaBackward0 = node_class("PolygammaBackward0", lambda F, node, g, x, n: g * F.polygamma(n + 1, x), ("self",))
register("polygamma", polygamma, method=False, F="polygamma")
Tensor.polygamma = lambda self, n: polygamma(n, self)  # type: ignore[attr-defined]


def connect(value: Tensor, x: Tensor) -> Tensor:
    """`value` with an edge to `x` through which zeros flow."""
    if not tracking(value, x):
        return value
    out = wrap(value._a, value.dtype)
    record(ThresholdBackwardBackward0, out, (value, x))
    return out


def _connect_rule(F: Any, node: Node, g: Any) -> Any:
    return g, F.zeros_like(g)


ThresholdBackwardBackward0 = node_class("ThresholdBackwardBackward0", _connect_rule)
differentiable.connect = connect


def threshold_backward(g: Tensor, x: Tensor, threshold: float) -> Tensor:
    """`g` where `x` is beyond the threshold: what the gradients of relu and threshold pass on."""
    out = wrap(kernels.threshold_backward(g._a, x._a, threshold), g.dtype)
    if tracking(g, x):
        record(ThresholdBackward, out, (g, x), (x, threshold))
    return out


def _threshold_rule(F: Any, node: Node, g: Any, x: Any, threshold: float) -> Any:
    return F.threshold_backward(g, x, threshold), F.zeros_like(g)


ThresholdBackward = node_class("ThresholdBackwardBackward0", _threshold_rule, ("self",))
differentiable.threshold_backward = threshold_backward
__all__ = ["clamp", "maximum", "minimum", "pow_", "reciprocal_rule", "sequence", "unary", "where"]
