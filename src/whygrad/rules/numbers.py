"""Numbers in the sentences of findings."""

from __future__ import annotations

from whygrad.ledger.values import Value


def say(value: Value | None) -> str:
    """A small value itself, another by its norm, None as None.

    >>> say(Value(shape=(), dtype="float32", items=(2.5,)))
    '2.5'
    """
    if value is None:
        return "None"
    if value.scalar is not None:
        return say_number(value.scalar)
    if value.items is not None and len(value.items) <= 4:
        return f"[{', '.join(say_number(item) for item in value.items)}]"
    size = value.magnitude
    return f"a tensor of norm {say_number(size)}" if size is not None else f"a tensor of shape {value.shape}"


def say_number(number: complex | str | None) -> str:
    """Four digits are enough to recognise a number.

    >>> say_number(0.123456), say_number(3), say_number("nan")
    ('0.1235', '3', 'nan')
    """
    return f"{number:.4g}" if isinstance(number, float) else str(number)
