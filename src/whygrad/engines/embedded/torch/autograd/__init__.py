"""`torch.autograd`."""

from __future__ import annotations

from typing import Any

from ... import backward as _backward
from ... import catalogue
from ...anomaly import detect_anomaly, set_detect_anomaly
from ...errors import not_covered
from ...function import Function
from ...modes import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from . import function, functional, graph
from . import gradcheck as _gradcheck_module
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .variable import Variable

grad = _backward.grad


def _profiler_enabled() -> bool:
    return False


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: Any = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate gradients of `tensors` into the leaves."""
    _backward.backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def __getattr__(name: str) -> Any:
    if name in catalogue.AUTOGRAD:
        not_covered(f"torch.autograd.{name}")
    raise AttributeError(f"module 'torch.autograd' has no attribute '{name}'")


__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
