"""`torch.linalg`."""

from __future__ import annotations

from typing import Any

from .. import catalogue
from ..errors import not_covered
from ..ops.decompositions import LinAlgError
from ..ops.define import guarded
from ..ops.linalg import LINALG

globals().update({name: guarded(f"linalg_{name}", function) for name, function in LINALG.items()})


def __getattr__(name: str) -> Any:
    if name in catalogue.LINALG:
        not_covered(f"torch.linalg.{name}")
    raise AttributeError(f"module 'torch.linalg' has no attribute '{name}'")


__all__ = ["LinAlgError"]
