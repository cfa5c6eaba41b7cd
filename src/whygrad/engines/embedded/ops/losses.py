"""Losses of `torch.nn.functional`."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..autocast import raised
from ..graph import Node, node_class
from ..tensor import Tensor, brackets
from ..warn import warn
from .activation import FUNCTIONAL, functional, log_softmax_
from .define import bare, differentiable, finished, not_covered, record, tracking
from .shape import broadcast_tensors


def reduction_of(reduction: str, size_average: Any, reduce: Any) -> str:
    """The reduction asked for; the two old flags still count, with a warning."""
    if size_average is None and reduce is None:
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"{reduction} is not a valid value for reduction")
        return reduction
    mean = True if size_average is None else size_average
    ret = ("mean" if mean else "sum") if (True if reduce is None else reduce) else "none"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{ret}' instead.")
    return ret


def reduced(loss: Tensor, reduction: str) -> Tensor:
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _warn_sizes(input: Tensor, target: Tensor) -> None:
    if input._a.shape != target._a.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead "
            "to incorrect results due to broadcasting. Please ensure they have the same size."
        )


def _pairwise(node: str, kernel: Any, slope: Any) -> Any:
    """A loss of input - target: its kernel and its derivative by the difference."""

    def rule(F: Any, node: Node, g: Any, x: Any, y: Any, scale: float, p: Any) -> Any:
        dx = slope(F, x - y, p) * g * scale if scale != 1 else slope(F, x - y, p) * g
        return (dx if node.edges[0] is not None else None), (-dx if node.edges[1] is not None else None)

    cls = node_class(node, rule, ("self", "target"))

    def apply(input: Tensor, target: Tensor, reduction: str, p: Any = None) -> Tensor:
        x, y = broadcast_tensors(input, target)
        d = dtypes.promote_types(x.dtype, y.dtype)
        a = kernel(bare(differentiable.cast(x.detach(), d)) - bare(differentiable.cast(y.detach(), d)), p)
        n = a.size
        if reduction == "mean":
            r = a.sum() / a.dtype.type(n) if a.size else a.dtype.type(math.nan)
        else:
            r = a.sum() if reduction == "sum" else a
        out = finished(np.asarray(r, d.compute)[()], d)
        if tracking(x, y):
            record(cls, out, (x, y), (x, y, 1 / n if reduction == "mean" and n else 1, p))
        return out

    return apply


def _huber(z: Any, delta: float) -> Any:
    size = np.abs(z)
    return np.where(size <= delta, 0.5 * z * z, delta * (size - 0.5 * delta))


def _smooth(z: Any, beta: float) -> Any:
    size = np.abs(z)
    return np.where(size < beta, 0.5 * z * z / beta, size - 0.5 * beta)


def _huber_slope(F: Any, z: Any, delta: float) -> Any:
    return F.where(z <= -delta, -delta, F.where(z >= delta, delta, z))


def _smooth_slope(F: Any, z: Any, beta: float) -> Any:
    return F.where(F.abs(z) < beta, z / beta, F.sign(z))


_mse = _pairwise("MseLossBackward0", lambda z, p: z * z, lambda F, z, p: 2 * z)
_smooth_l1 = _pairwise("SmoothL1LossBackward0", _smooth, _smooth_slope)
_huber_loss = _pairwise("HuberLossBackward0", _huber, _huber_slope)


@functional()
@raised
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    _warn_sizes(input, target)
    how = reduction_of(reduction, size_average, reduce)
    if weight is not None:
        not_covered("weight= of mse_loss")
    return _mse(input, target, how)


@functional()
@raised
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    _warn_sizes(input, target)
    if weight is not None:
        not_covered("weight= of l1_loss")
    x, y = broadcast_tensors(input, target)
    return reduced((x - y).abs(), reduction_of(reduction, size_average, reduce))


@functional()
@raised
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    _warn_sizes(input, target)
    how = reduction_of(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        x, y = broadcast_tensors(input, target)
        return reduced((x - y).abs(), how)
    return _smooth_l1(input, target, how, beta)


@functional()
@raised
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    _warn_sizes(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        not_covered("weight= of huber_loss")
    return _huber_loss(input, target, reduction, delta)


# --- classes ------------------------------------------------------------------------------------------------------


def _nll_rule(
    F: Any, node: Node, g: Any, x: Any, target: Any, weight: Any, places: Any, coefficients: Any, shape: Any
) -> Any:
    """-w/total at each target's place."""
    return F.scatter_flat(g * F.constant(coefficients, g), places, shape)


