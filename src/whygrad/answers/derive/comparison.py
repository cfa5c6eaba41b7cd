"""Hold the gradient that a replay expects against the observed one, and say what came of it."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from whygrad.answers.derive.agreement import relative_tolerance, rounding
from whygrad.answers.derive.budget import Budget
from whygrad.answers.derive.builders import NotSymbolicError
from whygrad.answers.derive.derivation import Derivation, Status
from whygrad.answers.derive.graph import NotDerivedError
from whygrad.answers.derive.numbers import listed, settled_digits, shown
from whygrad.answers.derive.numeric import Sampled, element_slopes, rounding_noise, sample
from whygrad.answers.derive.observed import Observed, largest
from whygrad.answers.derive.operations.table import Array
from whygrad.answers.derive.printing import SUM, binding, text
from whygrad.answers.derive.replay import Replay
from whygrad.answers.derive.symbolic import Formula

GREATEST = {"float16": 65504.0, "bfloat16": 3.4e38, "float32": 3.4e38}
"""The largest number of each dtype, about."""

POINT_LIMIT = 80
"""A list of the symbols' values that is longer than this is cut down to the target's."""

SUSPICIOUS_LIMIT = 8
NOISE_VARIANTS = 3
NOISE_FACTOR = 32
"""A gradient gathers roundings in the backward as well, which the replay does not see one by one."""


class Comparison(msgspec.Struct, frozen=True):
    """One replayed computation and the gradient observed for it. `dtype` is the coarsest on the way.

    `doubt` says what a disagreement may come from, other than a wrong gradient.
    """

    replay: Replay
    observed: Observed
    dtype: str
    doubt: str
    budget: Budget

    # --- the two ways ---------------------------------------------------------------------------------

    def symbolic(self, empty: Derivation, found: Formula) -> Derivation:
        """Against the derivative as a formula."""
        observed = self.observed.array
        if observed is None:
            raise NotSymbolicError
        if observed.shape != found.value.shape:
            raise NotDerivedError(f"the gradient has shape {observed.shape}, its tensor {found.value.shape}")
        function = text(found.function)
        said = msgspec.structs.replace(
            empty,
            name=found.target,
            function=f"({function})" if binding(found.function) == SUM else function,
            steps=found.steps(),
            result=listed(found.value),
            point=_point(found.values),
            notes=found.notes + self.replay.solved,
        )
        return self.judged(said, np.asarray(found.value), np.zeros(found.value.shape), observed)

    def numeric(self, empty: Derivation) -> Derivation:
        """Against central differences."""
        observed = self.observed.array
        if not np.all(np.isfinite(self.replay.target)):
            raise NotDerivedError("the tensor itself is not finite")
        taken = sample(self.replay, self.wanted, self.budget, whole=observed is None)
        if taken is None:
            steps, count = len(self.replay.moving), self.replay.target.size
            raise NotDerivedError(f"replaying {steps} operations for each of {count} elements is too much work")
        settled = taken.settled()
        if not settled or (observed is None and len(settled) < taken.count):
            raise NotDerivedError(self.unsettled(taken))
        empty = msgspec.structs.replace(empty, notes=self.replay.solved)
        if not taken.whole or len(settled) < taken.count:
            assert observed is not None
            return self.partly(empty, taken, observed)
        value = taken.array(self.replay.target.shape)
        errors = np.array([found.error for found in taken.slopes]).reshape(value.shape)
        said = msgspec.structs.replace(empty, result=settled_digits(value, errors))
        if observed is None:
            return self.by_statistics(said, value, errors)
        return self.judged(said, value, errors, observed)

    def partly(self, empty: Derivation, taken: Sampled, observed: Array) -> Derivation:
        """Some elements, and one direction where they were chosen and not all that there are."""
        settled = taken.settled()
        value = np.array([found.value for _, found in settled])
        errors = np.array([found.error for _, found in settled])
        seen = np.array([observed.flat[element] for element, _ in settled])
        compared = f"{len(settled)} of {taken.count} elements"
        if taken.whole:
            left_out = set(range(taken.count)) - {element for element, _ in settled}
            bad = sum(not np.isfinite(observed.flat[element]) for element in left_out)
            reasons = [
                f"{bad} not finite" if bad else "",
                f"{len(left_out) - bad} at a kink" if len(left_out) > bad else "",
            ]
            compared += f" ({', '.join(filter(None, reasons))})"
        elif taken.along is not None and taken.along.settled and taken.direction is not None:
            compared += " and one direction"
            value = np.append(value, taken.along.value)
            errors = np.append(errors, taken.along.error)
            seen = np.append(seen, float(np.sum(observed * taken.direction)))
        said = msgspec.structs.replace(empty, result=settled_digits(value, errors), compared=compared)
        return self.judged(said, value, errors, seen, tuple(element for element, _ in settled))

    def by_statistics(self, said: Derivation, value: Array, errors: Array) -> Derivation:
        """The observed gradient was kept as its norm and its extremes."""
        kept = self.observed.value
        pairs = ((np.linalg.norm(value), kept.norm), (value.min(), kept.low), (value.max(), kept.high))
        known = [(float(mine), float(theirs)) for mine, theirs in pairs if theirs is not None]
        if not known:
            raise NotDerivedError("nothing of the gradient's value was kept")
        mine, theirs = (np.array(side) for side in zip(*known, strict=True))
        error = np.full(mine.shape, float(np.linalg.norm(errors)))
        compared = f"all {value.size} elements by norm, lowest and highest"
        said = msgspec.structs.replace(said, compared=compared, result=f"norm {mine[0]:.6g}")
        return self.judged(said, mine, error, theirs, tuple(range(value.size)))

    # --- the verdict ----------------------------------------------------------------------------------

    def judged(
        self, said: Derivation, value: Array, errors: Array, observed: Array, elements: tuple[int, ...] | None = None
    ) -> Derivation:
        """The verdict. Before it is `disagrees`, rounding must be ruled out as the cause.

        `elements` are the target's elements that the values belong to, where those are not all in order.
        """
        scale = max(self.observed.scale, largest(value))
        base = relative_tolerance(self.dtype) * scale + self.observed.slack
        if float(np.max(errors)) > max(100 * base, 1e-3 * scale, 1e-7 * self.natural):
            raise NotDerivedError(f"central differences do not settle here (they may be off by {np.max(errors):.1g})")
        if not np.all(np.isfinite(observed)) and largest(value) > GREATEST.get(self.dtype, np.inf):
            raise NotDerivedError(f"the gradient is {said.result}, which {self.dtype} cannot hold")
        gaps = np.where(np.isfinite(observed), np.abs(value - observed), np.inf)
        tolerances = base + errors
        if np.any(gaps > tolerances) and self.doubt:
            raise NotDerivedError(f"{self.doubt}: the gradient is not what the recorded computation alone gives")
        if np.any(gaps > tolerances) and np.all(np.isfinite(gaps)):
            tolerances = tolerances + self.rounding(gaps > tolerances, elements)
            if np.all(gaps <= tolerances) and float(np.max(tolerances)) > max(0.1 * scale, 1e-4 * self.natural):
                raise NotDerivedError(f"rounding in {self.dtype} alone moves this gradient by {np.max(tolerances):.1g}")
        worst = int(np.argmax(gaps - tolerances))
        exact = not said.compared
        return msgspec.structs.replace(
            said,
            status=Status.AGREES if np.all(gaps <= tolerances) else Status.DISAGREES,
            expected=tuple(map(float, value.ravel())) if exact else None,
            observed=tuple(map(float, observed.ravel())) if exact else None,
            observed_text=listed(observed),
            difference=float(gaps.flat[worst]),
            tolerance=float(tolerances.flat[worst]),
        )

    @property
    def natural(self) -> float:
        """The size of a gradient that changes the root by itself over the target's own length."""
        return self.replay.size / self.replay.length

    @property
    def wanted(self) -> float:
        """How exact differences should be before they stop."""
        scale = self.observed.scale or 1e-4 * self.natural or 1.0
        return (relative_tolerance(self.dtype) * scale + self.observed.slack) / 16

    def rounding(self, suspicious: Array, elements: tuple[int, ...] | None) -> Array:
        """How far rounding in the program's dtype may move the gradient at the suspicious places.

        Measured: the slopes again, with each result of the replay off by a last digit. At least the rounding
        of the root itself over the target's length.
        """
        places = np.flatnonzero(suspicious)[:SUSPICIOUS_LIMIT]
        chosen = [int(place) if elements is None else elements[min(place, len(elements) - 1)] for place in places]
        least = 8 * rounding(self.dtype) * self.natural
        unit = tuple(dict.fromkeys(chosen))
        plain = element_slopes(self.replay, unit, self.wanted, self.budget)
        moved = 0.0
        for variant in range(NOISE_VARIANTS):
            noise = rounding_noise(rounding(self.dtype), variant)
            noisy = element_slopes(self.replay, unit, self.wanted, self.budget, noise)
            if not all(found.settled for found in noisy):
                raise NotDerivedError(f"rounding in {self.dtype} decides on which side of a kink this computation is")
            moved = max(moved, *(abs(one.value - other.value) for one, other in zip(plain, noisy, strict=True)))
        extra: Array = np.where(suspicious, least + NOISE_FACTOR * moved, 0.0)
        return extra

    def unsettled(self, taken: Sampled) -> str:
        """Why no element has a slope."""
        kinks = [(found.left, found.right) for found in taken.slopes if found.left is not None]
        left, right = kinks[0] if kinks else (None, None)
        if left is None or right is None:
            return "central differences do not settle here: the result is not finite nearby"
        step = self.replay.kink()
        where = f"{step.said()} is at its kink" if step is not None else "the result has a kink here"
        sides = f"the slope is {_side(left)} on one side and {_side(right)} on the other"
        return f"{where}, where finite differences settle nothing: {sides}"


def _side(slope: float) -> str:
    return shown(round(slope, 4)) if math.isfinite(slope) else str(slope)


def _point(values: dict[str, Array]) -> str:
    said = [f"{name} = {listed(value)}" for name, value in values.items()]
    whole = ", ".join(said)
    return whole if len(whole) <= POINT_LIMIT else said[0]
