"""Compute a graph again in float64: once as it was, checked against the record, then with the target moved."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from whygrad.answers.derive.agreement import relative_tolerance
from whygrad.answers.derive.arrays import array_kind, array_of
from whygrad.answers.derive.graph import Graph, Missing, NotDerivedError, Slot, Step, filled
from whygrad.answers.derive.numbers import brief
from whygrad.answers.derive.operations import UnsupportedError, find_kink
from whygrad.answers.derive.operations.table import Array
from whygrad.answers.derive.solving import solved
from whygrad.ledger.values import Value

FAILURES = (TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError, np.linalg.LinAlgError)
"""What NumPy raises when a recorded call does not fit a function of the table."""

CONTRACTIONS = frozenset(
    {"matmul", "mm", "bmm", "linear", "einsum", "conv1d", "conv2d", "scaled_dot_product_attention"}
)
"""Operations whose work is more than their operands' size."""

Noise = Callable[[int, Array], Array]
"""Given a step's number and its result, the result as rounding might have left it."""


class Replay(msgspec.Struct, frozen=True):
    """A graph with all its values at the recorded point. `moving` are the steps that follow the target.

    `solved` says which numbers were not recorded and followed from recorded results.
    """

    graph: Graph
    values: list[Array]
    moving: tuple[Step, ...]
    solved: tuple[str, ...] = ()

    @property
    def target(self) -> Array:
        """The target's value where it was used last."""
        return self.values[self.graph.targets[-1]]

    @property
    def length(self) -> float:
        """The scale of the target's elements; 1 where they are all zero."""
        finite = self.target[np.isfinite(self.target)]
        return float(np.sqrt(np.mean(finite**2))) or 1.0 if finite.size else 1.0

    @property
    def size(self) -> float:
        """The sum of the root's terms without their signs: what float64 rounds relative to."""
        return sum(
            float(np.sum(np.abs(self.values[root.slot] * (1.0 if root.weight is None else root.weight))))
            for root in self.graph.roots
        )

    @property
    def cost(self) -> int:
        """About how many microseconds one call of `root` takes; counted, not measured."""
        return 4 + sum(_cost(step, self.values) for step in self.moving)

    def root(self, offset: Array, noise: Noise | None = None) -> float:
        """What the backward differentiated (the roots, weighed by the gradient argument) at target + offset.

        Not a number where it cannot be computed there.
        """
        values = list(self.values)
        targets = set(self.graph.targets)
        for slot in targets:
            values[slot] = values[slot] + offset
        try:
            with np.errstate(all="ignore"):
                for number, step in enumerate(self.moving):
                    self._move(number, step, values, targets, noise)
        except FAILURES:
            return math.nan
        return self.weighed(values)

    def _move(self, number: int, step: Step, values: list[Array], targets: set[Slot], noise: Noise | None) -> None:
        if step.function is None:
            raise NotDerivedError(f"{step.said()} is a gradient itself, and too long to be written down")
        for result, output in zip(step.results, _outputs(step, values), strict=False):
            if result is not None and result.flows and result.slot not in targets:
                values[result.slot] = output if noise is None else noise(number, output)

    def weighed(self, values: list[Array]) -> float:
        total = 0.0
        for root in self.graph.roots:
            value = values[root.slot]
            total += float(np.sum(value if root.weight is None else value * root.weight))
        return total

    def kink(self) -> Step | None:
        """The first moving step whose arguments sit where its slope jumps."""
        for step in self.moving:
            test = find_kink(step.name)
            if test is None:
                continue
            keywords = {name: filled(value, self.values) for name, value in step.keywords.items()}
            try:
                if test(*filled(step.arguments, self.values), **keywords):
                    return step
            except FAILURES:
                continue
        return None


def replay(graph: Graph) -> Replay:
    """Compute every value as it was.

    Each step is held against the record by itself, from its recorded operands, so that rounding does not add up.
    Raises NotDerivedError where a step does not give what was recorded.
    """
    base = _Base([np.zeros(())] * len(graph.tensors), [np.zeros(())] * len(graph.tensors))
    for slot, value in graph.given.items():
        base.set(slot, value, value)
    live = graph.live()
    steps: list[Step] = []
    moving: list[Step] = []
    found: list[str] = []
    with np.errstate(all="ignore"):
        for step in graph.steps:
            follows = any(slot in live for slot in step.refs())
            moves = follows and any(result is not None and result.flows for result in step.results)
            chosen = base.compute(_settled(step, base.seen, found), may_be_taken=not moves)
            steps.append(chosen)
            if moves:
                moving.append(chosen)
    return Replay(msgspec.structs.replace(graph, steps=tuple(steps)), base.values, tuple(moving), tuple(found))


def _settled(step: Step, seen: list[Array], found: list[str]) -> Step:
    """The step with numbers in the place of those that were not recorded."""
    if not any(isinstance(argument, Missing) for argument in step.arguments):
        return step
    result = step.results[0] if step.results else None
    number = None if result is None else solved(step.name, filled(step.arguments, seen), array_of(result.value))
    code = next(argument.code for argument in step.arguments if isinstance(argument, Missing))
    if number is None:
        raise NotDerivedError(f"the operand `{code}` of {step.said()} was not recorded")
    found.append(f"{code} was {number:g}, by the recorded result of {step.said()}")
    return msgspec.structs.replace(
        step, arguments=tuple(number if isinstance(argument, Missing) else argument for argument in step.arguments)
    )


