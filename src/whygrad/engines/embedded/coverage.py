"""What of PyTorch's API this engine has, counted by looking: for `whygrad engines` and the documentation."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from . import catalogue
from .errors import NotInEmbeddedEngine
from .tensor import Tensor

_NO_API = frozenset(
    "Callable DType Literal Mapping Optional ParamSpec Sequence TYPE_CHECKING Tensor TypeVar builtins cast classes "
    "common_notes common_types ctypes dataclasses factory_kwargs functools glob importlib inspect math np os overload "
    "platform sys textwrap threading torch warnings windows reproducibility_notes sparse_support_notes tf32_notes "
    "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic boolean_dispatch "
    "assert_int_or_pair is_tensor_like BroadcastingList1 BroadcastingList2 BroadcastingList3 PRIVATE_OPS".split()
)
"""Names that lie in PyTorch's modules without being for its users."""

_OTHER_TRADES = re.compile(
    r"quant|qint|cudnn|miopen|mkldnn|fbgemm|^sym_|Type$|Storage$|^q_|_copy$|^uint[1-7]$|^int[1-7]$|^bits|^float[48]_"
    r"|sparse|Script|^parse_|^import_ir|vulkan|xla|ipu|mtia|maia|hpu|profil|Lazy|jit|cuda|xpu|mps|SWIZZLE"
)
"""Names for devices, compilers, quantisation and sparse layouts: no part of what this engine is for."""


class Area(msgspec.Struct, frozen=True):
    """One part of the API: how many of its names the engine has, and which it has not."""

    name: str
    covered: int
    total: int
    missing: tuple[str, ...]


def areas() -> list[Area]:
    """The parts of the API, each looked at."""
    from . import torch

    nn = torch.nn
    parts: list[tuple[str, Any, frozenset[str]]] = [
        ("torch", torch, catalogue.TORCH),
        ("torch.Tensor", Tensor, catalogue.TENSOR),
        ("torch.autograd", torch.autograd, catalogue.AUTOGRAD),
        ("torch.nn", nn, catalogue.NN),
        ("torch.nn.functional", nn.functional, catalogue.FUNCTIONAL),
        ("torch.nn.init", nn.init, catalogue.INIT),
        ("torch.optim", torch.optim, catalogue.OPTIM),
        ("torch.linalg", torch.linalg, catalogue.LINALG),
    ]
    return [_look(*part) for part in parts]


def _look(name: str, owner: Any, names: frozenset[str]) -> Area:
    wanted = sorted(n for n in names if n not in _NO_API and not _OTHER_TRADES.search(n))
    if name == "torch":  # its classes are of the compiler and of devices, but for these
        wanted = [n for n in wanted if not n[0].isupper() or n in ("Generator", "Size")]
    missing = tuple(n for n in wanted if not _has(owner, n))
    return Area(name, len(wanted) - len(missing), len(wanted), missing)


def _has(owner: Any, name: str) -> bool:
    try:
        found = getattr(owner, name)
    except (NotInEmbeddedEngine, AttributeError):
        return False
    return not getattr(found, "refused", False)


def table() -> str:
    """The coverage as a Markdown table."""
    lines = ["| part of the API | covered | not yet, for example |", "| --- | --- | --- |"]
    for area in areas():
        shown = ", ".join(f"`{name}`" for name in area.missing[:: max(len(area.missing) // 4, 1)][:4])
        lines.append(f"| `{area.name}` | {area.covered} of {area.total} | {shown or 'nothing'} |")
    return "\n".join(lines) + "\n"
