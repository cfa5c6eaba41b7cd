"""Pooling: maxima and means over windows, adaptive ones too."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import differentiable, dtypes
from ..graph import Node, node_class
from ..tensor import Tensor, brackets, wrap
from .activation import FUNCTIONAL
from .convolution import Ints, _tuple, out_sizes, windows
from .define import bare, finished, not_covered, record, register, tracking

MaxPoolBackward = {
    n: node_class(
        f"MaxPool{n}DWithIndicesBackward0", lambda F, node, g, places, shape: F.scatter_flat(g[0], places, shape)
    )
    for n in (2, 3)
}


def _batched(x: Tensor, n: int, name: str) -> tuple[Tensor, bool]:
    if x._a.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D input tensor, but got {brackets(x._a.shape)}")
    return (x.unsqueeze(0), True) if x._a.ndim == n + 1 else (x, False)


def _check_pool(x: Tensor, unbatched: bool, n: int, k: Ints, p: Ints, d: Ints) -> None:
    """What PyTorch's `pool2d_shape_check` refuses."""
    for i in range(n):
        if p[i] < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p[i]}")
        if p[i] > (d[i] * (k[i] - 1) + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p[i]}, kernel_size={k[i]} and "
                f"dilation={d[i]}"
            )
    shape = x._a.shape[1:] if unbatched else x._a.shape
    if 0 in x._a.shape[1:]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{brackets(shape)}"
        )


def _max_pool(n: int, input: Tensor, k: Any, s: Any, p: Any, d: Any, ceil: bool) -> tuple[Tensor, Tensor]:
    if n == 1:
        values, places = _max_pool(
            2,
            input.unsqueeze(-2),
            (1, *_tuple(k, 1)),
            (1, *_tuple(s or k, 1)),
            (0, *_tuple(p, 1)),
            (1, *_tuple(d, 1)),
            ceil,
        )
        return values.squeeze(-2), places.squeeze(-2)
    x, unbatched = _batched(input, n, f"max_pool{n}d")
    kk, dd, pp = _tuple(k, n), _tuple(d, n), _tuple(p, n)
    ss = kk if s is None or s == [] or s == () else _tuple(s, n)
    _check_pool(x, unbatched, n, kk, pp, dd)
    a = bare(x)
    pads = tuple((i, i) for i in pp)
    out = out_sizes(a.shape[2:], kk, ss, pads, dd, ceil)
    if any(o <= 0 for o in out):
        c = a.shape[1]
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, (c, *a.shape[2:])))}). Calculated output size: "
            f"({'x'.join(map(str, (c, *out)))}). Output size is too small"
        )
    order = np.arange(math.prod(a.shape[2:])).reshape((1, 1, *a.shape[2:]))
    w = windows(a, kk, ss, pads, dd, out, -np.inf).reshape(*a.shape[:2], math.prod(kk), *out)
    o = windows(order, kk, ss, pads, dd, out, -1).reshape(1, 1, math.prod(kk), *out)
    best = np.argmax(np.where(np.isnan(w), np.inf, w), axis=2)
    values = np.take_along_axis(w, best[:, :, None], 2)[:, :, 0]  # type: ignore[assignment]
    places = np.take_along_axis(np.broadcast_to(o, w.shape), best[:, :, None], 2)[:, :, 0]  # type: ignore[assignment]
    result = finished(np.ascontiguousarray(values), x.dtype)
    indices = wrap(np.ascontiguousarray(places), dtypes.int64)
    if tracking(x):
        from .define import record_several

        per = math.prod(a.shape[2:])
        base = np.arange(a.shape[0] * a.shape[1]).reshape(*a.shape[:2], *(1,) * n) * per
        record_several(MaxPoolBackward[n], (result, indices), (x,), (places + base, a.shape), holds=True)
    if unbatched:
        return result.squeeze(0), indices.squeeze(0)
    return result, indices


def _avg_rule(F: Any, node: Node, g: Any, counts: Any, size: Any, k: Ints, s: Ints, p: Any, out: Ints) -> Any:
    """Each window shares its gradient evenly."""
    one = (1,) * len(k)
    n, c = g.shape[:2]
    flat = F.reshape(g / F.constant(counts, g), (n, c, 1, math.prod(out)))
    return F.unwind(F.expand(flat, (n, c, math.prod(k), math.prod(out))), size, k, s, p, one, out)


