"""How an answer says numbers, tensors' values, places and expressions. Words only, no reasoning."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from whygrad.ledger import Ledger
from whygrad.ledger.events import SiteId, Tensor, TensorId
from whygrad.ledger.values import Number, Value, as_float

SPELLED_OUT = 8
"""Values of at most this many elements are said element by element."""

BRIEF = 40
"""Characters of a value among others."""

CODE_LIMIT = 60
"""Expressions are quoted up to this many characters."""


def number_text(number: Number | None) -> str:
    """A number as a person would write it: whole numbers without a point, others to four digits.

    >>> number_text(20.0), number_text(0.10000000149011612), number_text(1234.567), number_text("nan")
    ('20', '0.1', '1234.6', 'NaN')
    """
    if number is None:
        return "unknown"
    if isinstance(number, str):
        return {"nan": "NaN", "inf": "infinity", "-inf": "-infinity"}.get(number, number)
    if isinstance(number, bool | int):
        return str(number)
    if number == 0:
        return "0"
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "infinity" if number > 0 else "-infinity"
    if number == int(number) and abs(number) < 1e7:
        return str(int(number))
    return f"{number:.1f}" if 1e3 <= abs(number) < 1e6 else f"{number:.4g}"


def is_spelled_out(value: Value | None) -> bool:
    """Whether `value_text` gives every element, so that a sum can be shown as one."""
    return value is not None and value.items is not None and len(value.items) <= SPELLED_OUT


def value_text(value: Value | None) -> str:
    """A value in full when it is small, as its norm, range and shape otherwise."""
    if value is None:
        return "None"
    if is_spelled_out(value) and value.items is not None:
        return _nested(list(value.items), list(value.shape))
    return f"a tensor of shape {value.shape}, {_statistics(value)}"


def short_text(value: Value | None) -> str:
    """A value in a few words: its elements, or its norm alone."""
    if value is None or is_spelled_out(value):
        return value_text(value)
    if is_zero(value):
        return "all 0"
    norm = value.magnitude
    return f"shape {value.shape}" if norm is None else f"norm {number_text(norm)}"


def is_brief(value: Value | None) -> bool:
    """Whether a value's elements fit into a list of several operands."""
    return is_spelled_out(value) and len(value_text(value)) <= BRIEF


def is_zero(value: Value | None) -> bool:
    """Whether every element is exactly 0."""
    if value is None or not value.count:
        return False
    if value.items is not None:
        return all(not isinstance(item, str) and item == 0 for item in value.items)
    return value.low == 0 and value.high == 0 and not value.nan and not value.inf


def is_finite(value: Value | None) -> bool:
    return value is None or not (value.nan or value.inf)


def _nested(items: list[Number], shape: list[int]) -> str:
    if not shape:
        return number_text(items[0]) if items else "[]"
    rows = shape[0]
    size = len(items) // rows if rows else 0
    return "[" + ", ".join(_nested(items[row * size : (row + 1) * size], shape[1:]) for row in range(rows)) + "]"


def _statistics(value: Value) -> str:
    if is_zero(value):
        return "all 0"
    low, high, norm = value.low, value.high, value.magnitude
    if value.items is not None and is_finite(value) and not isinstance(value.items[0], str):
        numbers = [as_float(item) for item in value.items]
        low, high = min(numbers), max(numbers)
    parts = []
    if norm is not None and is_finite(value):
        parts.append(f"norm {number_text(norm)}")
    if low is not None and high is not None:
        parts.append(f"elements from {number_text(low)} to {number_text(high)}")
    if value.nan:
        parts.append(f"{value.nan} of {value.count} NaN")
    if value.inf:
        parts.append(f"{value.inf} of {value.count} infinite")
    return ", ".join(parts) or f"dtype {value.dtype}"


def shape_text(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def shortened(code: str, limit: int = CODE_LIMIT) -> str:
    flat = " ".join(code.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def code_of(ledger: Ledger, site: SiteId | None) -> str:
    """The expression at a site, as written; empty where no line of the user's was running."""
    known = ledger.site(site)
    return shortened(known.code) if known is not None else ""


def name_in(ledger: Ledger, tensor: TensorId, site: SiteId | None) -> str:
    """The name that the code at a site calls the tensor by; else its best name."""
    code = code_of(ledger, site)
    used = [name for name in ledger.names(tensor) if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", code)]
    return max(used, key=len, default=ledger.name(tensor))


def is_name(text: str) -> bool:
    """Whether a name can be assigned to: `h`, `self.state`."""
    return bool(text) and all(part.isidentifier() for part in text.split("."))


def quoted(ledger: Ledger, site: SiteId | None) -> str:
    """
    `w * 2` (line 6): the expression with its place.
    """
    code = code_of(ledger, site)
    where = ledger.where(site)
    return f"`{code}` ({where})" if code else where


def origin_text(ledger: Ledger, known: Tensor) -> str:
    """A clause about where a tensor came from: which expression made it, or where it was first seen."""
    if known.site is None:
        return "where it was made was not recorded"
    if known.origin in ("created", "result"):
        return f"{quoted(ledger, known.site)} made it"
    if ledger.header.kind == "block" and known.origin == "unknown":
        return "it was there already when the recording met it"
    kind = "a parameter" if known.origin == "parameter" else "a buffer" if known.origin == "buffer" else "a tensor"
    return f"it is {kind} that was first seen at {ledger.where(known.site)}"


def joined(parts: Iterable[str], last: str = " and ") -> str:
    """
    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    listed = list(parts)
    return last.join(part for part in (", ".join(listed[:-1]), *listed[-1:]) if part)


def several(parts: Sequence[str], limit: int = 4) -> str:
    """The first few of a list, and how many more there are.

    >>> several(["a", "b", "c", "d", "e", "f"], limit=3)
    'a, b, c and 3 more'
    """
    if len(parts) <= limit:
        return joined(parts)
    return joined([*parts[:limit], f"{len(parts) - limit} more"])


def counted(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
