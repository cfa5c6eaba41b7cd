"""Attention: one fused operation where PyTorch has one, its parts elsewhere."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..autocast import lowered
from ..graph import Node, node_class
from ..modes import modes
from ..tensor import Tensor
from .activation import FUNCTIONAL, functional
from .define import not_covered, record, tracking, wrap
from .linalg import matmul
from .shape import transpose


@functional()
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(Q K^T / sqrt(d) + mask) V."""
    if modes.autocast is not None:
        return lowered(scaled_dot_product_attention)(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if enable_gqa:
        not_covered("enable_gqa of scaled_dot_product_attention")
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    factor = 1 / math.sqrt(query._a.shape[-1]) if scale is None else scale
    mask = _causal(query, key) if is_causal else attn_mask
    if _is_fused(query, key, value, attn_mask, dropout_p):
        return _fused(query, key, value, mask, factor)
    root = math.sqrt(factor)
    scores = matmul(query * root, transpose(key, -2, -1) * root)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is dtypes.bool_ else scores + mask
    weights = scores.softmax(-1)
    if dropout_p > 0:
        weights = FUNCTIONAL["dropout"](weights, dropout_p, True)
    return matmul(weights, value)


def _is_fused(query: Tensor, key: Tensor, value: Tensor, mask: Any, dropout: float) -> bool:
    """When PyTorch's CPU takes its fused kernel."""
    shapes = [t._a.shape for t in (query, key, value)]
    return (
        dropout == 0
        and query.dtype.plain
        and query.dtype is key.dtype is value.dtype
        and all(len(shape) == 4 for shape in shapes)
        and shapes[0][:2] == shapes[1][:2] == shapes[2][:2]
        and shapes[0][-1] == shapes[1][-1] == shapes[2][-1]
        and all(all(shape) for shape in shapes)
        and (mask is None or not mask._rg)
    )


def _causal(query: Tensor, key: Tensor) -> Tensor:
    """Which key each query may see: those that came before."""
    seen = np.tril(np.ones((query._a.shape[-2], key._a.shape[-2]), bool))
    return wrap(seen, dtypes.bool_)


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Any, factor: float) -> Tensor:
    bias = None if mask is None else np.where(mask._a, 0.0, -np.inf) if mask.dtype is dtypes.bool_ else mask._a
    q, k, v = query._a, key._a, value._a
    scores = np.matmul(q, k.swapaxes(-2, -1)) * q.dtype.type(factor)
    if bias is not None:
        bias = bias.astype(q.dtype)
        scores = scores + bias
    top = np.maximum.reduce(scores, axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, q.dtype.type(0)))
    total = np.add.reduce(weights, axis=-1, keepdims=True)
    a = np.empty_like(q, shape=(*q.shape[:-1], v.shape[-1]))  # laid out as the queries are
    np.matmul(weights / np.where(total == 0, q.dtype.type(1), total), v, out=a)
    out = wrap(a, query.dtype)
    if tracking(query, key, value):
        record(FlashBackward, out, (query, key, value), (query, key, value, bias, factor))
    return out


def _flash_rule(F: Any, node: Node, g: Any, q: Any, k: Any, v: Any, bias: Any, factor: float) -> Any:
    """P = softmax(S): dV = P^T G, dS = P (dP - sum(dP P)), and S is a product."""
    scores = F.matmul(q, F.transpose(k, -2, -1)) * factor
    if bias is not None:
        scores = scores + F.constant(bias, scores)
    top = np.maximum.reduce(scores if isinstance(scores, np.ndarray) else scores._a, axis=-1, keepdims=True)
    weights = F.exp(scores - F.constant(np.where(np.isfinite(top), top, 0), scores))
    p = weights / F.sum(weights, -1, True)
    dp = F.matmul(g, F.transpose(v, -2, -1))
    ds = p * (dp - F.sum(dp * p, -1, True)) * factor
    return F.matmul(ds, k), F.matmul(F.transpose(ds, -2, -1), q), F.matmul(F.transpose(p, -2, -1), g)


FlashBackward = node_class("ScaledDotProductFlashAttentionForCpuBackward0", _flash_rule, ("query", "key", "value"))

__all__ = ["scaled_dot_product_attention"]
