"""What the layers of a network compute: normalisations, embedding, dropout where nothing is drawn."""

# The parameters are PyTorch's, whether they change the value or not.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from whygrad.answers.derive.operations.table import Array, UnsupportedError, operation


def _standardised(a: Array, axis: tuple[int, ...], eps: float) -> Array:
    centred = a - a.mean(axis=axis, keepdims=True)
    result: Array = centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True) + eps)
    return result


def _scaled(a: Array, weight: Any, bias: Any) -> Array:
    a = a if weight is None else a * weight
    return a if bias is None else a + bias


@operation("layer_norm")
def layer_norm(
    a: Array, normalized_shape: Sequence[int], weight: Array | None = None, bias: Array | None = None,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    return _scaled(_standardised(a, tuple(range(-len(normalized_shape), 0)), eps), weight, bias)


@operation("rms_norm")
def rms_norm(a: Array, normalized_shape: Sequence[int], weight: Array | None = None, eps: float | None = None) -> Any:
    if eps is None:
        raise UnsupportedError("eps=None, which depends on the dtype")
    axis = tuple(range(-len(normalized_shape), 0))
    return _scaled(a / np.sqrt((a**2).mean(axis=axis, keepdims=True) + eps), weight, None)


@operation("batch_norm")
def batch_norm(
    a: Array, running_mean: Array | None, running_var: Array | None, weight: Array | None = None,
    bias: Array | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    channels = (1, -1) + (1,) * (a.ndim - 2)
    scale, shift = (part if part is None else part.reshape(channels) for part in (weight, bias))
    if training:
        return _scaled(_standardised(a, (0, *range(2, a.ndim)), eps), scale, shift)
    if running_mean is None or running_var is None:
        raise UnsupportedError("no running statistics")
    return _scaled((a - running_mean.reshape(channels)) / np.sqrt(running_var.reshape(channels) + eps), scale, shift)


@operation("group_norm")
def group_norm(
    a: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Any:
    grouped = a.reshape(a.shape[0], num_groups, -1)
    channels = (1, -1) + (1,) * (a.ndim - 2)
    scale, shift = (part if part is None else part.reshape(channels) for part in (weight, bias))
    return _scaled(_standardised(grouped, (2,), eps).reshape(a.shape), scale, shift)


@operation("embedding")
def embedding(
    a: Array, weight: Array, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """A padding row gets no gradient in PyTorch although it is used: no difference would show that."""
    if max_norm is not None or scale_grad_by_freq:
        raise UnsupportedError("max_norm or scale_grad_by_freq")
    if padding_idx is not None and np.any(a == padding_idx % len(weight)):
        raise UnsupportedError("padding_idx, whose row gets no gradient although it is used")
    return weight[a]


@operation("dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
def dropout(a: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if not training or p == 0:
        return np.array(a)
    if p == 1:
        return a * 0.0
    raise UnsupportedError("it drew random numbers")
