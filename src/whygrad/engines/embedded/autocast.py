"""`torch.autocast`: inside, products run in a half-precision type and some losses in float32, as on PyTorch's CPU."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .dtypes import bfloat16, dtype, float16, float32
from .modes import modes
from .tensor import Tensor

_FAST = {"cpu": bfloat16, "cuda": float16}


class autocast:
    """A region in which operations choose their own precision; a context manager and a decorator."""

    __module__ = "torch.amp.autocast_mode"

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in _FAST:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype: dtype = _FAST[device_type] if dtype is None else dtype
        self._cache_enabled = True if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                "supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[Any] = []

    def __enter__(self) -> autocast:
        self._before.append((modes.autocast, modes.cast_weights))
        if self.device == "cpu":
            modes.autocast = self.fast_dtype if self._enabled else None
        if modes.cast_weights is None:
            modes.cast_weights = {}
        return self

    def __exit__(self, *exc: Any) -> None:
        modes.autocast, modes.cast_weights = self._before.pop()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return decorate_autocast


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether a region is open on the device."""
    return device_type == "cpu" and modes.autocast is not None


def get_autocast_dtype(device_type: str) -> dtype:
    return modes.autocast if device_type == "cpu" and modes.autocast is not None else _FAST[device_type]


def lowered(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that a region runs in its half-precision type."""

    @functools.wraps(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        fast = modes.autocast
        if fast is None:
            return function(*args, **kwargs)
        return _outside(function, [_to(a, fast) for a in args], {k: _to(v, fast) for k, v in kwargs.items()})

    return apply


def raised(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that a region runs in float32."""

    @functools.wraps(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        if modes.autocast is None:
            return function(*args, **kwargs)
        return _outside(function, [_up(a) for a in args], {k: _up(v) for k, v in kwargs.items()})

    return apply


def _outside(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What an operation calls in turn is cast already."""
    before, modes.autocast = modes.autocast, None
    try:
        return function(*args, **kwargs)
    finally:
        modes.autocast = before


def _to(value: Any, fast: dtype) -> Any:
    """A float32 tensor in the fast type; a weight is cast once in a region."""
    if not isinstance(value, Tensor) or value.dtype is fast or not value.dtype.is_floating_point:
        return value
    if value.dtype.itemsize == 8:
        return value
    if value._edge is not None or not value._rg or modes.cast_weights is None:
        return value.to(fast)  # type: ignore[attr-defined]
    kept = modes.cast_weights.get(id(value))
    if kept is None or kept[0] is not value or kept[2] is not modes.grad:
        kept = modes.cast_weights[id(value)] = (value, value.to(fast), modes.grad)  # type: ignore[attr-defined]
    return kept[1]


def _up(value: Any) -> Any:
    is_half = isinstance(value, Tensor) and value.dtype in (bfloat16, float16)
    return value.to(float32) if is_half else value
