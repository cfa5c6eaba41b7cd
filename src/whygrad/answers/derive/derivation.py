"""A derivation: what a gradient should be, how that was found, and whether the observed one agrees."""

from __future__ import annotations

import math
from enum import Enum

import msgspec

from whygrad.ledger.events import BackwardId, TensorId


class Status(str, Enum):
    """What came of comparing."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    NOT_DERIVED = "not derived"


class Derivation(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation for one gradient that does not rest on autograd.

    `steps` is the chain rule as text, for a small graph; `expected` and `observed` are all elements in
    row-major order where they are known, else None. `difference` and `tolerance` are of the worst element.
    `compared` says which elements were compared, where it was not all of them by value. `places` are the lines
    of the root for which the same was found. `reason` says why nothing was derived.
    """

    tensor: TensorId
    name: str
    backward: BackwardId
    status: Status
    function: str = ""
    steps: tuple[str, ...] = ()
    result: str = ""
    point: str = ""
    notes: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    expected: tuple[float, ...] | None = None
    observed: tuple[float, ...] | None = None
    observed_text: str = ""
    difference: float | None = None
    tolerance: float | None = None
    compared: str = ""
    places: tuple[str, ...] = ()
    reason: str = ""

    @property
    def symbolic(self) -> bool:
        return bool(self.steps)

    def lines(self) -> list[str]:
        """What to print under the tensor's history: the derivation, then how branches were decided."""
        if self.status is Status.NOT_DERIVED:
            return [f"not derived: {self.reason}"]
        if self.symbolic:
            return [f"{self.equation()}{self._at()}; {self._verdict()}", *self.notes[:2]]
        subject = f"central differences in float64{self._at()}" + (f", {self.compared}" if self.compared else "")
        return [f"{subject}: {self.result}; {self._verdict()}", *self.notes[:2]]

    def equation(self) -> str:
        """`d/dw (2*w - 1)^2 = 2*(2*w - 1) * 2 = 4*(2*w - 1) = 20`"""
        name = self.name if self.name.isidentifier() else f"({self.name})"
        parts = [f"d/d{name} {self.function}", *self.steps]
        if parts[-1] != self.result:
            parts.append(self.result)
        return " = ".join(parts)

    def _at(self) -> str:
        said = f" at {self.point}" if self.point else ""
        return said + (f" ({merged(self.places)})" if self.places else "")

    def _verdict(self) -> str:
        gap = "" if self.difference is None else f"difference {self.difference:.1g}, tolerance {self.tolerance:.1g}"
        if self.status is Status.AGREES:
            if self.symbolic:
                return f"agrees with the observed {self.observed_text}"
            return f"agrees ({gap})"
        if self.difference is not None and not math.isfinite(self.difference):
            return f"disagrees with the observed {self.observed_text}, which is not finite"
        return f"disagrees with the observed {self.observed_text} ({gap})"

    def same_as(self, other: Derivation) -> bool:
        """Whether it says the same about another backward."""
        return all(
            getattr(self, part) == getattr(other, part)
            for part in ("tensor", "status", "function", "steps", "result", "point", "observed", "compared", "reason")
        )


def merged(places: tuple[str, ...]) -> str:
    """`lines 8, 13 and 23`; places in other files stay as they are.

    >>> merged(("line 8", "line 13", "line 23"))
    'lines 8, 13 and 23'
    """
    lines = [place.removeprefix("line ") for place in places if place.startswith("line ")]
    others = [place for place in places if not place.startswith("line ")]
    said = [f"lines {', '.join(lines[:-1])} and {lines[-1]}"] if len(lines) > 1 else [f"line {line}" for line in lines]
    return ", ".join([*said, *others])
