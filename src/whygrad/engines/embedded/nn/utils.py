"""`torch.nn.utils`: clipping, flattening parameters."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import differentiable, dtypes
from ..errors import not_covered
from ..modes import no_grad
from ..tensor import Tensor, wrap


def _many(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


@no_grad()
def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """The norm of all tensors as one vector."""
    tensors = _many(tensors)
    p = float(norm_type)
    if not tensors:
        return wrap(np.float32(0.0), dtypes.float32)
    norms = [differentiable.vector_norm(t, p) for t in tensors]
    total = differentiable.vector_norm(differentiable.stack(norms), p)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {p} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this "
            "error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: Any = None) -> None:
    parameters = _many(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    if grads:
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(factor)


@no_grad()
def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Scale all gradients together so that their norm is at most max_norm."""
    from ..warn import warn

    exhausted = not isinstance(parameters, (Tensor, list, tuple)) and hasattr(parameters, "__next__")
    parameters = _many(parameters)
    if exhausted and not parameters:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Limit each entry of the gradients."""
    parameters = _many(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    for g in grads:
        g.clamp_(min=-float(clip_value), max=float(clip_value))


def parameters_to_vector(parameters: Any) -> Tensor:
    return differentiable.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Any) -> None:
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[at : at + n].view_as(p).data
        at += n


def weight_norm(*args: Any, **kwargs: Any) -> Any:
    not_covered("nn.utils.weight_norm")


def spectral_norm(*args: Any, **kwargs: Any) -> Any:
    not_covered("nn.utils.spectral_norm")
