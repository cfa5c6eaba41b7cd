"""Dropout and its channel-wise forms."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

from ..ops.activation import FUNCTIONAL as F
from ..tensor import Tensor
from .module import Module


class _DropoutNd(Module):
    __module__ = "torch.nn.modules.dropout"
    function = "dropout"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0.0 or p > 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"

    def forward(self, input: Tensor) -> Tensor:
        return F[self.function](input, self.p, self.training, self.inplace)


def _dropout(name: str, function: str) -> Any:
    return type(name, (_DropoutNd,), {"function": function, "__module__": "torch.nn.modules.dropout"})


Dropout = _dropout("Dropout", "dropout")
Dropout1d, Dropout2d, Dropout3d = (_dropout(f"Dropout{n}d", f"dropout{n}d") for n in (1, 2, 3))
AlphaDropout = _dropout("AlphaDropout", "alpha_dropout")
