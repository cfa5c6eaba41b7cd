"""What backward rules do in one operation of PyTorch's own, so that a gradient of a gradient has PyTorch's nodes."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

from .. import differentiable, kernels
from ..graph import Node, node_class
from ..tensor import Tensor, wrap
from .define import record, tracking


def _step(name: str, node: str, kernel: Any, rule: Any, slots: tuple[str, ...]) -> None:
    """`F.name(g, x)` for rules: its kernel on arrays, its node on tensors."""
    cls = node_class(node, rule, slots)

    def apply(g: Tensor, x: Any) -> Tensor:
        is_tensor = isinstance(x, Tensor)
        out = wrap(kernel(g._a, x._a if is_tensor else x), g.dtype)
        if tracking(g, x if is_tensor else None):
            record(cls, out, (g, x) if is_tensor else (g,), (g, x) if slots else (x,))
        return out

    setattr(kernels, name, kernel)
    setattr(differentiable, name, apply)


def _tanh_again(F: Any, node: Node, gg: Any, g: Any, r: Any) -> Any:
    """d(g (1 - r^2)): 1 - r^2 for g, -2 g r for r."""
    return F.tanh_backward(gg, r), gg * (F.scaled(r, -2) * g)


def _sigmoid_again(F: Any, node: Node, gg: Any, g: Any, r: Any) -> Any:
    """d(g (1 - r) r): (1 - r) r for g, g (1 - 2 r) for r."""
    return F.sigmoid_backward(gg, r), gg * g * (1 - 2 * r)


_step("tanh_backward", "TanhBackwardBackward0", lambda g, r: g * (1 - r * r), _tanh_again, ("grad_output", "output"))
_step(
    "sigmoid_backward",
    "SigmoidBackwardBackward0",
    lambda g, r: g * (1 - r) * r,
    _sigmoid_again,
    ("grad_output", "output"),
)
_step("scaled", "MulBackward1", lambda g, n: g * n, lambda F, node, gg, n: F.scaled(gg, n), ())

__all__: list[str] = []
