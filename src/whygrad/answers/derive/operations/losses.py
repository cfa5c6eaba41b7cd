"""Loss functions, with PyTorch's reductions and defaults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whygrad.answers.derive.operations.reductions import log_softmax
from whygrad.answers.derive.operations.table import Array, operation, reduced


def _weighed(losses: Array, weight: Array | None, reduction: str) -> Any:
    """Reduced with a weight per element; the mean is over the weights."""
    if weight is None:
        return reduced(losses, reduction)
    weight = np.broadcast_to(weight, losses.shape)
    return (losses * weight).sum() / weight.sum() if reduction == "mean" else reduced(losses * weight, reduction)


@operation("mse_loss")
def mse_loss(a: Array, target: Array, reduction: str = "mean", weight: Array | None = None) -> Any:
    return _weighed((a - target) ** 2, weight, reduction)


@operation("l1_loss")
def l1_loss(a: Array, target: Array, reduction: str = "mean", weight: Array | None = None) -> Any:
    return _weighed(np.abs(a - target), weight, reduction)


@operation("smooth_l1_loss")
def smooth_l1_loss(a: Array, target: Array, reduction: str = "mean", beta: float = 1.0) -> Any:
    distance = np.abs(a - target)
    if beta == 0:
        return reduced(distance, reduction)
    return reduced(np.where(distance < beta, 0.5 * distance**2 / beta, distance - 0.5 * beta), reduction)


@operation("huber_loss")
def huber_loss(
    a: Array, target: Array, reduction: str = "mean", delta: float = 1.0, weight: Array | None = None
) -> Any:
    distance = np.abs(a - target)
    losses = np.where(distance < delta, 0.5 * distance**2, delta * (distance - 0.5 * delta))
    return _weighed(losses, weight, reduction)


@operation("binary_cross_entropy")
def binary_cross_entropy(a: Array, target: Array, weight: Array | None = None, reduction: str = "mean") -> Any:
    """The logarithms are cut off at -100, as PyTorch does."""
    losses = -(target * np.maximum(np.log(a), -100) + (1 - target) * np.maximum(np.log1p(-a), -100))
    return reduced(losses if weight is None else losses * weight, reduction)


@operation("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    a: Array, target: Array, weight: Array | None = None, reduction: str = "mean", pos_weight: Array | None = None
) -> Any:
    positive = target if pos_weight is None else target * pos_weight
    losses = positive * np.logaddexp(0.0, -a) + (1 - target) * np.logaddexp(0.0, a)
    return reduced(losses if weight is None else losses * weight, reduction)


@operation("nll_loss")
def nll_loss(
    a: Array, target: Array, weight: Array | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    """a: (classes) or (batch, classes, ...) of log-probabilities; the mean is weighted by the class weights."""
    classes = np.moveaxis(a, 1 if a.ndim > 1 else 0, -1)
    kept = target != ignore_index
    chosen = np.where(kept, target, 0)
    losses = -np.take_along_axis(classes, chosen[..., np.newaxis], axis=-1)[..., 0]
    shares = np.where(kept, 1.0 if weight is None else weight[chosen], 0.0)
    losses = np.where(kept, losses, 0.0) * shares
    return losses.sum() / shares.sum() if reduction == "mean" else reduced(losses, reduction)


@operation("cross_entropy")
def cross_entropy(
    a: Array, target: Array, weight: Array | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    axis = 1 if a.ndim > 1 else 0
    logs = log_softmax(a, axis)
    count = a.shape[axis]
    shares = np.ones(count) if weight is None else weight
    by_class = shares.reshape(-1, *(1,) * (a.ndim - axis - 1))
    if target.dtype.kind == "f":
        smooth = target * (1 - label_smoothing) + label_smoothing / count
        losses = -(smooth * logs * by_class).sum(axis=axis)
        batch = max(losses.size // max(math.prod(a.shape[2:]), 1), 1) * math.prod(a.shape[2:])
        return losses.sum() / batch if reduction == "mean" else reduced(losses, reduction)
    hard = nll_loss(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    kept = target != ignore_index
    soft = np.where(kept, -(logs * by_class).sum(axis=axis), 0.0)
    smooth = soft.sum() / shares[target[kept]].sum() if reduction == "mean" else reduced(soft, reduction)
    return (1 - label_smoothing) * hard + label_smoothing / count * smooth


@operation("kl_div")
def kl_div(a: Array, target: Array, reduction: str = "mean", log_target: bool = False) -> Any:
    if log_target:
        losses = np.exp(target) * (target - a)
    else:
        losses = np.where(target > 0, target * np.log(np.where(target > 0, target, 1.0)), 0.0) - target * a
    return losses.sum() / a.shape[0] if reduction == "batchmean" else reduced(losses, reduction)


@operation("poisson_nll_loss")
def poisson_nll_loss(
    a: Array, target: Array, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Any:
    losses = np.exp(a) - target * a if log_input else a - target * np.log(a + eps)
    if full:
        large = np.where(target > 1, target, 2.0)
        losses = losses + np.where(target > 1, large * np.log(large) - large + 0.5 * np.log(2 * math.pi * large), 0.0)
    return reduced(losses, reduction)


@operation("gaussian_nll_loss")
def gaussian_nll_loss(
    a: Array, target: Array, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """PyTorch keeps the variance above `eps` without a gradient there."""
    var = np.maximum(var, eps)
    losses = 0.5 * (np.log(var) + (a - target) ** 2 / var)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


@operation("hinge_embedding_loss")
def hinge_embedding_loss(a: Array, target: Array, margin: float = 1.0, reduction: str = "mean") -> Any:
    return reduced(np.where(target == 1, a, np.maximum(0.0, margin - a)), reduction)


@operation("margin_ranking_loss")
def margin_ranking_loss(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    return reduced(np.maximum(0.0, -target * (input1 - input2) + margin), reduction)


@operation("soft_margin_loss")
def soft_margin_loss(a: Array, target: Array, reduction: str = "mean") -> Any:
    return reduced(np.logaddexp(0.0, -target * a), reduction)