NllLossBackward0 = node_class("NllLossBackward0", _nll_rule, ("self", "target", "weight"))
NllLoss2DBackward0 = node_class("NllLoss2DBackward0", _nll_rule, ("self", "target", "weight"))


def _nll(x: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str) -> Tensor:
    a, t = bare(x), np.asarray(target._a)
    ndim = a.ndim
    if ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if ndim != 1 and a.shape[0] != (t.shape[0] if t.ndim else -1):
        raise ValueError(
            f"Expected input batch_size ({a.shape[0]}) to match target batch_size ({t.shape[0] if t.ndim else 1})."
        )
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.legacy}")
    if ndim > 2 and t.shape != (a.shape[0], *a.shape[2:]):
        raise RuntimeError(f"Expected target size {brackets((a.shape[0], *a.shape[2:]))}, got {brackets(t.shape)}")
    if ndim <= 2 and t.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    classes = a.shape[0] if ndim == 1 else a.shape[1]
    if weight is not None and weight._a.shape != (classes,):
        raise RuntimeError(
            "weight tensor should be defined either for all "
            + str(classes)
            + " classes or no classes but got weight tensor of "
            f"shape: {brackets(weight._a.shape)}"
        )
    valid = t != ignore
    bad = (
        t[valid & ((t < 0) | (t >= classes))]
        if t.ndim
        else t.reshape(1)[(valid & ((t < 0) | (t >= classes))).reshape(1)]
    )
    if bad.size:
        raise IndexError(f"Target {int(bad.flat[0])} is out of bounds.")
    safe = np.where(valid, t, 0)
    if ndim == 1:
        places = safe
    else:
        inner = math.prod(a.shape[2:])
        batch = np.arange(a.shape[0]).reshape((-1,) + (1,) * (ndim - 2))
        rest = np.arange(inner).reshape((1, *a.shape[2:]) if ndim > 2 else (1,))
        places = (batch * classes + safe) * inner + rest if ndim > 2 else batch * classes + safe
    w = (weight._a[safe] if weight is not None else np.ones(t.shape, a.dtype)).astype(a.dtype) * valid
    picked = np.ravel(a)[places]
    values = np.where(valid, -picked * w, a.dtype.type(0))
    total = w.sum(dtype=a.dtype)
    if reduction == "none":
        r, coefficients = values, -w
    elif reduction == "sum":
        r, coefficients = values.sum(dtype=a.dtype), -w
    else:  # ignored targets get 0 even where all are ignored and the mean is 0/0
        r, coefficients = values.sum(dtype=a.dtype) / total, np.where(valid, -w / total, a.dtype.type(0))
    out = finished(np.asarray(r, a.dtype)[()], x.dtype)
    if tracking(x):
        cls = NllLossBackward0 if ndim <= 2 else NllLoss2DBackward0
        record(cls, out, (x,), (x, target, weight, places, coefficients, a.shape))
    return out


@functional()
@raised
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    return _nll(input, target, weight, ignore_index, reduction_of(reduction, size_average, reduce))


