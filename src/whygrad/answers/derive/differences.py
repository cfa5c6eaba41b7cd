"""Central differences in float64, with an estimate of their own error.

For a step h the quotient D(h) = (f(x+h) - f(x-h)) / 2h is off by h²f'''/6 + ..., so (4 D(h/2) - D(h)) / 3 is
off by O(h⁴) only (Richardson). Rounding adds about the float64 rounding of f, divided by h. The first h is a
thousandth of x (of the target's scale where x is smaller); where two steps do not settle, h shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from whygrad.answers.derive.operations.table import Array

FIRST_STEP = 2.0**-10
SHRINK = 2.0**-4
LEVELS = 6
"""Steps from a thousandth down to a billionth of x."""

EPSILON = 2.0**-52
EVALUATIONS = 4
"""How often one level evaluates the function."""


class Slope(msgspec.Struct, frozen=True):
    """The derivative along one direction, and how far it may be off.

    `left` and `right` are the one-sided slopes where they differ however small the step: a kink.
    """

    value: float
    error: float
    left: float | None = None
    right: float | None = None

    @property
    def settled(self) -> bool:
        return self.left is None and math.isfinite(self.value)


def slope(f: Callable[[Array], float], direction: Array, scale: float, size: float, wanted: float) -> Slope:
    """The derivative of `f` at 0 along `direction`.

    `scale` is the length at which f is expected to bend, `size` what f's values are rounded relative to,
    `wanted` the error that is small enough to stop at.
    """
    best: Slope | None = None
    middle = f(0.0 * direction)
    h = scale * FIRST_STEP
    for _ in range(LEVELS):
        h = 2.0 ** round(math.log2(h))
        wide, narrow = _quotients(f, direction, middle, h), _quotients(f, direction, middle, h / 2)
        value = (4 * narrow.central - wide.central) / 3
        noise = 8 * EPSILON * max(size, abs(middle)) / h
        error = abs(value - narrow.central) + noise
        gap = abs(narrow.right - narrow.left)
        bends = abs(wide.right - wide.left)
        jumps = gap > 0.75 * bends and gap > 16 * noise and gap > wanted
        if math.isfinite(error):
            found = Slope(value, error, narrow.left, narrow.right) if jumps else Slope(value, error)
            if best is None or _is_better(found, best):
                best = found
            if not jumps and error <= wanted:
                break
        h *= SHRINK
    return best or Slope(math.nan, math.inf)


class _Quotients(msgspec.Struct, frozen=True):
    central: float
    left: float
    right: float


def _quotients(f: Callable[[Array], float], direction: Array, middle: float, h: float) -> _Quotients:
    above, below = f(h * direction), f(-h * direction)
    return _Quotients((above - below) / (2 * h), (middle - below) / h, (above - middle) / h)


def _is_better(found: Slope, best: Slope) -> bool:
    """A smaller step is better when it has a smaller error, or when it got rid of a kink that was only near."""
    if found.settled and best.left is not None and best.right is not None:
        return 8 * found.error < abs(best.right - best.left)
    return found.settled == best.settled and found.error < best.error
