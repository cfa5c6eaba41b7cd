"""Convolution, pooling, padding, resizing: all by windows over the input and their adjoint.

`windows` lays the patches of an input side by side, `unwind` adds patches back; each is the other's gradient, so
convolution is a matrix product between them and can be differentiated any number of times.
"""

# mypy: no-warn-return-any
from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .. import differentiable, kernels
from ..autocast import lowered
from ..graph import Node, node_class
from ..modes import modes
from ..tensor import Tensor, brackets
from .activation import FUNCTIONAL
from .define import bare, finished, record, register, tracking

Ints = tuple[int, ...]


def _tuple(v: Any, n: int) -> Ints:
    if isinstance(v, int):
        return (v,) * n
    out = tuple(int(i) for i in v)
    return out * n if len(out) == 1 and n > 1 else out


def out_sizes(size: Ints, k: Ints, s: Ints, p: Any, d: Ints, ceil: bool = False) -> Ints:
    """Places where the window fits."""
    out = []
    for i in range(len(k)):
        lo, hi = p[i]
        span = size[i] + lo + hi - d[i] * (k[i] - 1) - 1
        n = (span + (s[i] - 1 if ceil else 0)) // s[i] + 1
        if ceil and (n - 1) * s[i] >= size[i] + lo:
            n -= 1
        out.append(n)
    return tuple(out)


def windows(x: Any, k: Ints, s: Ints, p: Any, d: Ints, out: Ints, fill: float = 0.0) -> Any:
    """(N, C, *space) -> (N, C, *kernel, *out), a view of the padded input."""
    n = len(k)
    pads = [(0, 0), (0, 0)]
    for i in range(n):
        need = (out[i] - 1) * s[i] + d[i] * (k[i] - 1) + 1 - x.shape[2 + i] - p[i][0]
        pads.append((p[i][0], max(need, p[i][1], 0)))
    if any(a or b for a, b in pads):
        x = np.pad(x, pads, constant_values=fill)
    st = x.strides
    shape = (*x.shape[:2], *k, *out)
    strides = (*st[:2], *(st[2 + i] * d[i] for i in range(n)), *(st[2 + i] * s[i] for i in range(n)))
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def _columns(x: Any, k: Ints, s: Ints, p: Any, d: Ints, out: Ints) -> Any:
    w = windows(x, k, s, p, d, out)
    return w.reshape(*x.shape[:2], math.prod(k), math.prod(out))


def _unwind(cols: Any, size: Ints, k: Ints, s: Ints, p: Any, d: Ints, out: Ints) -> Any:
    """(N, C, prod kernel, prod out) -> (N, C, *space): add the patches where they came from."""
    n = len(k)
    need = [max((out[i] - 1) * s[i] + d[i] * (k[i] - 1) + 1, size[i] + p[i][0]) for i in range(n)]
    total = np.zeros((*cols.shape[:2], *need), cols.dtype)
    patches = cols.reshape(*cols.shape[:2], *k, *out)
    for at in itertools.product(*(range(i) for i in k)):
        key = tuple(slice(a * d[i], a * d[i] + (out[i] - 1) * s[i] + 1, s[i]) for i, a in enumerate(at))
        total[(slice(None), slice(None), *key)] += patches[(slice(None), slice(None), *at)]
    return total[(slice(None), slice(None), *(slice(p[i][0], p[i][0] + size[i]) for i in range(n)))]


kernels.columns, kernels.unwind = _columns, _unwind


def columns(x: Tensor, k: Ints, s: Ints, p: Any, d: Ints, out: Ints) -> Tensor:
    made = finished(_columns(bare(x), k, s, p, d, out), x.dtype)
    if tracking(x):
        record(Im2ColBackward0, made, (x,), (x._a.shape[2:], k, s, p, d, out))
    return made


def unwind(cols: Tensor, size: Ints, k: Ints, s: Ints, p: Any, d: Ints, out: Ints) -> Tensor:
    made = finished(np.ascontiguousarray(_unwind(bare(cols), size, k, s, p, d, out)), cols.dtype)
    if tracking(cols):
        record(Col2ImBackward0, made, (cols,), (k, s, p, d, out))
    return made


