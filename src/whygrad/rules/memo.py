"""What several rules need of the same run is computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from whygrad.rules.facts import Facts

Result = TypeVar("Result")


def once(compute: Callable[[Facts], Result]) -> Callable[[Facts], Result]:
    """Remember the result for as long as the facts live."""
    known: WeakKeyDictionary[Facts, Result] = WeakKeyDictionary()

    @wraps(compute)
    def remembered(facts: Facts) -> Result:
        if facts not in known:
            known[facts] = compute(facts)
        return known[facts]

    return remembered
