"""Linear maps, embeddings, and normalisation over batches, layers, groups."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import differentiable, dtypes, kernels
from ..autocast import lowered
from ..graph import Node, node_class
from ..modes import modes
from ..tensor import Tensor, brackets
from .activation import FUNCTIONAL, functional
from .define import bare, finished, not_covered, record, register, tracking
from .linalg import addmm, matmul, mm
from .shape import reshape, unsafe_view

kernels.RAW = True
differentiable.RAW = False


@functional()
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, through the same nodes as PyTorch's: t, then addmm or mm."""
    if modes.autocast is not None:
        return lowered(linear)(input, weight, bias)
    if not isinstance(input, Tensor):
        raise TypeError(f"linear(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    x = input._a
    if x.ndim == 2 and weight._a.ndim == 2:
        wt = weight.t()
        return mm(input, wt) if bias is None else addmm(bias, input, wt)
    if weight._a.ndim == 1:
        out = matmul(input, weight)
        return out if bias is None else out + bias
    wt = weight.t()
    if x.ndim == 0:
        raise RuntimeError("both arguments to linear need to be at least 1D, but they are 0D and 2D")
    if bias is not None and x.ndim > 1 and not input.is_contiguous():
        return matmul(input, wt).add_(bias)
    rows = math.prod(x.shape[:-1])
    flat = (
        input.unsqueeze(0)
        if x.ndim == 1 and bias is None
        else input.view(rows, x.shape[-1])
        if input.is_contiguous()
        else reshape(input, (rows, x.shape[-1]))
    )
    out = mm(flat, wt) if bias is None else addmm(bias, flat, wt)
    if x.ndim == 1 and bias is None:
        return out.squeeze(0)
    shape = (*x.shape[:-1], weight._a.shape[0])
    return unsafe_view(out, shape) if bias is None else out.view(*shape)


@functional()
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    from .linalg import einsum

    out = einsum("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


register("bilinear", bilinear, method=False)


# --- embedding ----------------------------------------------------------------------------------------------------


def _embedding_rule(F: Any, node: Node, g: Any, places: Any, shape: Any, padding: int, by_frequency: bool) -> Any:
    """Rows of the gradient added at the rows that were read; the padding row gets nothing."""
    if by_frequency:
        counts = np.bincount(places.ravel(), minlength=shape[0])[places]
        g = g / F.constant(counts[..., None], g)
    if padding >= 0:
        g = g * F.constant((places != padding)[..., None], g)
    return F.index_add_zeros(g, (places,), shape)


EmbeddingBackward0 = node_class("EmbeddingBackward0", _embedding_rule)


@functional()
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that `input` names."""
    if padding_idx is not None:
        if padding_idx > 0 and padding_idx >= weight._a.shape[0]:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < 0:
            if padding_idx < -weight._a.shape[0]:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx += weight._a.shape[0]
    if sparse:
        not_covered("sparse gradients of embedding")
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{input.dtype.legacy}Tensor instead (while checking arguments for embedding)"
        )
    places = np.asarray(input._a)
    n = weight._a.shape[0]
    if places.size and ((places < 0) | (places >= n)).any():
        raise IndexError("index out of range in self")
    if max_norm is not None:
        renormalise(weight, places, max_norm, norm_type)
    out = finished(np.take(weight._a, places, axis=0), weight.dtype)
    if tracking(weight):
        record(
            EmbeddingBackward0,
            out,
            (weight,),
            (places, weight._a.shape, -1 if padding_idx is None else padding_idx, scale_grad_by_freq),
            holds=True,
        )
    return out


def renormalise(weight: Tensor, places: Any, max_norm: float, norm_type: float) -> None:
    """Shrinks, in place, the rows that are read and longer than max_norm."""
    from ..views import bump

    a = weight._a
    for row in np.unique(places):
        size = float(np.sum(np.abs(a[row]) ** norm_type) ** (1 / norm_type))
        if size > max_norm:
            a[row] *= a.dtype.type(max_norm / (size + 1e-7))
    bump(weight)


# --- normalisation ------------------------------------------------------------------------------------------------


def _normalised(F: Any, x: Any, mean: Any, rstd: Any, dims: Any, eps: float) -> tuple[Any, Any]:
    """(x - mean) * rstd and rstd: from what was saved, or recomputed where that must be differentiable."""
    if F.RAW:
        return (x - mean) * rstd, rstd
    n = math.prod(x.shape[d] for d in dims)
    m = F.sum(x, dims, True) / n
    c = x - m
    r = F.pow(F.sum(c * c, dims, True) / n + eps, -0.5)
    return c * r, r


def _norm_rule(
    F: Any, node: Node, g: Any, x: Any, w: Any, mean: Any, rstd: Any, dims: Any, shape: Any, eps: float, stats: bool
) -> Any:
    """The gradient of a normalisation over `dims`: g minus its mean and its projection on the normalised input."""
    if stats:
        xhat, r = _normalised(F, x, mean, rstd, dims, eps)
    else:
        r = F.constant(rstd, x)
        xhat = (x - F.constant(mean, x)) * r
    e = node.edges
    gw = g if w is None else g * F.reshape(w, shape)
    dx = dw = db = None
    if e[0] is not None:
        if stats:
            n = math.prod(x.shape[d] for d in dims)
            dx = r * (gw - F.sum(gw, dims, True) / n - xhat * (F.sum(gw * xhat, dims, True) / n))
        else:
            dx = gw * r
    if e[1] is not None:
        dw = F.reshape(F.sum_to(g * xhat, shape), tuple(w.shape))
    if e[2] is not None:
        db = F.reshape(F.sum_to(g, shape), node.bias_shape)
    return dx, dw, db


NativeLayerNormBackward0 = node_class("NativeLayerNormBackward0", _norm_rule, ("input", "weight"))
NativeBatchNormBackward0 = node_class("NativeBatchNormBackward0", _norm_rule, ("input", "weight"))
NativeGroupNormBackward0 = node_class("NativeGroupNormBackward0", _norm_rule, ("input", "weight"))


def _normalise(
    cls: type[Node],
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    dims: tuple[int, ...],
    shape: tuple[int, ...],
    eps: float,
    given: Any = None,
) -> Tensor:
    """Normalise over `dims`, then scale and shift by parameters that broadcast as `shape`."""
    a = bare(x)
    if given is None:
        wide = a.astype(np.float64) if a.dtype == np.float32 else a
        m = wide.mean(axis=dims, keepdims=True)
        v = ((wide - m) ** 2).mean(axis=dims, keepdims=True)
        mean, rstd = m.astype(a.dtype), (1 / np.sqrt(v + eps)).astype(a.dtype)
    else:
        mean, rstd = given
    r = (a - mean) * rstd
    if weight is not None:
        r = r * bare(weight).reshape(shape)
    if bias is not None:
        r = r + bare(bias).reshape(shape)
    out = finished(r.astype(a.dtype, copy=False), x.dtype)
    if tracking(x, weight, bias):
        node: Any = record(cls, out, (x, weight, bias), (x, weight, mean, rstd, dims, shape, eps, given is None))
        node.bias_shape = None if bias is None else bias._a.shape
    return out


@functional()
def layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    shape = tuple(normalized_shape)
    have = input._a.shape
    if len(shape) < 1:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
            "got normalized_shape = []"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p._a.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{brackets(p._a.shape)} and "
                f"normalized_shape = {brackets(shape)}"
            )
    if have[len(have) - len(shape) :] != shape or len(have) < len(shape):
        raise RuntimeError(
            f"Given normalized_shape={brackets(shape)}, expected input with shape [*, "
            f"{', '.join(map(str, shape))}], but got "
            f"input of size{brackets(have)}"
        )
    dims = tuple(range(len(have) - len(shape), len(have)))
    return _normalise(NativeLayerNormBackward0, input, weight, bias, dims, shape, eps)


@functional()
def batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Over batch and space; in training the running statistics take a step towards the batch's."""
    x = input._a
    if training:
        n = x.shape[0] * math.prod(x.shape[2:])
        if n == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    channels = x.shape[1]
    for name, p in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if p is not None and p._a.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {p._a.size}")
    dims = (0, *range(2, x.ndim))
    shape = tuple(channels if i == 1 else 1 for i in range(x.ndim))
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
        mean = bare(running_mean).reshape(shape)
        rstd = (1 / np.sqrt(bare(running_var).reshape(shape) + bare(running_var).dtype.type(eps))).astype(
            bare(input).dtype
        )
        return _normalise(NativeBatchNormBackward0, input, weight, bias, dims, shape, eps, (mean, rstd))
    out = _normalise(NativeBatchNormBackward0, input, weight, bias, dims, shape, eps)
    if running_mean is not None or running_var is not None:
        a = np.asarray(bare(input), np.float64)
        n = a.size // channels
        for p, value in ((running_mean, a.mean(axis=dims)), (running_var, a.var(axis=dims) * (n / max(n - 1, 1)))):
            if p is not None:
                from ..views import write

                new = momentum * value + (1 - momentum) * np.asarray(bare(p), np.float64)
                write(p, dtypes.store(new.astype(p.dtype.compute), p.dtype))
    return out


@functional()
def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    x = input._a
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    n, c = x.shape[:2]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{brackets(x.shape)} and "
            f"num_groups={num_groups}"
        )
    rest = x.shape[2:]
    grouped = reshape(input, (n, num_groups, c // num_groups, *rest))
    dims = tuple(range(2, grouped._a.ndim))
    shape = (1, num_groups, c // num_groups, *(1,) * len(rest))
    return reshape(_normalise(NativeGroupNormBackward0, grouped, weight, bias, dims, shape, eps), x.shape)


@functional()
def instance_norm(
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    x = input._a
    if running_mean is not None and use_input_stats:
        not_covered("instance_norm with running statistics in training")
    if use_input_stats and math.prod(x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    dims = tuple(range(2, x.ndim))
    shape = tuple(x.shape[1] if i == 1 else 1 for i in range(x.ndim))
    return _normalise(NativeBatchNormBackward0, input, weight, bias, dims, shape, eps)


@functional()
def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    n = len(tuple(normalized_shape))
    dims = tuple(range(-n, 0))
    e = dtypes.finfo(input.dtype).eps if eps is None else eps
    out = input * (input.pow(2).mean(dims, True) + e).rsqrt()
    return out if weight is None else out * weight


@functional()
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    x = input
    square = x * x
    channels = x._a.shape[1]
    padded = FUNCTIONAL["pad"](square.transpose(1, -1), (size // 2, (size - 1) // 2)).transpose(1, -1)
    total = padded.narrow(1, 0, channels)
    for i in range(1, size):
        total = total + padded.narrow(1, i, channels)
    return x / (total / size * alpha + k).pow(beta)


__all__ = ["linear", "modes"]
