"""The names of `kernels` as differentiable functions of tensors. Operations put themselves here (`ops.define`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
