"""Pooling."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

from ..ops.activation import FUNCTIONAL as F
from ..tensor import Tensor
from .module import Module


class _MaxPool(Module):
    __module__ = "torch.nn.modules.pooling"
    n = 0

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return F[f"max_pool{self.n}d"](
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Module):
    __module__ = "torch.nn.modules.pooling"
    n = 0

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        many = (lambda v: (v,) if isinstance(v, int) else v) if self.n == 1 else (lambda v: v)
        self.kernel_size, self.stride = many(kernel_size), many(stride if stride is not None else kernel_size)  # type: ignore[no-untyped-call]
        self.padding, self.ceil_mode = many(padding), ceil_mode  # type: ignore[no-untyped-call]
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F[f"avg_pool{self.n}d"](
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptivePool(Module):
    __module__ = "torch.nn.modules.pooling"
    function = ""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        if self.return_indices:
            return F[self.function](input, self.output_size, True)
        return F[self.function](input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


def _pool(name: str, base: type, **attributes: Any) -> Any:
    return type(name, (base,), {"__module__": "torch.nn.modules.pooling", **attributes})


MaxPool1d, MaxPool2d, MaxPool3d = (_pool(f"MaxPool{n}d", _MaxPool, n=n) for n in (1, 2, 3))
AvgPool1d, AvgPool2d, AvgPool3d = (_pool(f"AvgPool{n}d", _AvgPool, n=n) for n in (1, 2, 3))
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (
    _pool(f"AdaptiveAvgPool{n}d", _AdaptivePool, function=f"adaptive_avg_pool{n}d") for n in (1, 2, 3)
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (
    _pool(f"AdaptiveMaxPool{n}d", _AdaptivePool, function=f"adaptive_max_pool{n}d") for n in (1, 2, 3)
)
