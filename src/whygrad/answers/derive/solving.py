"""A plain number that the ledger lacks, from the recorded operand and result beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from whygrad.answers.derive.operations.table import Array

CLOSE = 4e-7
"""How exactly every element must give the same number: some float32 roundings."""


def solved(name: str, operands: tuple[Any, ...], result: Array | None) -> float | None:
    """The number that makes `name` of the operands the recorded result; None unless every element agrees on it.

    One of the two operands is an array, the other one is missing.

    >>> solved("div", (np.array([2.0, 6.0]), object()), np.array([0.5, 1.5]))
    4.0
    """
    if result is None or len(operands) != 2 or result.size == 0 or not np.all(np.isfinite(result)):
        return None
    first = isinstance(operands[0], np.ndarray)
    known = operands[0] if first else operands[1]
    if not isinstance(known, np.ndarray) or known.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        match name:
            case "add":
                candidates = result - known
            case "sub":
                candidates = known - result if first else result + known
            case "mul":
                candidates = result / known
            case "div":
                candidates = known / result if first else result * known
            case _:
                return None
    usable = candidates[np.isfinite(candidates)]
    if not usable.size or (name in ("mul", "div") and not np.all(np.isfinite(candidates) | (known == 0))):
        return None
    middle = float(np.median(usable))
    scale = max(abs(middle), float(np.max(np.abs(known))) if name in ("add", "sub") else 0.0)
    for number in (float(f"{middle:.6g}"), middle):  # as a person would have written it, if that fits
        if np.all(np.abs(usable - number) <= CLOSE * scale + 1e-300):
            return number
    return None
