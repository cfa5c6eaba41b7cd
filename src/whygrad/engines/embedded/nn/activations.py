"""Activations as modules: each calls the function of its name."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import Defaults
from ..nn_parameter import Parameter
from ..ops.activation import FUNCTIONAL as F
from ..tensor import Tensor, wrap
from .module import Module

_MODULE = "torch.nn.modules.activation"
ACTIVATIONS: dict[str, type[Module]] = {}


class _Activation(Module):
    """Settings become attributes and arguments of the function; `shown` says which ones print."""

    __module__ = _MODULE
    function = ""
    settings: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self.settings)
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes from 1 to {len(names) + 1} positional arguments but "
                f"{len(args) + 1} were given"
            )
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for name in given:
            if name not in names:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        for name, default in self.settings.items():
            setattr(self, name, given.get(name, default))

    def forward(self, input: Tensor) -> Tensor:
        return F[self.function](input, *[getattr(self, name) for name in self.settings])

    def extra_repr(self) -> str:
        shown = []
        for name in self.settings:
            value = getattr(self, name)
            if name == "inplace":
                if value:
                    shown.append("inplace=True")
            elif self.function in ("softshrink", "hardshrink"):
                shown.append(f"{value}")
            elif self.function == "gelu":
                shown.append(f"{name}={value!r}")
            else:
                shown.append(f"{name}={value}")
        return ", ".join(shown)


def _define(name: str, function: str, **settings: Any) -> None:
    ACTIVATIONS[name] = type(
        name,
        (_Activation,),
        {"__module__": _MODULE, "function": function, "settings": settings, "__doc__": f"`{function}`."},
    )


_define("ReLU", "relu", inplace=False)
_define("ReLU6", "relu6", inplace=False)
_define("Sigmoid", "sigmoid")
_define("Tanh", "tanh")
_define("LeakyReLU", "leaky_relu", negative_slope=0.01, inplace=False)
_define("ELU", "elu", alpha=1.0, inplace=False)
_define("SELU", "selu", inplace=False)
_define("CELU", "celu", alpha=1.0, inplace=False)
_define("GELU", "gelu", approximate="none")
_define("SiLU", "silu", inplace=False)
_define("Mish", "mish", inplace=False)
_define("Softplus", "softplus", beta=1.0, threshold=20.0)
_define("Softsign", "softsign")
_define("Tanhshrink", "tanhshrink")
_define("Hardsigmoid", "hardsigmoid", inplace=False)
_define("Hardswish", "hardswish", inplace=False)
_define("Softshrink", "softshrink", lambd=0.5)
_define("Hardshrink", "hardshrink", lambd=0.5)
_define("LogSigmoid", "logsigmoid")
_define("GLU", "glu", dim=-1)


class Threshold(Module):
    """x above the threshold, else a value."""

    __module__ = _MODULE

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F["threshold"](input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """x limited to [min_val, max_val]."""

    __module__ = _MODULE

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F["hardtanh"](input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class _AlongDim(Module):
    __module__ = _MODULE
    function = "softmax"

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F[self.function](input, self.dim, 5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """Positive numbers that sum to 1 along a dimension."""

    __module__ = _MODULE


class LogSoftmax(_AlongDim):
    """The logarithm of softmax."""

    __module__ = _MODULE
    function = "log_softmax"

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """Softmax of -x."""

    __module__ = _MODULE
    function = "softmin"


class Softmax2d(Module):
    """Softmax over channels."""

    __module__ = _MODULE

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F["softmax"](input, -3)


class PReLU(Module):
    """A leaky relu whose slope is learned."""

    __module__ = _MODULE

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        d = dtype or Defaults.floating
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(wrap(np.full(num_parameters, init, d.storage), d))

    def forward(self, input: Tensor) -> Tensor:
        return F["prelu"](input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


for _cls in (Threshold, Hardtanh, Softmax, LogSoftmax, Softmin, Softmax2d, PReLU):
    ACTIVATIONS[_cls.__name__] = _cls
