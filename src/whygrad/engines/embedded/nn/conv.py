"""Convolutions and their transposes."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

from ..errors import not_covered
from ..nn_parameter import Parameter
from ..ops.activation import FUNCTIONAL as F
from ..tensor import Tensor
from . import init
from .layers import _cpu, empty
from .module import Module


class _ConvNd(Module):
    __module__ = "torch.nn.modules.conv"
    n = 0
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        output_padding: Any = 0,
    ) -> None:
        super().__init__()
        _cpu(device)
        n = self.n
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"padding_mode must be one of {{'zeros', 'reflect', 'replicate', 'circular'}}, but got "
                f"padding_mode='{padding_mode}'"
            )

        def many(v: Any) -> Any:
            return v if isinstance(v, str) else (v,) * n if isinstance(v, int) else tuple(v)

        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.transposed = type(self).transposed
        self.kernel_size, self.stride, self.padding = many(kernel_size), many(stride), many(padding)
        self.dilation, self.output_padding, self.padding_mode = many(dilation), many(output_padding), padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string '{padding}', should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        shape = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty(*shape, *self.kernel_size, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._fans(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.n:
            s += f", padding={self.padding}"
        if self.dilation != (1,) * self.n:
            s += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.n:
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        if self.padding_mode != "zeros":
            s += f", padding_mode={self.padding_mode}"
        return s

    def forward(self, input: Tensor) -> Tensor:
        x, padding = input, self.padding
        if self.padding_mode != "zeros":
            pads = [p for v in reversed(padding) for p in (v, v)]
            x, padding = F["pad"](x, pads, mode=self.padding_mode), 0
        return F[f"conv{self.n}d"](x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    __module__ = "torch.nn.modules.conv"
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
            output_padding,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        if output_size is not None:
            not_covered(f"output_size of {type(self).__name__}")
        return F[f"conv_transpose{self.n}d"](
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )


def _conv(name: str, base: type, n: int) -> Any:
    return type(
        name, (base,), {"n": n, "__module__": "torch.nn.modules.conv", "__doc__": f"Convolution over {n} dimensions."}
    )


Conv1d, Conv2d, Conv3d = (_conv(f"Conv{n}d", _ConvNd, n) for n in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (
    _conv(f"ConvTranspose{n}d", _ConvTransposeNd, n) for n in (1, 2, 3)
)
