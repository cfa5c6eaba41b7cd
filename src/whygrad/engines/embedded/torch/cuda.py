"""`torch.cuda`: there is none here, as in a PyTorch built without it."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None: ...


def manual_seed_all(seed: int) -> None: ...


def empty_cache() -> None: ...


def synchronize(device: Any = None) -> None:
    raise AssertionError("Torch not compiled with CUDA enabled")


def is_initialized() -> bool:
    return False
