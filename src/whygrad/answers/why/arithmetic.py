"""Sums and differences of recorded values, element by element, where every element was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from whygrad.ledger.values import Value, as_float, whole


def total(values: Iterable[Value | None]) -> Value | None:
    """The sum; None where an element was not kept or is not a real number.

    >>> total([whole((), "float32", [27.0]), whole((), "float32", [20.0])]).scalar
    47.0
    """
    result: Value | None = None
    for position, value in enumerate(values):
        result = value if position == 0 else _each(result, value, lambda a, b: a + b)
        if result is None:
            return None
    return result


def difference(after: Value | None, before: Value | None) -> Value | None:
    """`after` minus `before`."""
    return _each(after, before, lambda a, b: a - b)


def close(a: Value | None, b: Value | None, tolerance: float = 1e-3) -> bool:
    """Whether two values agree up to rounding; False where that is not known."""
    if a is None or b is None or a.items is None or b.items is None or len(a.items) != len(b.items):
        return False
    try:
        pairs = [(as_float(x), as_float(y)) for x, y in zip(a.items, b.items, strict=True)]
    except ValueError:
        return False
    return all(abs(x - y) <= tolerance * max(1e-12, abs(x), abs(y)) for x, y in pairs)


def _each(a: Value | None, b: Value | None, combine: Callable[[float, float], float]) -> Value | None:
    if a is None or b is None or a.items is None or b.items is None or a.shape != b.shape:
        return None
    try:
        items = [combine(as_float(x), as_float(y)) for x, y in zip(a.items, b.items, strict=True)]
    except ValueError:
        return None
    return whole(a.shape, a.dtype, items)
