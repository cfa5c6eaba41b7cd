"""Objects of a program as plain data. Decides by exact types, and calls no method that the program could have given."""

from __future__ import annotations

import sys
from typing import Any

from whygrad.execute.jobs import Plain

ELEMENTS = 4096
"""So many elements of a tensor come along; of a larger one only the shape, the dtype and the text."""

TEXT = 20_000
DEPTH = 6


def plain(value: Any, depth: int = 0) -> Plain:
    """`value` without its object.

    >>> plain([1, 2.5, None]).items[1]
    Plain(kind='float', value=2.5, dtype='', shape=(), items=(), requires_grad=None, text='2.5')
    """
    kind = type(value)
    if value is None:
        return Plain("none", text="None")
    if kind is bool or kind is float:
        return Plain(kind.__name__, value, text=repr(value))
    if kind is int:
        small = -(2**63) <= value < 2**63
        return Plain("int", value if small else float(value) if abs(value) < 2**1000 else None, text=_text(value))
    if kind is complex:
        return Plain("complex", [value.real, value.imag], text=repr(value))
    if kind is str:
        return Plain("str", value[:TEXT], text=repr(value[:TEXT]))
    torch = sys.modules.get("torch")
    if torch is not None:
        special = _of_torch(value, torch)
        if special is not None:
            return special
    if kind in (list, tuple, set, frozenset) and depth < DEPTH and len(value) <= ELEMENTS:
        name = "set" if kind in (set, frozenset) else kind.__name__
        inner = sorted(value, key=repr) if name == "set" else value
        return Plain(name, items=tuple(plain(item, depth + 1) for item in inner), text=_text(value))
    if kind is dict and depth < DEPTH and len(value) <= ELEMENTS:
        items = tuple(plain(part, depth + 1) for pair in value.items() for part in pair)
        return Plain("dict", items=items, text=_text(value))
    if isinstance(value, type):
        return Plain("type", f"{value.__module__}.{value.__qualname__}", text=_text(value))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _array(numpy.asarray(value), value)
    if isinstance(value, tuple) and depth < DEPTH:  # a named one, torch's own results among them
        return Plain("tuple", items=tuple(plain(item, depth + 1) for item in tuple.__iter__(value)), text=_text(value))
    return Plain("object", f"{kind.__module__}.{kind.__qualname__}", text=_text(value))


def _of_torch(value: Any, torch: Any) -> Plain | None:
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, torch.dtype):
        return Plain("dtype", str(value).removeprefix("torch."), text=str(value))
    if isinstance(value, torch.Size):
        return Plain("shape", list(value), text=_text(value))
    return None


def _tensor(value: Any) -> Plain:
    shape = tuple(int(size) for size in value.shape)
    dtype = str(value.dtype).removeprefix("torch.")
    elements: list[Any] | None = None
    try:
        if value.numel() <= ELEMENTS:
            flat = value.detach().reshape(-1).tolist()
            elements = [[one.real, one.imag] if type(one) is complex else one for one in flat]
    except Exception:  # it has no elements (on the meta device), or no row of them (sparse)
        elements = None
    return Plain("tensor", elements, dtype, shape, requires_grad=bool(value.requires_grad), text=_text(value))


def _array(array: Any, value: Any) -> Plain:
    elements = None
    if array.size <= ELEMENTS and array.dtype.kind in "biuf":
        elements = array.reshape(-1).tolist()
    return Plain("array", elements, str(array.dtype), tuple(array.shape), text=_text(value))


def _text(value: Any) -> str:
    try:
        return repr(value)[:TEXT]
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
