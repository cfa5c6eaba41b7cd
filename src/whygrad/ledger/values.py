"""What the ledger keeps of a tensor's value: every element when it is small, statistics otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard

import msgspec

WHOLE_LIMIT = 64
"""Tensors of at most this many elements are kept element by element."""

INPUT_LIMIT = 4096
"""Leaves and constants that a derivation may replay are kept whole up to this size."""

Number = int | float | bool | str
"""A JSON-safe number: `nan`, `inf` and `-inf` are spelled as strings, complex numbers as Python does."""


def number(value: complex) -> Number:
    """`value` as the ledger spells it.

    >>> number(2.5), number(float("nan")), number(float("-inf"))
    (2.5, 'nan', '-inf')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return str(value) if isinstance(value, complex) else value


def as_float(value: Number) -> float:
    """The float that `number` spelled; raises ValueError for a complex number."""
    return float(value)


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor's value at one moment.

    `items` holds all elements in row-major order when the tensor is small. Otherwise `norm` (Euclidean),
    `low` and `high` are taken over all elements (None: not taken), and `nan`/`inf` count those that are not finite.
    """

    shape: tuple[int, ...]
    dtype: str
    items: tuple[Number, ...] | None = None
    norm: Number | None = None
    low: Number | None = None
    high: Number | None = None
    nan: int = 0
    inf: int = 0

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def scalar(self) -> Number | None:
        """The only element, if there is exactly one and it was kept."""
        return self.items[0] if self.items is not None and len(self.items) == 1 else None

    @property
    def magnitude(self) -> float | None:
        """The Euclidean norm, or None where the value holds no real numbers."""
        if self.norm is not None:
            return _real(self.norm)
        if self.items is None:
            return None
        try:
            return math.sqrt(math.fsum(as_float(item) ** 2 for item in self.items))
        except (ValueError, OverflowError):
            return None


def whole(shape: Iterable[int], dtype: str, items: Iterable[complex]) -> Value:
    """A value kept element by element."""
    given = tuple(items)
    if _all_finite(given):
        return Value(shape=tuple(shape), dtype=dtype, items=given)
    spelled = tuple(number(item) for item in given)
    return Value(
        shape=tuple(shape),
        dtype=dtype,
        items=spelled,
        nan=sum(item == "nan" for item in spelled),
        inf=sum(item in ("inf", "-inf") for item in spelled),
    )


def _all_finite(items: tuple[complex, ...]) -> TypeGuard[tuple[float, ...]]:
    """Whether the items are real and finite, so that they are spelled as they are."""
    try:
        return math.isfinite(math.fsum(items))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def _real(value: Number) -> float | None:
    try:
        return as_float(value)
    except ValueError:
        return None
