"""`torch.amp`: autocasting, and gradient scaling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...autocast import autocast
from ...dtypes import float32
from ...errors import not_covered
from ...tensor import Tensor, wrap
from . import autocast_mode


class GradScaler:
    """Multiplies the loss so that small gradients survive half precision; skips steps with infinite gradients."""

    __module__ = "torch.amp.grad_scaler"

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if device not in ("cpu", "cuda"):
            not_covered(f"GradScaler on {device}")
        self._enabled = enabled
        if device == "cuda" and enabled:
            from ...warn import warn

            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        self._init_scale = float(init_scale)
        self._scale: Tensor | None = None
        self._growth, self._backoff, self._interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._good = 0
        self._unscaled: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        return self._enabled

    def get_scale(self) -> float:
        return self._factor() if self._enabled else 1.0

    def _factor(self) -> float:
        return self._init_scale if self._scale is None else float(self._scale._a)

    def _set(self, factor: float) -> None:
        self._scale = wrap(np.float32(factor), float32)

    def get_growth_factor(self) -> float:
        return self._growth

    def get_backoff_factor(self) -> float:
        return self._backoff

    def get_growth_interval(self) -> int:
        return self._interval

    def scale(self, outputs: Any) -> Any:
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._set(self._init_scale)
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(o) for o in outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        if not self._enabled:
            return
        if id(optimizer) in self._unscaled:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = 1.0 / self._factor()
        found = False
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    found = found or not bool(np.isfinite(p._grad._a).all())
                    from ...modes import no_grad

                    with no_grad():
                        p._grad.mul_(inverse)
        self._unscaled[id(optimizer)] = found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        if not any(p._grad is not None for g in optimizer.param_groups for p in g["params"]):
            raise AssertionError("No inf checks were recorded for this optimizer.")
        self._stepped.add(id(optimizer))
        return None if self._unscaled[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        if not self._enabled:
            return
        if new_scale is not None:
            self._set(float(new_scale))
        else:
            if not self._unscaled:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(self._unscaled.values()):
                self._set(self._factor() * self._backoff)
                self._good = 0
            else:
                self._good += 1
                if self._good == self._interval:
                    grown = self._factor() * self._growth
                    if math.isfinite(np.float32(grown)):
                        self._set(grown)
                    self._good = 0
        self._unscaled.clear()
        self._stepped.clear()

    def state_dict(self) -> dict[str, Any]:
        if not self._enabled:
            return {}
        return {
            "scale": self._factor(),
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._good,
        }
