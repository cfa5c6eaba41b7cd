"""`torch.nn.Parameter`: a tensor that modules register and optimizers train."""

from __future__ import annotations

from typing import Any

from .tensor import Tensor, wrap


class _ParameterMeta(type):
    """A plain tensor flagged by `_is_param` also counts as a Parameter."""


class Parameter(Tensor):
    """A leaf that requires grad, registered when assigned to a module."""

    __slots__ = ()
    __module__ = "torch.nn.parameter"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        import numpy as np

        from .dtypes import Defaults

        if data is None:
            data = wrap(np.zeros((0,), Defaults.floating.storage), Defaults.floating)
        out = data.detach()
        if requires_grad and out.dtype.kind not in "fc":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        out.__class__ = cls
        out._rg = requires_grad
        return out  # type: ignore[no-any-return]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class Buffer(Tensor):
    """A tensor that a module keeps without training it."""

    __slots__ = ()
    __module__ = "torch.nn.parameter"

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        out = data.detach()
        out.__class__ = cls
        out.__dict__["persistent"] = persistent
        return out  # type: ignore[no-any-return]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass
