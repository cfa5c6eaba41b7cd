"""Padding, resizing, and patches (unfold, fold, pixel shuffle)."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import differentiable
from ..graph import node_class
from ..tensor import Tensor, brackets, wrap
from .activation import FUNCTIONAL, functional
from .convolution import _tuple, columns, out_sizes, unwind
from .define import finished, not_covered, record, register, tracking
from .pooling import _batched
from .shape import reshape


@functional()
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads from the last dimension backwards; negative numbers crop."""
    pads = list(pad)
    if len(pads) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    x = input._a
    if len(pads) // 2 > x.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pads)} and input of dimension {x.ndim}"
        )
    per = [(0, 0)] * (x.ndim - len(pads) // 2) + [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    order = np.arange(x.size).reshape(x.shape)
    cut = tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(per, x.shape, strict=True))
    grow = [(max(lo, 0), max(hi, 0)) for lo, hi in per]
    if mode == "constant":
        for i, ((lo, hi), n) in enumerate(zip(per, x.shape, strict=True)):
            if n + lo + hi < 0:
                raise RuntimeError(
                    f"The input size {n}, plus negative padding {lo} and {hi} resulted in a negative output size, "
                    "which is "
                    f"invalid. Check dimension {i} of your input."
                )
        places = np.pad(order[cut], grow, constant_values=-1)
        inside = places >= 0
        flat = np.ravel(x)
        fill = input.dtype.scalar(0 if value is None else value)
        a = np.where(inside, flat[np.where(inside, places, 0)] if x.size else fill, fill)
        out = finished(a, input.dtype)
        if tracking(input):
            record(ConstantPadNdBackward0, out, (input,), (np.where(inside, places, 0), inside, x.shape))
        return out
    if value is not None and mode != "constant":
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    numpy_mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}.get(mode)
    if numpy_mode is None:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    n = len(pads) // 2
    if x.ndim not in (n + 1, n + 2):
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    for i, (lo, hi) in enumerate(per):
        size = x.shape[i]
        if mode == "reflect" and (lo >= size or hi >= size) and (lo or hi):
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({lo}, {hi}) at dimension {i} of input {brackets(x.shape)}"
            )
        if mode == "circular" and (lo > size or hi > size):
            raise RuntimeError("Padding value causes wrapping around more than once.")
    if mode == "replicate":
        places = order[
            np.ix_(*(np.clip(np.arange(-lo, s + hi), 0, s - 1) for (lo, hi), s in zip(per, x.shape, strict=True)))
        ]
    else:
        places = np.pad(order[cut], grow, mode=numpy_mode)  # type: ignore[call-overload]
    out = finished(np.ravel(x)[places], input.dtype)
    if tracking(input):
        stem = {"reflect": "ReflectionPad", "replicate": "ReplicationPad", "circular": "CircularPad"}[mode]
        record(
            node_class(f"{stem}{n}DBackward0", lambda F, node, g, places, shape: F.scatter_flat(g, places, shape)),
            out,
            (input,),
            (places, x.shape),
        )
    return out


ConstantPadNdBackward0 = node_class(
    "ConstantPadNdBackward0",
    lambda F, node, g, places, inside, shape: F.scatter_flat(g * F.constant(inside, g), places, shape),
)
register("constant_pad_nd", lambda input, pad, value=0: FUNCTIONAL["pad"](input, pad, "constant", value), method=False)


# --- resizing and patches -----------------------------------------------------------------------------------------


def _matrix(size: int, out: int, mode: str, align: bool, scale: float | None) -> Any:
    """Weights (out, size) of a resize along one dimension."""
    ratio = (1 / scale) if scale else size / out
    m = np.zeros((out, size))
    for i in range(out):
        if mode == "nearest":
            m[i, min(math.floor(i * np.float32(ratio)), size - 1)] = 1
        elif mode == "nearest-exact":
            m[i, min(math.floor((i + 0.5) * ratio), size - 1)] = 1
        else:
            at = (i * (size - 1) / (out - 1) if out > 1 else 0.0) if align else max((i + 0.5) * ratio - 0.5, 0.0)
            lo = min(int(at), size - 1)
            hi = min(lo + 1, size - 1)
            m[i, lo] += 1 - (at - lo)
            m[i, hi] += at - lo
    return m


