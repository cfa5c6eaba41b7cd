"""Reshaping, resizing, distances."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

from ..ops.activation import FUNCTIONAL as F
from ..tensor import Tensor
from .module import Module


class Flatten(Module):
    """Joins dimensions; all but the batch by default."""

    __module__ = "torch.nn.modules.flatten"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits a dimension."""

    __module__ = "torch.nn.modules.flatten"

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Upsample(Module):
    """Resizes space."""

    __module__ = "torch.nn.modules.upsampling"

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: Any = None,
        recompute_scale_factor: Any = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = (
            tuple(float(f) for f in scale_factor)
            if isinstance(scale_factor, tuple)
            else (float(scale_factor) if scale_factor else None)
        )
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F["interpolate"](
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        what = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{what}, mode={self.mode!r}"


class ZeroPad2d(Module):
    """Zeros around the last two dimensions."""

    __module__ = "torch.nn.modules.padding"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F["pad"](input, self.padding, "constant", 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class PixelShuffle(Module):
    """Channels into space."""

    __module__ = "torch.nn.modules.pixelshuffle"

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F["pixel_shuffle"](input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class CosineSimilarity(Module):
    """The cosine of the angle along a dimension."""

    __module__ = "torch.nn.modules.distance"

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F["cosine_similarity"](x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of the difference."""

    __module__ = "torch.nn.modules.distance"

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F["pairwise_distance"](x1, x2, self.norm, self.eps, self.keepdim)