AvgPoolBackward = {n: node_class(f"AvgPool{n}DBackward0", _avg_rule) for n in (2, 3)}


def _avg_pool(n: int, input: Tensor, k: Any, s: Any, p: Any, ceil: bool, include_pad: bool, divisor: Any) -> Tensor:
    if n == 1:
        return _avg_pool(
            2,
            input.unsqueeze(-2),
            (1, *_tuple(k, 1)),
            (1, *_tuple(s or k, 1)),
            (0, *_tuple(p, 1)),
            ceil,
            include_pad,
            divisor,
        ).squeeze(-2)
    x, unbatched = _batched(input, n, f"avg_pool{n}d")
    kk, pp = _tuple(k, n), _tuple(p, n)
    ss = kk if s is None or s == [] or s == () else _tuple(s, n)
    a = bare(x)
    one = (1,) * n
    pads = tuple((i, i) for i in pp)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    _check_pool(x, unbatched, n, kk, pp, one)
    out = out_sizes(a.shape[2:], kk, ss, pads, one, ceil)
    w = windows(a, kk, ss, pads, one, out)
    if divisor is not None:
        counts: Any = np.full(out, divisor, np.float64)
    else:
        mask = np.ones((1, 1, *a.shape[2:]))
        if include_pad:  # padding counts, what ceil_mode adds beyond it does not
            mask = np.pad(mask, [(0, 0), (0, 0), *pads], constant_values=1)
            counts = windows(mask, kk, ss, ((0, 0),) * n, one, out)
        else:
            counts = windows(mask, kk, ss, pads, one, out)
        counts = counts.reshape(math.prod(kk), *out).sum(0)
    r = w.reshape(*a.shape[:2], math.prod(kk), *out).sum(2) / counts.astype(a.dtype)
    made = finished(r, x.dtype)
    if tracking(x):
        record(AvgPoolBackward[n], made, (x,), (counts, a.shape[2:], kk, ss, pads, out), holds=True)
    return made.squeeze(0) if unbatched else made


def _define_pools(n: int) -> None:
    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        values, places = _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode)
        return (values, places) if return_indices else values

    def avg_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Tensor:
        return _avg_pool(n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    def adaptive(kind: str) -> Any:
        def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
            return _adaptive(kind, n, input, output_size, return_indices)

        return pool

    for name, f in (
        (f"max_pool{n}d", max_pool),
        (f"avg_pool{n}d", avg_pool),
        (f"adaptive_avg_pool{n}d", adaptive("avg")),
        (f"adaptive_max_pool{n}d", adaptive("max")),
    ):
        FUNCTIONAL[name] = f
        register(name, f, method=False)
    FUNCTIONAL[f"max_pool{n}d_with_indices"] = lambda input, *a, **k: max_pool(
        input, *a, **{**k, "return_indices": True}
    )


def _adaptive(kind: str, n: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    x, unbatched = _batched(input, n, f"adaptive_{kind}_pool{n}d")
    size = x._a.shape[2:]
    want = (output_size,) * n if isinstance(output_size, int) else tuple(output_size)
    out = tuple(size[i] if o is None else o for i, o in enumerate(want))
    if kind == "avg" and all(o == 1 for o in out) and n > 1:
        made = x.mean(tuple(range(-n, 0)), True)
    elif all(size[i] % out[i] == 0 for i in range(n)) and not return_indices:
        k = tuple(size[i] // out[i] for i in range(n))
        made = _avg_pool(n, x, k, k, 0, False, True, None) if kind == "avg" else _max_pool(n, x, k, k, 0, 1, False)[0]
    else:
        if return_indices:
            not_covered(f"return_indices of adaptive_max_pool{n}d")
        made = x
        for i in range(n):  # one dimension after the other: regions are boxes
            if kind == "avg" or kind == "max":
                parts = []
                for j in range(out[i]):
                    lo, hi = j * size[i] // out[i], -((-(j + 1) * size[i]) // out[i])
                    part = made.narrow(2 + i, lo, hi - lo)
                    parts.append(part.mean(2 + i, True) if kind == "avg" else part.max(2 + i, True)[0])
                made = differentiable.cat(parts, 2 + i)
    return made.squeeze(0) if unbatched else made


for _n in (1, 2, 3):
    _define_pools(_n)