class _Base(msgspec.Struct):
    """The values at the recorded point: as replayed in float64, and as the program had them (`seen`)."""

    values: list[Array]
    seen: list[Array]

    def set(self, slot: Slot, value: Array, seen: Array) -> None:
        self.values[slot], self.seen[slot] = value, seen

    def compute(self, step: Step, *, may_be_taken: bool) -> Step:
        """Put a step's results in their slots; returns it with the setting that fits the record best.

        What the target does not reach may be taken from the record where it cannot be computed.
        """
        if step.function is None:
            if not self.take(step):
                raise NotDerivedError(f"{step.said()} is a gradient itself, and its value was not kept")
            return step
        failure = ""
        best: tuple[float, Step, list[Array]] | None = None
        for choice in step.choices:
            variant = msgspec.structs.replace(step, keywords=step.keywords | choice, choices=({},)) if choice else step
            try:
                outputs = _outputs(variant, self.seen)
            except UnsupportedError as error:
                failure = f"{step.said()} is not replayed: {error}"
                continue
            except FAILURES as error:
                failure = f"{step.said()} is not replayed with these arguments ({_first_line(error)})"
                continue
            misfit = self.misfit(step, outputs)
            if misfit:
                failure = misfit
                continue
            distance = _distance(step, outputs)
            if best is None or distance < best[0]:
                best = distance, variant, outputs
        if best is None:
            if may_be_taken and self.take(step):
                return step
            if len(step.choices) > 1:
                failure = f"{step.said()} has settings that were not recorded (a weight, a reduction, ...)"
            raise NotDerivedError(failure)
        _, chosen, seen = best
        exact = all(self.values[slot] is self.seen[slot] for slot in step.refs())
        for result, value, here in zip(
            step.results, seen if exact else _outputs(chosen, self.values), seen, strict=False
        ):
            if result is not None:
                whole = array_of(result.value)
                self.set(result.slot, value, here if whole is None else whole)
        return chosen

    def take(self, step: Step) -> bool:
        """The values that the program got, where all of them were kept whole."""
        recorded = [(result.slot, array_of(result.value)) for result in step.results if result is not None]
        for slot, whole in recorded:
            if whole is None:
                return False
            self.set(slot, whole, whole)
        return True

    def misfit(self, step: Step, outputs: list[Array]) -> str:
        """A sentence when the outputs are not what was recorded."""
        scale = max((_magnitude(self.seen[slot]) for slot in step.refs()), default=0.0)
        if len(outputs) < len(step.results):
            return f"{step.said()} gave {len(step.results)} results, its replay {len(outputs)}"
        for result, output in zip(step.results, outputs, strict=False):
            if result is None:
                continue
            if output.shape != result.shape:
                return f"{step.said()} gave shape {result.shape}, its replay {output.shape}"
            if result.value is None or _fits(output, result.value, scale):
                continue
            if result.value.inf and np.all(np.isfinite(output)):
                return f"{step.said()} overflowed {result.dtype}; in float64 it is {brief(output)}"
            return f"{step.said()} gave {_said(result.value)}, its replay in float64 {brief(output)}"
        return ""


def _outputs(step: Step, values: list[Array]) -> list[Array]:
    """What a step gives, as arrays of the recorded kinds (whole numbers, booleans, float64)."""
    assert step.function is not None
    keywords = {name: filled(value, values) for name, value in step.keywords.items()}
    computed = step.function(*filled(step.arguments, values), **keywords)
    several = computed if isinstance(computed, tuple) else (computed,)
    return [
        np.asarray(output, dtype=array_kind(result.dtype) if result is not None else None)
        for result, output in zip(step.results, several, strict=False)
    ]


# --- does it fit the record? ----------------------------------------------------------------------


def _fits(output: Array, recorded: Value, scale: float) -> bool:
    """Whether a replayed value is the recorded one, up to rounding: what cancels keeps its operands' rounding."""
    whole = array_of(recorded)
    tolerance = relative_tolerance(recorded.dtype)
    if whole is not None:
        if whole.dtype.kind != "f":
            return bool(np.array_equal(output, whole))
        slack = tolerance * max(scale, _magnitude(whole)) + 1e-30
        return bool(np.allclose(output, whole, rtol=tolerance, atol=slack, equal_nan=True))
    norm = recorded.magnitude
    if norm is None or not math.isfinite(norm) or output.dtype.kind != "f":
        return True
    slack = tolerance * scale * math.sqrt(output.size) + 1e-30
    return math.isclose(float(np.linalg.norm(output)), norm, rel_tol=tolerance, abs_tol=slack)


def _distance(step: Step, outputs: list[Array]) -> float:
    for result, output in zip(step.results, outputs, strict=False):
        whole = array_of(result.value) if result is not None else None
        if whole is not None:
            return _magnitude(output - whole)
    return 0.0


def _magnitude(array: Array) -> float:
    """The largest finite element without its sign."""
    size = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.zeros(0)
    return float(size.max()) if size.size else 0.0


def _said(value: Value) -> str:
    whole = array_of(value)
    return brief(whole) if whole is not None else f"norm {value.norm}"


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:80] if str(error) else type(error).__name__


def _cost(step: Step, values: list[Array]) -> int:
    sizes = [values[slot].size for slot in step.refs()]
    results = sum(values[result.slot].size for result in step.results if result is not None)
    work = 12 + (sum(sizes) + results) // 300
    if step.name in CONTRACTIONS:
        work += results * math.isqrt(max(sizes, default=1)) // 1000
    return work
