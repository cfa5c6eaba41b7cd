"""logsumexp and norms."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import dtype
from ..graph import Node, node_class
from ..tensor import Tensor
from .define import (
    SavedOutput,
    bare,
    check_tensor,
    differentiable,
    finished,
    not_covered,
    op,
    record,
    register,
    tracking,
)
from .reduce import dims_of, spread


def _logsumexp_rule(F: Any, node: Node, g: Any, x: Any, r: Any, dims: Any, keep: bool) -> Any:
    """d/dx log sum exp x = exp(x - result): the softmax."""
    shape = tuple(x.shape)
    return spread(F, g, shape, dims, keep) * F.exp(x - spread(F, r, shape, dims, keep))


LogsumexpBackward0 = node_class("LogsumexpBackward0", _logsumexp_rule, ("self", "result"))


@op("logsumexp", F="logsumexp")
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    if input.dtype.kind in "ib":
        input = input.to(dtypes.Defaults.floating)
    a = bare(input)
    dims = dims_of(dim, a.ndim)
    if a.ndim == 0:
        r = a
    else:
        top = np.max(a, axis=dims, keepdims=True) if a.size else np.zeros((), a.dtype)
        top = np.where(np.isinf(top), a.dtype.type(0), top)
        r = np.log(np.sum(np.exp(a - top), axis=dims, keepdims=keepdim))
        r = r + (top if keepdim else top.reshape(np.shape(r)) if a.size else 0)
    out = finished(r, input.dtype)
    if tracking(input):
        record(LogsumexpBackward0, out, (input,), (input, SavedOutput(out), dims, keepdim))
    return out


def _norm_rule(F: Any, node: Node, g: Any, x: Any, r: Any, p: float, dims: Any, keep: bool) -> Any:
    """The gradient of a p-norm; where the norm is 0 PyTorch chooses the subgradient 0."""
    shape = tuple(x.shape)
    g, r = spread(F, g, shape, dims, keep), spread(F, r, shape, dims, keep)
    if p == 0:
        return None
    if p == 1:
        return F.sign(x) * g
    if p == 2:
        return g * F.where(r == 0, 0.0, x / r)
    if math.isinf(p):
        size = F.abs(x)
        mask = (size == r) | (F.isnan(size) & F.isnan(r))
        count = np.sum(F.numbers(mask), axis=dims, keepdims=True) if shape else 1
        return F.sign(x) * (F.where(mask, g / F.constant(count, g), 0.0))
    if p < 1:
        return F.where(x == 0, 0.0, F.sign(x) * F.pow(F.abs(x), p - 1)) * (g * F.pow(r, 1 - p))
    if p < 2:
        scaled = F.sign(x) * F.pow(F.abs(x), p - 1)
        return scaled * F.where(r == 0, 0.0, g / F.pow(r, p - 1))
    return x * F.pow(F.abs(x), p - 2) * F.where(r == 0, 0.0, g / F.pow(r, p - 1))


LinalgVectorNormBackward0 = node_class("LinalgVectorNormBackward0", _norm_rule, ("self", "result"))


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None
) -> Tensor:
    """The p-norm over `dim`."""
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype.legacy}"
        )
    if dtype is not None:
        x = x.to(dtype)
    a = bare(x)
    dims = dims_of(dim, a.ndim)
    p = float(ord)
    size = np.abs(a)
    if p == 2:
        r = np.sqrt(np.sum(a * a, axis=dims, keepdims=keepdim))
    elif p == 1:
        r = np.sum(size, axis=dims, keepdims=keepdim)
    elif p == math.inf:
        r = np.max(size, axis=dims, keepdims=keepdim)
    elif p == -math.inf:
        r = np.min(size, axis=dims, keepdims=keepdim)
    elif p == 0:
        r = np.sum(a != 0, axis=dims, keepdims=keepdim).astype(a.dtype)
    else:
        r = np.power(np.sum(np.power(size, p), axis=dims, keepdims=keepdim), 1 / p)
    out = finished(np.asarray(r, a.dtype)[()], x.dtype)
    if tracking(x):
        record(LinalgVectorNormBackward0, out, (x,), (x, SavedOutput(out), p, dims, keepdim))
    return out


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: dtype | None = None) -> Tensor:
    """`torch.norm`: the vector norm; 'fro' is 2 and 'nuc' the sum of singular values."""
    check_tensor("norm", input)
    if p in ("fro", None):
        p = 2
    elif p == "nuc":
        from .decompositions import svdvals

        if dim is not None or input._a.ndim != 2:
            not_covered("norm with p='nuc' over dim")
        return svdvals(input).sum()
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


register("norm", norm)
differentiable.numbers = lambda x: x._a if isinstance(x, Tensor) else x
differentiable.vector_norm = vector_norm
