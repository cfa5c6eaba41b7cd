"""`torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from ... import catalogue
from ...errors import not_covered
from ...ops.activation import FUNCTIONAL
from ...ops.define import guarded

globals().update({name: guarded(name, function) for name, function in FUNCTIONAL.items()})


def __getattr__(name: str) -> Any:
    if name in catalogue.FUNCTIONAL:
        not_covered(f"torch.nn.functional.{name}")
    raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'")