@functional()
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the spatial dimensions: nearest, or linear in each of them."""
    n = input._a.ndim - 2
    if mode not in ("nearest", "nearest-exact", "linear", "bilinear", "trilinear") or antialias:
        not_covered(f"interpolate with mode={mode!r}, antialias={antialias}")
    if mode.startswith("nearest") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    space = input._a.shape[2:]
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    scales: Any = (None,) * n
    if size is not None:
        out = (size,) * n if isinstance(size, int) else tuple(size)
    else:
        scales = (scale_factor,) * n if isinstance(scale_factor, (int, float)) else tuple(scale_factor)
        out = tuple(math.floor(space[i] * scales[i]) for i in range(n))
    x = input
    for i in range(n):
        m = _matrix(space[i], out[i], mode, bool(align_corners), None if recompute_scale_factor else scales[i])
        w = wrap(m.astype(input.dtype.storage), input.dtype)
        x = differentiable.matmul(x.transpose(2 + i, -1), w.t()).transpose(2 + i, -1)
    return x.contiguous()


FUNCTIONAL["upsample"] = interpolate


@functional()
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    k, s, d = _tuple(kernel_size, 2), _tuple(stride, 2), _tuple(dilation, 2)
    p = tuple((i, i) for i in _tuple(padding, 2))
    x, unbatched = _batched(input, 2, "unfold")
    out = out_sizes(x._a.shape[2:], k, s, p, d)
    cols = columns(x, k, s, p, d, out)
    made = reshape(cols, (x._a.shape[0], x._a.shape[1] * math.prod(k), math.prod(out)))
    return made.squeeze(0) if unbatched else made


@functional()
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    size, k, s, d = (_tuple(v, 2) for v in (output_size, kernel_size, stride, dilation))
    p = tuple((i, i) for i in _tuple(padding, 2))
    x = input if input._a.ndim == 3 else input.unsqueeze(0)
    out = out_sizes(size, k, s, p, d)
    if x._a.shape[2] != math.prod(out):
        raise RuntimeError(
            f"Given output_size=({size[0]}, {size[1]}), kernel_size=({k[0]}, {k[1]}), dilation=({d[0]}, {d[1]}), "
            "padding="
            f"({p[0][0]}, {p[1][0]}), stride=({s[0]}, {s[1]}), expected size of input's dimension 2 to match the "
            "calculated "
            f"number of sliding blocks {out[0]} * {out[1]} = {math.prod(out)}, but got input.size(2)={x._a.shape[2]}."
        )
    cols = reshape(x, (x._a.shape[0], x._a.shape[1] // math.prod(k), math.prod(k), math.prod(out)))
    made = unwind(cols, size, k, s, p, d, out)
    return made if input._a.ndim == 3 else made.squeeze(0)


def _pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    r = upscale_factor
    *lead, c, h, w = input._a.shape
    x = reshape(input, (*lead, c // (r * r), r, r, h, w))
    n = len(lead)
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return reshape(x, (*lead, c // (r * r), h * r, w * r))


def _pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    r = downscale_factor
    *lead, c, h, w = input._a.shape
    x = reshape(input, (*lead, c, h // r, r, w // r, r))
    n = len(lead)
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return reshape(x, (*lead, c * r * r, h // r, w // r))


for _name, _f in (("pixel_shuffle", _pixel_shuffle), ("pixel_unshuffle", _pixel_unshuffle)):
    FUNCTIONAL[_name] = _f
    register(_name, _f, method=False)
