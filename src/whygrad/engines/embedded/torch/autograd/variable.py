"""`torch.autograd.Variable`: today only another way to make a tensor."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ...warn import warn


class _Meta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Meta):
    """Gives back a tensor on the same memory."""

    __module__ = "torch.autograd.variable"

    def __new__(cls, data: Any = None, requires_grad: Any = False, volatile: Any = None) -> Any:
        if volatile:
            warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(bool(requires_grad))
