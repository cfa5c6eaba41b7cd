"""Recorded operations computed again in float64, so that a rule can ask what another input would have given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from whygrad.ledger.events import Operand, Operation, TensorId
from whygrad.ledger.values import Value, as_float
from whygrad.rules.facts import Facts
from whygrad.rules.terms import tensors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS = 200
STEP = 1e-6


class Function(msgspec.Struct, frozen=True, eq=False):
    """The operations that lead from some tensors to another, with the values of all that they need."""

    steps: tuple[Operation, ...]
    output: TensorId
    values: dict[TensorId, Any]

    def __call__(self, changed: dict[TensorId, NDArray[Any]]) -> NDArray[Any]:
        """The output for other values of some of the inputs."""
        import numpy as np

        from whygrad.answers.derive.operations import find, plain_name

        values = {**self.values, **changed}
        for step in self.steps:
            arguments = [_filled(one, values) for one in step.inputs if not one.keyword]
            keywords = {one.keyword: _filled(one, values) for one in step.inputs if one.keyword}
            compute = find(plain_name(step.function))
            assert compute is not None
            values[step.outputs[0]] = np.asarray(compute(*arguments, **keywords))
        return np.asarray(values[self.output], dtype=float)


def function_of(facts: Facts, inputs: tuple[TensorId, ...], output: TensorId, before: int) -> Function | None:
    """What computed `output` from `inputs`; None where a step or a value is not known."""
    from whygrad.answers.derive.operations import find, plain_name

    values = {tensor: array for tensor in inputs if (array := array_of(facts.value(tensor, before))) is not None}
    if len(values) != len(set(inputs)):
        return None
    steps: dict[int, Operation] = {}
    queue = [output]
    for tensor in queue:
        if tensor in values:
            continue
        made = next((one for one in facts.giving(tensor) if one.seq < before), None)
        if made is None or not tensors_of(made.inputs):
            known = array_of(facts.value(tensor, before))
            if known is None:
                return None
            values[tensor] = known
            continue
        known_to_us = find(plain_name(made.function)) is not None and all(one.known for one in made.inputs)
        if made.in_place or not known_to_us or len(steps) > STEPS:
            return None
        steps[made.seq] = made
        queue += [one for one in tensors_of(made.inputs) if one not in queue]
    return Function(tuple(steps[seq] for seq in sorted(steps)), output, values)


def slopes(function: Function, given: TensorId, weights: list[float]) -> list[float] | None:
    """The derivative of the weighted sum of the output by each element of an input, by central differences."""
    import numpy as np

    start = np.asarray(function.values[given], dtype=float)
    factor = np.array(weights)
    found = []
    try:
        with np.errstate(all="ignore"):
            for at in range(start.size):
                size = STEP * max(1.0, abs(float(start.ravel()[at])))
                ends = []
                for sign in (1.0, -1.0):
                    moved = start.copy()
                    moved.ravel()[at] += sign * size
                    out = function({given: moved}).ravel()
                    if out.size != factor.size:
                        return None
                    ends.append(float(out @ factor))
                found.append((ends[0] - ends[1]) / (2 * size))
    except Exception:
        return None
    return found if all(np.isfinite(found)) else None


def items(value: Value | None) -> list[float] | None:
    """The elements of a value that was kept whole."""
    if value is None or value.items is None:
        return None
    try:
        return [as_float(item) for item in value.items]
    except ValueError:
        return None


def array_of(value: Value | None) -> NDArray[Any] | None:
    """A value that was kept whole, as an array of float64 (or of integers or booleans as they are)."""
    import numpy as np

    if value is None or value.items is None or value.nan or value.inf:
        return None
    kind = float if value.dtype.startswith(("float", "bfloat")) else None
    return np.array(value.items, dtype=kind).reshape(value.shape)


def _filled(operand: Operand, values: dict[TensorId, Any]) -> Any:
    if operand.items is not None:
        return [_filled(one, values) for one in operand.items]
    return values[operand.tensor] if operand.tensor is not None else operand.constant
