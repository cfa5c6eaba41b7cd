"""Compile without the compiler's warnings, and without a trace of it in the program's own.

`warnings.catch_warnings` would do for the first. But entering and leaving it makes Python forget which warnings
it has shown already, so that the program's next one would be shown a second time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_compiler() -> Iterator[None]:
    """No warning is shown inside."""
    filters = warnings.filters
    rule = ("ignore", None, Warning, None, 0)
    filters.insert(0, rule)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for position, other in enumerate(filters):
            if other is rule:
                del filters[position]  # type: ignore[attr-defined]
                break
