"""How numbers and small tensors are written in a derivation."""

from __future__ import annotations

import numpy as np

from whygrad.answers.derive.operations.table import Array

SHOWN_LIMIT = 8
"""A tensor of more elements is described by its norm."""


def shortest(value: float) -> float:
    """The shortest decimal that float32 would round to the same number: 0.1 for 0.10000000149011612.

    A number that float32 cannot hold exactly (it came from float64) stays as it is.
    """
    single = np.float32(value)
    return float(str(single)) if np.isfinite(single) and float(single) == value else value


def shown(value: float) -> str:
    """20 for 20.0; six significant digits otherwise.

    >>> shown(20.0), shown(0.30000000000000004), shown(2.0 / 3.0)
    ('20', '0.3', '0.666667')
    """
    return str(int(value)) if abs(value) < 1e9 and value == int(value) else f"{value:.6g}"


def listed(array: Array) -> str:
    """A scalar as a number, a short vector as a list, a larger tensor by its shape and norm."""
    if array.size == 1:
        return shown(float(array.item()))
    if array.size <= SHOWN_LIMIT:
        return _nested(array.tolist())
    return f"norm {np.linalg.norm(array):.6g}"


def settled_digits(value: Array, errors: Array) -> str:
    """Numbers by differences: six digits, and 0 for what is less than its own error."""
    cleaned = np.where(np.abs(value) <= errors, 0.0, value)
    if value.size == 1:
        return f"{float(cleaned.item()):.8g}"
    if value.size > SHOWN_LIMIT:
        return f"norm {np.linalg.norm(cleaned):.6g}"
    return "[" + ", ".join(f"{float(item):.6g}" for item in cleaned.ravel()) + "]"


def brief(array: Array) -> str:
    """For a sentence that sets two values against each other."""
    if array.size > 4:
        return f"norm {np.linalg.norm(array):.6g}"
    digits = [f"{float(item):.6g}" for item in array.ravel()]
    return digits[0] if array.size == 1 else "[" + ", ".join(digits) + "]"


def _nested(items: object) -> str:
    if isinstance(items, list):
        return "[" + ", ".join(map(_nested, items)) + "]"
    assert isinstance(items, float | int)
    return shown(float(items))