@functional()
@raised
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """log_softmax, then nll_loss; or the mean of -target*log_softmax where the target holds probabilities."""
    how = reduction_of(reduction, size_average, reduce)
    if not isinstance(target, Tensor):
        raise TypeError(
            "cross_entropy_loss(): argument 'target' (position 2) must be Tensor, not " + type(target).__name__
        )
    if label_smoothing < 0.0 or label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    ndim = input._a.ndim
    d = 0 if ndim == 1 else 1
    if input._a.shape == target._a.shape and ndim != 0:
        if target.dtype.kind != "f":
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype.legacy}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        classes = input._a.shape[d]
        if label_smoothing > 0:
            target = target * (1 - label_smoothing) + label_smoothing / classes
        log_p = log_softmax_(input, d)
        terms = log_p * target
        if weight is not None:
            terms = terms * weight.view([-1 if i == d else 1 for i in range(ndim)])
        if how == "none":
            return -terms.sum(d)
        total = -terms.sum()
        return total if how == "sum" else total / (input._a.size / classes)
    log_p = log_softmax_(input, d)
    loss = _nll(log_p, target, weight, ignore_index, how)
    if label_smoothing == 0:
        return loss
    classes = input._a.shape[d]
    scaled = log_p if weight is None else log_p * weight.view([-1 if i == d else 1 for i in range(ndim)])
    smooth = -scaled.sum(d)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored, 0.0)
    if how == "mean":
        if weight is None:
            smooth = smooth.sum() / int((~ignored._a).sum())
        else:
            w = np.where(ignored._a, 0, weight._a[np.where(ignored._a, 0, target._a)])
            smooth = smooth.sum() / float(w.sum())
    elif how == "sum":
        smooth = smooth.sum()
    return loss * (1 - label_smoothing) + smooth * (label_smoothing / classes)


# --- probabilities ------------------------------------------------------------------------------------------------


def _bce_rule(F: Any, node: Node, g: Any, x: Any, t: Any, w: Any, scale: float) -> Any:
    e = node.edges
    g = g if w is None else g * w
    g = g * scale if scale != 1 else g
    dx = None if e[0] is None else g * (x - t) / F.maximum(x * (1 - x), F.constant(np.float64(1e-12), x))
    dt = None if e[1] is None else g * (F.log(1 - x) - F.log(x))
    return dx, dt


BinaryCrossEntropyBackward0 = node_class("BinaryCrossEntropyBackward0", _bce_rule, ("self", "target", "weight"))


@functional()
@raised
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    how = reduction_of(reduction, size_average, reduce)
    if target._a.shape != input._a.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is "
            "deprecated. Please "
            "ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.legacy} but expected {input.dtype.legacy}")
    a, t = bare(input), bare(target)
    if ((a < 0) | (a > 1)).any():
        raise RuntimeError("all elements of input should be between 0 and 1")
    low = a.dtype.type(-100)
    r = (t - 1) * np.maximum(np.log1p(-a), low) - t * np.maximum(np.log(a), low)
    if weight is not None:
        r = r * weight._a
    n = r.size
    v = r.sum() / a.dtype.type(n) if how == "mean" else r.sum() if how == "sum" else r
    out = finished(np.asarray(v, a.dtype)[()], input.dtype)
    if tracking(input, target):
        record(
            BinaryCrossEntropyBackward0,
            out,
            (input, target),
            (input, target, weight, 1 / n if how == "mean" and n else 1),
        )
    return out


def _bce_logits_rule(F: Any, node: Node, g: Any, x: Any, t: Any, w: Any, pos: Any, scale: float) -> Any:
    e = node.edges
    g = g if w is None else g * w
    g = g * scale if scale != 1 else g
    s = F.sigmoid(x)
    if pos is None:
        dx = None if e[0] is None else (s - t) * g
        dt = None if e[1] is None else -x * g
        return dx, dt
    pt = pos * t
    dx = None if e[0] is None else ((pt + 1 - t) * s - pt) * g
    dt = None if e[1] is None else (F.log(1 - s) - pos * F.log(s)) * g
    return dx, dt


BinaryCrossEntropyWithLogitsBackward0 = node_class(
    "BinaryCrossEntropyWithLogitsBackward0", _bce_logits_rule, ("self", "target")
)


