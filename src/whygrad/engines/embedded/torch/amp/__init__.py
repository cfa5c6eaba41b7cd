"""`torch.amp`: gradient scaling. Autocasting is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...dtypes import float32
from ...errors import not_covered
from ...tensor import Tensor, wrap


class autocast:
    """Mixed precision is not covered; `enabled=False` does nothing."""

    __module__ = "torch.amp.autocast_mode"

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        if enabled:
            not_covered("torch.autocast")

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


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
        self._scale, self._growth, self._backoff, self._interval = (
            float(init_scale),
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
        return self._scale if self._enabled else 1.0

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
            return outputs * wrap(np.float32(self._scale), float32)
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
        inverse = 1.0 / self._scale
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
            self._scale = float(new_scale)
        else:
            if not self._unscaled:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(self._unscaled.values()):
                self._scale *= self._backoff
                self._good = 0
            else:
                self._good += 1
                if self._good == self._interval:
                    grown = self._scale * self._growth
                    if math.isfinite(np.float32(grown)):
                        self._scale = grown
                    self._good = 0
        self._unscaled.clear()
        self._stepped.clear()

    def state_dict(self) -> dict[str, Any]:
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._good,
        }
