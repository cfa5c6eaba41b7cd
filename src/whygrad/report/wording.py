"""How reports say numbers, values and shapes; the same in every medium.

>>> from whygrad.ledger.values import whole
>>> say_number(20.0), say_number(-4.934098e-05), say_number("nan")
('20', '-4.934e-05', 'NaN')
>>> say_value(whole((3,), "float32", [2.0, 4.0, 6.0]))
'[2, 4, 6]'
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from whygrad.ledger.values import Number, Value
from whygrad.report.parts import Size, Spread

WHOLE_WIDTH = 32
"""A small tensor is printed whole as long as its text is not longer than this."""

WHOLE_COUNT = 12
"""And as long as it has no more elements than this."""

DIGITS = 4
"""Significant digits of a number that is not a whole one."""


def say_number(value: Number) -> str:
    """A number as a person would write it: whole numbers without a point, others to four digits."""
    if isinstance(value, str):
        return {"nan": "NaN", "inf": "inf", "-inf": "-inf"}.get(value, value)
    if isinstance(value, bool | int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value) or value == 0:
        return f"{value:g}".replace("-0", "0") if value == 0 else f"{value:g}"
    if value == int(value) and abs(value) < 1e7:
        return str(int(value))
    size = math.floor(math.log10(abs(value))) + 1
    if DIGITS < size <= 6:
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.{DIGITS}g}"


def say_value(value: Value) -> str:
    """A small tensor whole (`20`, `[2, 4, 6]`), any other by shape and norm (`shape (256, 784), norm 0.81`)."""
    if (whole := say_whole(value)) is not None:
        return whole
    return f"shape {say_shape(value.shape)}, {say_norm(value)}"


def say_whole(value: Value) -> str | None:
    """The tensor's elements, if they were kept and are few."""
    if value.items is None or not 0 < len(value.items) <= WHOLE_COUNT:
        return None
    text = _nested([say_number(item) for item in value.items], value.shape)
    return text if len(text) <= WHOLE_WIDTH or len(value.items) == 1 else None


def say_norm(value: Value) -> str:
    """The norm, or what stands in its way: `norm 0.81`, `3 NaN of 20`, `no elements`."""
    if value.count == 0:
        return "no elements"
    if value.nan or value.inf:
        bad = " and ".join(f"{count} {kind}" for count, kind in ((value.nan, "NaN"), (value.inf, "inf")) if count)
        return f"{bad} of {value.count}"
    magnitude = value.magnitude
    return f"norm {say_number(magnitude)}" if magnitude is not None else value.dtype


def say_state(value: Value | None) -> str:
    """A state of a buffer whose shape is said elsewhere: `None`, `20`, `norm 0.81`."""
    if value is None:
        return "None"
    whole = say_whole(value)
    return whole if whole is not None else say_norm(value)


def say_shape(shape: Sequence[int]) -> str:
    """A shape as Python prints it: `()`, `(3,)`, `(256, 784)`."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def say_size(size: Size) -> str:
    """The shape of one tensor, or of many: `(1, 2)`, `(3..64, 784)`."""
    dimensions = [str(low) if low == high else f"{low}..{high}" for low, high in zip(size.low, size.high, strict=True)]
    return f"({', '.join(dimensions)}{',' if len(dimensions) == 1 else ''})"


def say_sizes(sizes: Iterable[Size]) -> str:
    return ", ".join(map(say_size, sizes))


def say_plural(count: int, noun: str, plural: str = "") -> str:
    """`1 write`, `3 writes`, `2 passes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def say_names(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b, c and 12 more`."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def say_tensors(names: Sequence[str], most: int = 3) -> str:
    """Like `say_names`, but many of one module are counted: `a, b and c`, `38 tensors of model.decoder`."""
    prefix = common_module(names)
    return f"{len(names)} tensors of {prefix}" if len(names) > most and prefix else say_names(names, most + 1)


def common_module(names: Sequence[str]) -> str:
    """The innermost module's path that all names begin with; empty where there is none.

    >>> common_module(["model.0.weight", "model.2.bias"])
    'model'
    """
    paths = [name.split(".")[:-1] for name in names]
    common = 0
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common += 1
    return ".".join(paths[0][:common]) if paths else ""


def say_modules(paths: Sequence[str]) -> str:
    """`model`, `model.0 and model.1`, `model and the 12 modules in it`."""
    outer = paths[0] if paths else ""
    if len(paths) > 2 and all(path.startswith(f"{outer}.") for path in paths[1:]):
        return f"{outer} and the {len(paths) - 1} modules in it"
    return say_names(paths)


def say_first_sentence(text: str) -> str:
    """The first sentence of a message, without what it adds in brackets at its end."""
    flat = " ".join(text.split())
    sentence = flat.partition(". ")[0]
    opening = sentence.find(" (")
    if opening > 20 and len(sentence) > 100 and sentence.rstrip(".").endswith(")"):
        return sentence[:opening]
    return sentence


def is_moving(norms: Spread) -> bool:
    """Whether a spread says more than one number does."""
    return norms.low is not None and norms.high is not None and say_number(norms.low) != say_number(norms.high)


def _nested(items: list[str], shape: Sequence[int]) -> str:
    if not shape:
        return items[0]
    step = len(items) // shape[0]
    if len(shape) == 1:
        return f"[{', '.join(items)}]"
    rows = [_nested(items[start : start + step], shape[1:]) for start in range(0, len(items), step)]
    return f"[{', '.join(rows)}]"