@functional()
@raised
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    how = reduction_of(reduction, size_average, reduce)
    if target._a.shape != input._a.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    x, t = bare(input), np.asarray(target._a).astype(input.dtype.compute)
    log_sigmoid = np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))
    r = (1 - t) * x - log_sigmoid if pos_weight is None else (1 - t) * x - ((pos_weight._a - 1) * t + 1) * log_sigmoid
    if weight is not None:
        r = r * weight._a
    n = r.size
    v = r.sum() / x.dtype.type(n) if how == "mean" else r.sum() if how == "sum" else r
    d = input.dtype if pos_weight is None else dtypes.promote_types(input.dtype, pos_weight.dtype)
    out = finished(np.asarray(v, d.compute)[()], d)
    if tracking(input, target):
        saved = (input, target, weight, pos_weight, 1 / n if how == "mean" and n else 1)
        record(BinaryCrossEntropyWithLogitsBackward0, out, (input, target), saved)
    return out


@functional()
@raised
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    how = "batchmean" if reduction == "batchmean" else reduction_of(reduction, size_average, reduce)
    if how == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' "
            "divides only by "
            "the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release."
        )
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if how == "batchmean":
        return loss.sum() / input._a.shape[0] if input._a.ndim else loss.sum()
    return reduced(loss, how)


@functional()
@raised
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        term = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + term.masked_fill(target <= 1, 0)
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@functional()
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    if isinstance(var, float):
        var = var * input.new_ones(input._a.shape)
    if var._a.shape != input._a.shape:
        if input._a.shape[:-1] == var._a.shape:
            var = var.unsqueeze(-1)
        elif not (input._a.shape[:-1] == var._a.shape[:-1] and var._a.shape[-1] == 1):
            raise ValueError("var is of incorrect size")
    if (var._a < 0).any():
        raise ValueError("var has negative entry/entries")
    bounded = var.clone()
    from ..modes import modes

    before, modes.grad = modes.grad, False
    try:
        bounded.clamp_(min=eps)
    finally:
        modes.grad = before
    loss = 0.5 * (bounded.log() + (input - target) ** 2 / bounded)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


# --- margins ------------------------------------------------------------------------------------------------------


@functional()
@raised
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    hinge = (margin - input).clamp_min(0)
    loss = differentiable.where(target == 1, 0.0, hinge) + differentiable.where(target == -1, 0.0, input)
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@functional()
@raised
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    if not input1._a.ndim == input2._a.ndim == target._a.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = (-target * (input1 - input2) + margin).clamp_min(0)
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@functional()
@raised
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    return reduced((-target * input).exp().log1p(), reduction_of(reduction, size_average, reduce))


@functional()
@raised
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    log_sigmoid = FUNCTIONAL["logsigmoid"]
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(-1) / input._a.shape[-1]
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@functional()
@raised
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    x = input if input._a.ndim == 2 else input.reshape(1, -1)
    t = target.reshape(-1, 1)
    z = (margin - x.gather(1, t) + x).clamp_min(0)
    z = z * z if p == 2 else z
    if weight is not None:
        z = z * weight[t]
    keep = np.ones(x._a.shape, bool)
    keep[np.arange(keep.shape[0]), t._a[:, 0]] = False
    from .define import wrap

    loss = z.masked_fill(wrap(~keep, dtypes.bool_), 0).sum(1) / x._a.shape[1]
    loss = loss if input._a.ndim == 2 else loss.squeeze(0)
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@functional()
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The dot product of the normalised vectors; norms are kept above eps."""
    x1, x2 = broadcast_tensors(x1, x2)
    n1, n2 = (x.norm(2, dim, keepdim=True).clamp_min(eps) for x in (x1, x2))
    return ((x1 / n1) * (x2 / n2)).sum(dim)


@functional()
@raised
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    d = target._a.ndim
    dots = (input1 * input2).sum(d)
    m1, m2 = (input1 * input1).sum(d) + 1e-12, (input2 * input2).sum(d) + 1e-12
    cosine = dots / (m1 * m2).sqrt()
    loss = differentiable.where(target == 1, 1 - cosine, 0.0) + differentiable.where(
        target == -1, (cosine - margin).clamp_min(0), 0.0
    )
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@functional()
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    return (x1 - x2 + eps).norm(p, -1, keepdim)


@functional()
@raised
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = differentiable.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), reduction_of(reduction, size_average, reduce))
