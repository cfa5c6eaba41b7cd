"""The expected gradient by central differences: which elements, at what price, and what does not settle."""

from __future__ import annotations

import random

import msgspec
import numpy as np

from whygrad.answers.derive.budget import Budget
from whygrad.answers.derive.differences import EVALUATIONS, Slope, slope
from whygrad.answers.derive.operations.table import Array
from whygrad.answers.derive.replay import Noise, Replay

MIX = 0x9E3779B97F4A7C15


class Sampled(msgspec.Struct, frozen=True):
    """The slopes of the elements that were looked at, and along one direction if not all of them were."""

    elements: tuple[int, ...]
    slopes: tuple[Slope, ...]
    count: int
    direction: Array | None = None
    along: Slope | None = None

    @property
    def whole(self) -> bool:
        return len(self.elements) == self.count

    def settled(self) -> list[tuple[int, Slope]]:
        return [(element, found) for element, found in zip(self.elements, self.slopes, strict=True) if found.settled]

    def array(self, shape: tuple[int, ...]) -> Array:
        """The gradient, where all of it was looked at."""
        return np.array([found.value for found in self.slopes]).reshape(shape)


def sample(replay: Replay, wanted: float, budget: Budget, *, whole: bool) -> Sampled | None:
    """Slopes of every element if the budget allows, else of some and along one direction.

    None where not even that is affordable, or where every element is asked for (`whole`) and too dear.
    """
    count = replay.target.size
    price = replay.cost * (EVALUATIONS + 1)
    affordable = budget.left // price
    if affordable < min(count, 3) or (whole and affordable < count):
        return None
    if affordable >= count:
        elements = tuple(range(count))
        direction = None
    else:
        chosen = random.Random(count).sample(range(count), affordable - 1)
        elements = tuple(sorted(chosen))
        direction = signs(count, 0).reshape(replay.target.shape)
    slopes = element_slopes(replay, elements, wanted, budget)
    along = None if direction is None else _slope(replay, direction, replay.length, wanted * count**0.5, budget)
    return Sampled(elements, slopes, count, direction, along)


def element_slopes(
    replay: Replay, elements: tuple[int, ...], wanted: float, budget: Budget, noise: Noise | None = None
) -> tuple[Slope, ...]:
    """The derivative by each of these elements of the target."""
    target = replay.target
    typical = replay.length
    slopes = []
    for element in elements:
        direction = np.zeros(target.size)
        direction[element] = 1.0
        here = abs(float(target.flat[element]))
        scale = max(here, typical / 16) if np.isfinite(here) else typical
        slopes.append(_slope(replay, direction.reshape(target.shape), scale, wanted, budget, noise))
    return tuple(slopes)


def rounding_noise(epsilon: float, variant: int) -> Noise:
    """Each result of each step off by its last digit, up or down by a fixed pattern."""

    def noise(step: int, output: Array) -> Array:
        if output.dtype.kind != "f":
            return output
        off: Array = output * (1.0 + epsilon * signs(output.size, 7919 * step + variant).reshape(output.shape))
        return off

    return noise


def signs(count: int, seed: int) -> Array:
    """A fixed pattern of +1 and -1: the same for every run and machine."""
    mixed = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed * 104729 + 1)) * np.uint64(MIX)
    return np.where((mixed >> np.uint64(40)) & np.uint64(1), 1.0, -1.0)


def _slope(
    replay: Replay, direction: Array, scale: float, wanted: float, budget: Budget, noise: Noise | None = None
) -> Slope:
    price = replay.cost

    def f(offset: Array) -> float:
        budget.spend(price)
        return replay.root(offset, noise)

    return slope(f, direction, scale, replay.size, wanted)
