"""`torch.distributions`: Normal, Categorical's refusal, and what score functions need."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

from .. import catalogue, dtypes
from ..errors import not_covered
from ..modes import no_grad
from ..ops.define import TORCH
from ..ops.promote import broadcast_shape
from ..tensor import Tensor


class Distribution:
    """Base of the distributions."""

    __module__ = "torch.distributions.distribution"
    batch_shape: Any
    event_shape: Any = dtypes.Size(())

    def _extended(self, sample_shape: Any) -> Any:
        return dtypes.Size(tuple(sample_shape) + tuple(self.batch_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        raise NotImplementedError


class Normal(Distribution):
    """The normal distribution by mean (`loc`) and deviation (`scale`)."""

    __module__ = "torch.distributions.normal"

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        number = not isinstance(loc, Tensor) and not isinstance(scale, Tensor)
        loc, scale = (v if isinstance(v, Tensor) else TORCH["tensor"](float(v)) for v in (loc, scale))
        shape = broadcast_shape(loc._a.shape, scale._a.shape)
        self.loc, self.scale = (v if v._a.shape == shape else v.expand(shape) for v in (loc, scale))
        self.batch_shape = dtypes.Size(()) if number else dtypes.Size(shape)
        if validate_args is not False and (self.scale <= 0).any():
            raise ValueError(
                f"Expected parameter scale ({type(self.scale).__name__} of shape {tuple(self.scale.shape)}) "
                "of distribution "
                f"Normal(loc: {self.loc}, scale: {self.scale}) to satisfy the constraint "
                "GreaterThan(lower_bound=0.0), but "
                f"found invalid values:\n{self.scale}"
            )

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended(sample_shape)
        with no_grad():
            return TORCH["normal"](self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended(sample_shape)
        eps = TORCH["normal"](TORCH["zeros"](shape, dtype=self.loc.dtype), TORCH["ones"](shape, dtype=self.loc.dtype))
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        var = self.scale**2
        return -((value - self.loc) ** 2) / (2 * var) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    def __repr__(self) -> str:
        def shown(t: Tensor) -> Any:
            return t if t.numel() == 1 else t.size()

        return f"Normal(loc: {shown(self.loc)}, scale: {shown(self.scale)})"


def __getattr__(name: str) -> Any:
    if name[:1].isupper() or name in ("kl_divergence", "transforms", "constraints", "categorical", "normal"):
        not_covered(f"torch.distributions.{name}")
    raise AttributeError(f"module 'torch.distributions' has no attribute '{name}'")


__all__ = ["Distribution", "Normal", "catalogue"]
