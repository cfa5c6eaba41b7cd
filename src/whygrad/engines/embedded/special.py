"""Special functions that NumPy does not have: erf and its family, gamma functions, the Bessel function I0.

Computed in double precision (the C library's erf and lgamma element by element, series elsewhere), rounded at the end.
"""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import not_covered


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        a = np.asarray(x)
        out = np.fromiter((function(v) for v in a.ravel().tolist()), np.float64, a.size)
        out = out.astype(a.dtype if a.dtype.kind == "f" else np.float64).reshape(a.shape)
        return out if out.ndim else out[()]

    return apply


def _lgamma(v: float) -> float:
    if math.isinf(v):
        return math.inf
    try:
        return math.lgamma(v)
    except ValueError:
        return math.inf


def _digamma(v: float) -> float:
    """Psi by the recurrence up to 10, then the asymptotic series; by reflection for the negative axis."""
    if v == 0:
        return math.copysign(math.inf, -v)
    if math.isnan(v) or v == math.inf:
        return v
    if v < 0:
        if v == math.floor(v) or math.isinf(v):
            return math.nan
        fraction = math.modf(v)[0]
        return _digamma(1 - v) - math.pi / math.tan(math.pi * fraction)
    result = 0.0
    while v < 10:
        result -= 1 / v
        v += 1
    if v == 10:
        return result + 2.25175258906672110764
    y = 0.0
    if v < 1e17:
        z = 1 / (v * v)
        for c in (
            8.33333333333333333333e-2,
            -2.10927960927960927961e-2,
            7.57575757575757575758e-3,
            -4.16666666666666666667e-3,
            3.96825396825396825397e-3,
            -8.33333333333333333333e-3,
            8.33333333333333333333e-2,
        ):
            y = y * z + c
        y *= z
    return result + math.log(v) - 0.5 / v - y


def _zeta(s: float, q: float) -> float:
    """Hurwitz zeta by Euler-Maclaurin."""
    if q <= 0:
        return math.inf if q == math.floor(q) else math.nan
    total = 0.0
    n = 12
    for k in range(n):
        total += (q + k) ** -s
    w = q + n
    total += w ** (1 - s) / (s - 1) + 0.5 * w**-s
    factor, power = s, w ** (-s - 1)
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    factorial = 2.0
    for j, b in enumerate(bernoulli, 1):
        total += b * factor * power / factorial
        factor *= (s + 2 * j - 1) * (s + 2 * j)
        power /= w * w
        factorial *= (2 * j + 1) * (2 * j + 2)
    return total


def polygamma(n: int, x: Any) -> Any:
    if n == 0:
        return digamma(x)
    sign = -1.0 if n % 2 == 0 else 1.0

    def one(v: float) -> float:
        if v <= 0 and n == 1:
            if v == math.floor(v):
                return math.inf
            return (math.pi / math.sin(math.pi * v)) ** 2 - sign * math.factorial(n) * _zeta(n + 1, 1 - v)
        if v <= 0:
            not_covered("polygamma of order 2 and more of negative numbers")
        return sign * math.factorial(n) * _zeta(n + 1, v)

    return _elementwise(one)(x)


def _erfinv(v: float) -> float:
    if not -1 < v < 1:
        return math.copysign(math.inf, v) if abs(v) == 1 else math.nan
    if v == 0:
        return v
    from statistics import NormalDist  # loads decimal and fractions: only when it is needed

    _normal = NormalDist()
    x = math.copysign(_normal.inv_cdf((abs(v) + 1) / 2) / math.sqrt(2), v) if abs(v) < 0.999999 else _tail(v)
    for _ in range(2):
        x -= (math.erf(x) - v) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def _tail(v: float) -> float:
    rest = math.sqrt(-math.log((1 - abs(v)) / 2))
    c = (1.641345311, 3.429567803, -1.62490649, -1.970840454)
    d = (1.6370678, 3.5438892)
    x = (((c[0] * rest + c[1]) * rest + c[2]) * rest + c[3]) / ((d[0] * rest + d[1]) * rest + 1)
    return math.copysign(x, v)


_erf_each = _elementwise(math.erf)
erfc = _elementwise(math.erfc)
lgamma = _elementwise(_lgamma)
digamma = _elementwise(_digamma)
erfinv = _elementwise(_erfinv)


def erf(x: Any) -> Any:
    return _erf_each(x)


def i0(x: Any) -> Any:
    out = np.i0(np.asarray(x, np.float64)).reshape(np.shape(x)).astype(x.dtype)
    return out if out.ndim else out[()]