Im2ColBackward0 = node_class("Im2ColBackward0", lambda F, node, g, *geometry: F.unwind(g, *geometry))
Col2ImBackward0 = node_class("Col2ImBackward0", lambda F, node, g, *geometry: F.columns(g, *geometry))
differentiable.columns, differentiable.unwind = columns, unwind


def _conv_rule(F: Any, node: Node, g: Any, x: Any, w: Any, geometry: Any, groups: int, transposed: bool) -> Any:
    """As a product of matrices per group: Y = W cols(X), so dW = G cols(X)^T and dX = uncols(W^T G)."""
    k, s, p, d, out, size = geometry
    n = len(k)
    e = node.edges
    kk = math.prod(k)
    dx = dw = db = None
    batch = x.shape[0]
    small = x if transposed else g  # the side without patches
    og = small.shape[1] // groups
    wide = (g if transposed else x).shape[1] // groups
    weight = F.reshape(w, (1, groups, og, wide * kk))
    places = math.prod(out)
    flat_small = F.reshape(small, (batch, groups, og, places))
    if transposed:
        cols = F.reshape(F.columns(g, k, s, p, d, out), (batch, groups, wide * kk, places))
        if e[0] is not None:
            dx = F.reshape(F.matmul(weight, cols), tuple(x.shape))
    else:
        if e[1] is not None:
            cols = F.reshape(F.columns(x, k, s, p, d, out), (batch, groups, wide * kk, places))
        if e[0] is not None:
            back = F.matmul(F.transpose(weight, -2, -1), flat_small)
            dx = F.unwind(F.reshape(back, (batch, groups * wide, kk, places)), size, k, s, p, d, out)
    if e[1] is not None:
        dw = F.reshape(F.sum(F.matmul(flat_small, F.transpose(cols, -2, -1)), (0,)), tuple(w.shape))
    if e[2] is not None:
        db = F.sum(g, (0, *range(2, 2 + n)))
    return dx, dw, db


ConvolutionBackward0 = node_class("ConvolutionBackward0", _conv_rule, ("input", "weight"))


