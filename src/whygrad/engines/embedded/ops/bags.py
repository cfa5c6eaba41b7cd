"""Bags of embeddings: the sum, mean or maximum of rows of a table, bag by bag."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..graph import Node, node_class
from ..tensor import Tensor
from .activation import functional
from .define import finished, not_covered, record, tracking
from .normalise import renormalise


def _sum_rule(
    F: Any, node: Node, g: Any, weight: Any, scales: Any, places: Any, bags: Any, factors: Any, shape: Any
) -> Any:
    """Each row gets its bag's gradient, times what it was multiplied by."""
    rows = F.index(g, (bags,))
    d_scales = None
    if node.edges[1] is not None:
        d_scales = F.sum(rows * F.index(weight, (places,)), (-1,))
    if scales is not None:
        rows = rows * F.unsqueeze(scales, -1)
    d_weight = F.index_add_zeros(rows * F.constant(factors, g), (places,), shape)
    return d_weight, d_scales


def _max_rule(F: Any, node: Node, g: Any, flat: Any, shape: Any) -> Any:
    return F.scatter_flat(g, flat, shape), None


EmbeddingBagBackward0 = node_class("EmbeddingBagBackward0", _sum_rule, ("weight", "per_sample_weights"))
_MaxBackward = node_class("EmbeddingBagBackward0", _max_rule)


@functional()
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """`input` (bags, size), or one line of indices cut into bags at `offsets`."""
    if sparse or scale_grad_by_freq:
        not_covered("sparse= and scale_grad_by_freq= of embedding_bag")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum or mean or max")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
                f"(got mode='{mode}'). Please open a feature request on GitHub."
            )
        if per_sample_weights._a.shape != input._a.shape:
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
                f"same shape as the input ({input.shape})"
            )
    places, starts, count = _bags(input, offsets, include_last_offset)
    rows = weight._a.shape[0]
    if places.size and ((places < 0) | (places >= rows)).any():
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {int(places.max())}"
        )
    if max_norm is not None:
        renormalise(weight, places, max_norm, norm_type)
    bags = np.searchsorted(starts, np.arange(places.size), side="right") - 1
    scales = per_sample_weights
    if scales is not None and scales.dim() > 1:
        scales = scales.reshape(-1)
    if padding_idx is not None:
        kept = places != (padding_idx + rows if padding_idx < 0 else padding_idx)
        if scales is not None and not kept.all():
            not_covered("padding_idx with per_sample_weights of embedding_bag")
        places, bags = places[kept], bags[kept]
    a = weight._a
    if mode == "max":
        return _largest(weight, places, bags, count)
    sizes = np.bincount(bags, minlength=count)
    factors = (1 / np.maximum(sizes, 1)).astype(a.dtype)[bags, None] if mode == "mean" else np.ones((1, 1), a.dtype)
    picked = a[places] * factors
    if scales is not None:
        picked = picked * scales._a[:, None]
    out = np.zeros((count, a.shape[1]), a.dtype)
    np.add.at(out, bags, picked)
    made = finished(out, weight.dtype)
    if tracking(weight, scales):
        record(EmbeddingBagBackward0, made, (weight, scales), (weight, scales, places, bags, factors, a.shape))
    return made


def _bags(input: Tensor, offsets: Any, include_last: bool) -> tuple[Any, Any, int]:
    """The indices in a line, where each bag starts, and how many bags there are."""
    a = input._a
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{input.dtype.legacy}Tensor instead (while checking arguments for embedding_bag)"
        )
    if a.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        return a.ravel(), np.arange(0, a.size, a.shape[1]) if a.size else np.zeros(0, np.int64), a.shape[0]
    if a.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {a.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets._a.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    starts = offsets._a[:-1] if include_last else offsets._a
    return a, starts, len(starts)


def _largest(weight: Tensor, places: Any, bags: Any, count: int) -> Tensor:
    a = weight._a
    out = np.zeros((count, a.shape[1]), a.dtype)
    rows = np.zeros((count, a.shape[1]), np.int64)
    filled = np.zeros(count, bool)
    for row, bag in zip(places, bags, strict=True):
        better = (a[row] > out[bag]) if filled[bag] else np.ones(a.shape[1], bool)
        out[bag] = np.where(better, a[row], out[bag])
        rows[bag] = np.where(better, row, rows[bag])
        filled[bag] = True
    made = finished(out, weight.dtype)
    if tracking(weight):
        if not filled.all():
            not_covered("empty bags in mode='max' of embedding_bag")
        flat = rows * a.shape[1] + np.arange(a.shape[1])
        record(_MaxBackward, made, (weight, None), (flat, a.shape), holds=True)
    return made


__all__ = ["embedding_bag"]
