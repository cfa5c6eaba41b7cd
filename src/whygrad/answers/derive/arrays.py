"""Values of the ledger as NumPy arrays, and its constants as the arguments that they were."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from whygrad.answers.derive.operations.table import Array
from whygrad.ledger.values import Value


def array_of(value: Value | None) -> Array | None:
    """A value that was kept whole, as an array: float64, int64 or bool. None for any other."""
    if value is None or value.items is None or "complex" in value.dtype:
        return None
    kind = array_kind(value.dtype)
    return np.array([float(item) if kind is np.float64 else item for item in value.items], dtype=kind).reshape(
        value.shape
    )


def array_kind(dtype: str) -> Any:
    """What the replay computes in, in place of a dtype of PyTorch's."""
    if dtype == "bool":
        return np.bool_
    return np.int64 if dtype.startswith(("int", "uint")) else np.float64


def decoded(constant: Any) -> Any:
    """A JSON constant as the argument that it was: slices, `...`, numbers that JSON cannot hold."""
    match constant:
        case {"slice": [start, stop, step]}:
            return slice(start, stop, step)
        case {"ellipsis": True}:
            return ...
        case "inf" | "-inf" | "nan":
            return float(constant)
        case list():
            return [decoded(item) for item in constant]
        case _ if constant is msgspec.UNSET:
            return None
        case _:
            return constant
