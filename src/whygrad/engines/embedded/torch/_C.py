"""`torch._C`: what tools ask PyTorch's core. This engine has no dispatch modes, no tracing and no batched tensors."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from ..errors import not_covered
from ..graph import SavedTensor, upcoming

DisableTorchFunction = DisableTorchFunctionSubclass = nullcontext


def _none() -> None:
    return None


def _get_tracing_state() -> None:
    return None


def _len_torch_dispatch_stack() -> int:
    return 0


_len_torch_function_stack = _len_torch_dispatch_stack

_functorch = SimpleNamespace(peek_interpreter_stack=_none, is_legacy_batchedtensor=lambda _: False)
_autograd = SimpleNamespace(_get_sequence_nr=upcoming, SavedTensor=SavedTensor)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    not_covered(f"torch._C.{name}")


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass"]
