"""The float32 logarithm, cosine and sine of PyTorch's vectorised normal numbers.

Cephes' polynomials as `avx_mathfun` evaluates them, with the multiplications and additions that the compiler fuses
fused
here too: `torch.randn` gives the same bits on this engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

f = np.float32


def fma(a: Any, b: Any, c: Any) -> Any:
    """a*b + c rounded once, as a fused multiply-add does (exact in double but for rare double roundings)."""
    return (np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)).astype(f)


_LOG = tuple(
    f(v)
    for v in (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
)


def logarithm(x: Any) -> Any:
    """Natural logarithm of positive float32."""
    bits = np.maximum(x, f(1.17549435e-38)).view(np.uint32)
    exponent = (bits >> np.uint32(23)).astype(np.int32) - 127
    mantissa = ((bits & np.uint32(0x807FFFFF)) | np.uint32(0x3F000000)).view(f)
    e = exponent.astype(f) + f(1)
    small = mantissa < f(0.707106781186547524)
    x1 = mantissa - f(1) + np.where(small, mantissa, f(0))
    e = e - np.where(small, f(1), f(0))
    z = x1 * x1
    y = np.full_like(x1, _LOG[0])
    for c in _LOG[1:]:
        y = fma(y, x1, c)
    y = y * x1
    y = fma(y, z, e * f(-2.12194440e-4))
    y = fma(z, f(-0.5), y)
    out = x1 + y
    return fma(e, f(0.693359375), out)


def cosine_and_sine(x: Any) -> tuple[Any, Any]:
    """Both at once, for moderate arguments."""
    sign_sin = np.signbit(x)
    a = np.abs(x)
    j = (a * f(1.27323954473516)).astype(np.int32)
    j = (j + 1) & ~1
    y = j.astype(f)
    swap_sign = (j & 4) != 0
    poly = (j & 2) == 0
    a = fma(y, f(-0.78515625), a)
    a = fma(y, f(-2.4187564849853515625e-4), a)
    a = fma(y, f(-3.77489497744594108e-8), a)
    sign_cos = ((j - 2) & 4) == 0
    sign_sin = sign_sin ^ swap_sign
    z = a * a
    c = np.full_like(a, f(2.443315711809948e-5))
    c = fma(c, z, f(-1.388731625493765e-3))
    c = fma(c, z, f(4.166664568298827e-2))
    c = c * z
    c = fma(c, z, z * f(-0.5))
    c = c + f(1)
    s = np.full_like(a, f(-1.9515295891e-4))
    s = fma(s, z, f(8.3321608736e-3))
    s = fma(s, z, f(-1.6666654611e-1))
    s = s * z
    s = fma(s, a, a)
    sin = np.where(poly, s, c)
    cos = np.where(poly, c, s)
    return np.where(sign_cos, -cos, cos), np.where(sign_sin, -sin, sin)
