"""`torch.autograd.graph`: nodes and edges."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...backward import run as _engine_run_backward
from ...errors import not_covered
from ...graph import Node, public
from ...tensor import Tensor


class GradientEdge(NamedTuple):
    """Where a gradient enters a node."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*public(tensor._edge or tensor))


class saved_tensors_hooks:
    """Refused: this engine saves tensors as they are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        not_covered("torch.autograd.graph.saved_tensors_hooks")


__all__ = ["GradientEdge", "Node", "get_gradient_edge", "saved_tensors_hooks"]