def _check_conv(
    x: Tensor, w: Tensor, bias: Any, n: int, groups: int, transposed: bool, p: Any, d: Ints, s: Ints
) -> None:
    a, k = x._a, w._a
    if bias is not None and x.dtype is not bias.dtype:
        raise RuntimeError(f"Input type ({_c(x)}) and bias type ({_c(bias)}) should be the same")
    if x.dtype is not w.dtype:
        raise RuntimeError(f"Input type ({_c(x)}) and weight type ({_c(w)}) should be the same")
    if p is not None and any(i < 0 for pair in p for i in pair):
        raise RuntimeError("negative padding is not supported")
    if any(i <= 0 for i in s):
        raise RuntimeError("non-positive stride is not supported")
    if any(i <= 0 for i in d):
        raise RuntimeError("dilation should be greater than zero")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if k.ndim != a.ndim:
        raise RuntimeError(
            f"Expected {k.ndim}-dimensional input for {k.ndim}-dimensional weight{brackets(k.shape)}, but got "
            f"{a.ndim}-dimensional "
            f"input of size {brackets(a.shape)} instead"
        )
    if not transposed and k.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{brackets(k.shape)} instead"
        )
    expected = k.shape[0] if transposed else k.shape[1] * groups
    if a.shape[1] != expected:
        if transposed:
            raise RuntimeError(
                f"Given transposed={1}, weight of size {brackets(k.shape)}, expected input{brackets(a.shape)} to "
                f"have {expected} "
                f"channels, but got {a.shape[1]} channels instead"
            )
        raise RuntimeError(
            f"Given groups={groups}, weight of size {brackets(k.shape)}, expected input{brackets(a.shape)} to "
            f"have {expected} "
            f"channels, but got {a.shape[1]} channels instead"
        )
    if not transposed:
        padded = [a.shape[2 + i] + p[i][0] + p[i][1] for i in range(n)]
        kernel = [d[i] * (k.shape[2 + i] - 1) + 1 for i in range(n)]
        if any(m < q for m, q in zip(padded, kernel, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                f"({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size"
            )


def _c(x: Tensor) -> str:
    from ..tensor import cpp_name

    return cpp_name(x.dtype)


def _convolve(
    name: str, n: int, input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    x = input
    if x._a.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{brackets(x._a.shape)}"
        )
    unbatched = x._a.ndim == n + 1
    if unbatched:
        x = x.unsqueeze(0)
    k, s, d = weight._a.shape[2:], _tuple(stride, n), _tuple(dilation, n)
    if len(k) != n:
        _check_conv(x, weight, None, n, 1, False, None, d, s)
    if isinstance(padding, str):
        if padding == "same":
            if any(i != 1 for i in s):
                raise ValueError("padding='same' is not supported for strided convolutions")
            totals = [d[i] * (k[i] - 1) for i in range(n)]
            p: Any = tuple((t // 2, t - t // 2) for t in totals)
        elif padding == "valid":
            p = ((0, 0),) * n
        else:
            raise RuntimeError(f"Invalid padding string: '{padding}'")
    else:
        p = tuple((i, i) for i in _tuple(padding, n))
    _check_conv(x, weight, bias, n, groups, False, p, d, s)
    size = x._a.shape[2:]
    out = out_sizes(size, k, s, p, d)
    batch, channels = x._a.shape[:2]
    og = weight._a.shape[0] // groups
    cols = _columns(bare(x), k, s, p, d, out).reshape(batch, groups, channels // groups * math.prod(k), math.prod(out))
    r = np.matmul(bare(weight).reshape(1, groups, og, -1), cols).reshape(batch, og * groups, *out)
    if bias is not None:
        r = r + bare(bias).reshape(1, -1, *(1,) * n)
    made = finished(r, x.dtype)
    if tracking(x, weight, bias):
        record(ConvolutionBackward0, made, (x, weight, bias), (x, weight, (k, s, p, d, out, size), groups, False))
    return made.squeeze(0) if unbatched else made


def _convolve_transposed(
    name: str,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    x = input
    unbatched = x._a.ndim == n + 1
    if unbatched:
        x = x.unsqueeze(0)
    k, s, d = weight._a.shape[2:], _tuple(stride, n), _tuple(dilation, n)
    p, extra = _tuple(padding, n), _tuple(output_padding, n)
    _check_conv(x, weight, bias, n, groups, True, None, d, s)
    out = x._a.shape[2:]
    size = tuple((out[i] - 1) * s[i] - 2 * p[i] + d[i] * (k[i] - 1) + extra[i] + 1 for i in range(n))
    pads = tuple((i, i) for i in p)
    batch, channels = x._a.shape[:2]
    og = channels // groups
    wide = weight._a.shape[1]
    w = bare(weight).reshape(1, groups, og, -1)
    cols = np.matmul(np.swapaxes(w, -1, -2), bare(x).reshape(batch, groups, og, math.prod(out)))
    r = _unwind(cols.reshape(batch, groups * wide, math.prod(k), math.prod(out)), size, k, s, pads, d, out)
    if bias is not None:
        r = r + bare(bias).reshape(1, -1, *(1,) * n)
    made = finished(np.ascontiguousarray(r), x.dtype)
    if tracking(x, weight, bias):
        record(ConvolutionBackward0, made, (x, weight, bias), (x, weight, (k, s, pads, d, out, size), groups, True))
    return made.squeeze(0) if unbatched else made


def _define(n: int) -> None:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        if modes.autocast is not None:
            return lowered(conv)(input, weight, bias, stride, padding, dilation, groups)
        return _convolve(f"conv{n}d", n, input, weight, bias, stride, padding, dilation, groups)

    def transposed(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        if modes.autocast is not None:
            return lowered(transposed)(input, weight, bias, stride, padding, output_padding, groups, dilation)
        return _convolve_transposed(
            f"conv_transpose{n}d", n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    for name, f in ((f"conv{n}d", conv), (f"conv_transpose{n}d", transposed)):
        f.__name__ = name
        FUNCTIONAL[name] = f
        register(name, f, method=False)


for _n in (1, 2, 3):
    _define(_n)
