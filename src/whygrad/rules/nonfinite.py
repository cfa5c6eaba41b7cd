"""Where NaN and infinity begin: the first operation of a forward that gives them, or of a backward whose slope does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from whygrad.ledger.events import GradReturned, GradWritten, Node, NodeId, Operation, OptimizerStepped, TensorId
from whygrad.ledger.values import Number, Value, as_float
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.memo import once
from whygrad.rules.terms import tensors_of

SELECTS = ("Where", "MaskedFill", "MaskedScatter", "NanToNum")
"""Nodes that send a gradient of exactly zero to what was not selected."""

DECOMPOSITIONS = ("LinalgSvd", "LinalgEigh", "LinalgEig", "Svd", "Symeig", "LinalgQr")


class Culprit(msgspec.Struct, frozen=True):
    """The node of a backward whose slope is infinite or undefined, and why; `proven` by the recorded values."""

    node: Node
    operation: Operation | None
    reason: str
    proven: bool
    selected_by: Node | None = None


class Symptom(msgspec.Struct, frozen=True):
    """The first pass of the run with a value that is not finite: in its root, or in a gradient."""

    entry: Pass
    root: bool
    write: GradWritten | GradReturned | None


def finite(value: Value | None) -> bool:
    """Whether nothing in a value is NaN or infinite; an unknown value counts as finite."""
    return value is None or not (value.nan or value.inf)


@once
def symptom(facts: Facts) -> Symptom | None:
    """The first pass that shows NaN or infinity, if its gradients were used (a loss scaler skips such steps)."""
    for entry in facts.passes:
        if entry.ended is not None and entry.ended.error:
            continue
        told: list[GradWritten | GradReturned] = [*entry.written, *entry.returned]
        bad = next((one for one in told if not _finite_write(one)), None)
        root = not finite(entry.began.root_value)
        if (bad is not None or root) and _used(facts, entry, bad):
            return Symptom(entry, root, bad)
    return None


def _finite_write(write: GradWritten | GradReturned) -> bool:
    value = write.after if isinstance(write, GradWritten) else write.value
    return finite(value) and all(finite(part.value) for part in write.contributions)


def _used(facts: Facts, entry: Pass, bad: GradWritten | GradReturned | None) -> bool:
    """Whether an optimizer stepped with what is not finite, or none was there to step."""
    steps = facts.of(OptimizerStepped)
    if not steps or bad is None:
        return True
    later = [step for step in steps if step.seq > entry.began.seq]
    return any(not finite(update.grad) for step in later[:4] for update in step.updates)


# --- backward -----------------------------------------------------------------------------------------


def culprit(facts: Facts, found: Symptom) -> Culprit | None:
    """The node nearest to a finite root that explains a gradient that is not finite."""
    if found.root or found.write is None:
        return None
    way = list(_way(facts, found.entry, found.write))
    made = {one.node: one for one in facts.of(Operation) if one.node is not None and one.seq < found.entry.began.seq}
    guessed: Culprit | None = None
    for at, node in enumerate(way):
        operation = made.get(node.id)
        given = [facts.value(tensor, operation.seq) for tensor in tensors_of(operation.inputs)] if operation else []
        gave = operation.value if operation is not None else None
        verdict = _steep(node, operation, given, gave, facts)
        if verdict is None:
            continue
        reason, proven = verdict
        selected = next((above for above in way[:at] if _selects(facts, above, made.get(above.id))), None)
        one = Culprit(node, operation, reason, proven, selected)
        if proven:
            return one
        guessed = guessed or one
    return guessed


def _way(facts: Facts, entry: Pass, write: GradWritten | GradReturned) -> Iterator[Node]:
    """The nodes between the root and what received the gradient, nearest to the root first."""
    bad = [part.node for part in write.contributions if not finite(part.value) and part.node is not None]
    below: dict[NodeId, set[NodeId]] = {}
    order: list[Node] = []
    for root in entry.began.root_nodes:
        for node in facts.reached(root).values():
            if node not in order:
                order.append(node)
            for edge in node.edges:
                if edge.node is not None:
                    below.setdefault(edge.node, set()).add(node.id)
    wanted = set(bad)
    queue = list(bad)
    for current in queue:
        for above in below.get(current, ()):
            if above not in wanted:
                wanted.add(above)
                queue.append(above)
    yield from (node for node in order if node.id in wanted)


def _selects(facts: Facts, node: Node, operation: Operation | None) -> bool:
    """Whether a node keeps elements out of the result: a choice, or a product with a constant that is 0 somewhere."""
    if node.name.startswith(SELECTS):
        return True
    if not node.name.startswith("MulBackward") or operation is None:
        return False
    masks = [one for one in tensors_of(operation.inputs) if not facts.flow.requires_grad(one)]
    values = [facts.value(one, operation.seq) for one in masks]
    return any(value is not None and has(value, 0.0) for value in values)


Verdict = tuple[str, bool]


def _steep(
    node: Node, operation: Operation | None, given: list[Value | None], gave: Value | None, facts: Facts
) -> Verdict | None:
    """Why the slope of a node is infinite or undefined in this run, or could be where the values are not known."""
    kind = node.name.partition("Backward")[0]
    for names, check in STEEP.items():
        if kind in names.split():
            verdict = check(operation, given, gave)
            if verdict is not None:
                return verdict
    if kind in DECOMPOSITIONS:
        return _degenerate(node, operation, given, facts)
    if gave is not None and not finite(gave):
        return "it gave an infinite or undefined element, and so is its slope there", True
    return None


def _at(point: float, text: str, *, output: bool = False) -> Callable[..., Verdict | None]:
    """Infinite where the input (or the output) is `point`."""

    def check(_: Operation | None, given: list[Value | None], gave: Value | None) -> Verdict | None:
        value = given[0] if given and given[0] is not None else (gave if output else None)
        if value is None:
            return (text, False) if given == [] or given[0] is None else None
        return (text, True) if has(value, point) else None

    return check


def _ends(text: str) -> Callable[..., Verdict | None]:
    def check(_: Operation | None, given: list[Value | None], __: Value | None) -> Verdict | None:
        value = given[0] if given else None
        if value is None:
            return text, False
        return (text, True) if has(value, 1.0) or has(value, -1.0) else None

    return check


def _divided(operation: Operation | None, given: list[Value | None], __: Value | None) -> Verdict | None:
    text = "it divides by 0"
    if operation is None:
        return text, False
    constants = [one.constant for one in operation.inputs if one.known and one.tensor is None and one.items is None]
    divisor = (
        given[-1]
        if len(given) > 1 or (len(given) == 1 and constants[:1] and operation.inputs[0].tensor is None)
        else None
    )
    if divisor is not None:
        return (text, True) if has(divisor, 0.0) else None
    return None if len(given) == 1 else (text, False)


def _power(operation: Operation | None, given: list[Value | None], __: Value | None) -> Verdict | None:
    exponents = [
        one.constant for one in (operation.inputs[1:] if operation else ()) if one.known and one.tensor is None
    ]
    below = [one for one in exponents if isinstance(one, int | float) and one < 1]
    if not below:
        return None
    text = f"the slope of x**{below[0]} is infinite at 0, and an element is 0"
    if not given or given[0] is None:
        return text, False
    return (text, True) if has(given[0], 0.0) else None


def _overflown(_: Operation | None, given: list[Value | None], gave: Value | None) -> Verdict | None:
    text = "exp overflows: an element is infinite, and so is its slope"
    if gave is None:
        known = given[0] if given else None
        large = known is not None and _high(known) > 88.0
        return (text, large) if known is None or large else None
    return (text, True) if gave.inf else None


def _both_zero(_: Operation | None, given: list[Value | None], __: Value | None) -> Verdict | None:
    text = "the slope of atan2 is undefined where both arguments are 0"
    if len(given) < 2 or given[0] is None or given[1] is None:
        return text, False
    pairs = zip(given[0].items or (), given[1].items or (), strict=False)
    return (text, True) if any(_equals(a, 0.0) and _equals(b, 0.0) for a, b in pairs) else None


STEEP: dict[str, Callable[..., Verdict | None]] = {
    "Sqrt": _at(0.0, "the slope of sqrt is infinite at 0, and an element is 0", output=True),
    "Rsqrt": _at(0.0, "1 / sqrt(x) is infinite at 0, and an element is 0"),
    "Log Log2 Log10 Xlogy": _at(0.0, "the slope of log is infinite at 0, and an element is 0"),
    "Log1P": _at(-1.0, "the slope of log1p is infinite at -1, and an element is -1"),
    "Norm LinalgVectorNorm": _at(0.0, "the slope of a norm is undefined where the norm is 0", output=True),
    "Std": _at(0.0, "the slope of a standard deviation is undefined where it is 0", output=True),
    "Reciprocal": _at(0.0, "1 / x is infinite at 0, and an element is 0"),
    "Div": _divided,
    "Pow": _power,
    "Exp Expm1 Exp2 Cosh Sinh": _overflown,
    "Acos Asin Atanh": _ends("its slope is infinite at 1 and -1, and an element is there"),
    "Acosh": _at(1.0, "the slope of acosh is infinite at 1, and an element is 1"),
    "Atan2": _both_zero,
    "Cdist EuclideanDist": _at(0.0, "the slope of a distance is undefined between equal points"),
}
"""Kinds of nodes whose slope can be infinite or undefined."""


def spectrum(node: Node, operation: Operation | None, given: list[Value | None], facts: Facts) -> list[float]:
    """The singular values or eigenvalues of what a decomposition was given; empty where they are not known."""
    for one in node.saved:
        value = facts.value(one.tensor) if one.slot in ("S", "L", "eigenvalues") else None
        if value is not None and value.items is not None and not isinstance(value.items[0], str):
            return sorted(abs(as_float(item)) for item in value.items)
    value = given[0] if given else None
    if operation is None or value is None or value.items is None or len(value.shape) != 2 or not finite(value):
        return []
    import numpy as np

    matrix = np.array([as_float(item) for item in value.items]).reshape(value.shape)
    return sorted(float(one) for one in np.linalg.svd(matrix, compute_uv=False))


def _degenerate(node: Node, operation: Operation | None, given: list[Value | None], facts: Facts) -> Verdict | None:
    """Equal singular values or eigenvalues."""
    text = "its backward divides by differences of singular values (or eigenvalues), and two are equal"
    numbers = spectrum(node, operation, given, facts)
    near = max(numbers, default=0.0) * 1e-6
    if any(b - a <= near for a, b in pairwise(numbers)):
        return text, True
    if numbers:
        return None
    return text, False


# --- forward --------------------------------------------------------------------------------------------


class Origin(msgspec.Struct, frozen=True):
    """The computation, or the input, that was first not finite. `inputs` are its inputs' values."""

    tensor: TensorId
    operation: Operation | None
    value: Value
    inputs: tuple[Value | None, ...]


DELIBERATE = frozenset(
    {"masked_fill", "masked_fill_", "where", "full", "full_like", "tensor", "fill_", "setitem", "triu"}
)
"""Operations that put an infinity where the program wants one."""


def origin(facts: Facts, entry: Pass) -> Origin | None:
    """What was first not finite among all that a root was computed from; an infinity that is meant does not count."""
    found: list[tuple[int, Origin]] = []
    undefined = bool(entry.began.root_value and entry.began.root_value.nan)
    for tensor in _behind(facts, entry):
        operations = [one for one in facts.giving(tensor) if one.seq < entry.began.seq]
        for operation in operations:
            value = operation.value
            if value is None or finite(value) or (undefined and not value.nan and _meant(operation)):
                continue
            inputs = tuple(facts.value(one, operation.seq) for one in tensors_of(operation.inputs))
            sources = [facts.giving(one) for one in tensors_of(operation.inputs)]
            if all(
                finite(one) or (value.nan and not one.nan and _all_meant(made))
                for one, made in zip(inputs, sources, strict=True)
                if one
            ):
                found.append((operation.seq, Origin(tensor, operation, value, inputs)))
        known = facts.tensors.get(tensor)
        if known is not None and known.value is not None and known.value.nan and not operations:
            found.append((known.seq, Origin(tensor, None, known.value, ())))
    return min(found, key=lambda one: one[0])[1] if found else None


def _behind(facts: Facts, entry: Pass) -> set[TensorId]:
    seen = set(entry.began.roots)
    queue = list(seen)
    for tensor in queue:
        for made in facts.flow.makers.get(tensor, ()):
            for given in made.inputs:
                if given > 0 and given not in seen and made.seq < entry.began.seq:
                    seen.add(given)
                    queue.append(given)
    return seen


def _meant(operation: Operation) -> bool:
    return operation.function.rpartition(".")[2] in DELIBERATE


def _all_meant(operations: list[Operation]) -> bool:
    """Whether the infinities of a tensor were put there on purpose: in the constructor, or by a mask."""
    return all(_meant(operation) or operation.function.rpartition(".")[2] in PASSES_ON for operation in operations)


PASSES_ON = frozenset(
    {"add", "view", "reshape", "transpose", "unsqueeze", "squeeze", "expand", "getitem", "float", "to"}
)
"""Operations that hand on an infinity that they were given."""


# --- values ---------------------------------------------------------------------------------------------


def has(value: Value, number: float) -> bool:
    """Whether an element is exactly `number` (for a large value: its lowest or highest)."""
    if value.items is not None:
        return any(_equals(item, number) for item in value.items)
    return _equals(value.low, number) or _equals(value.high, number)


def _high(value: Value) -> float:
    items = [as_float(item) for item in value.items or () if not isinstance(item, str)]
    return max(items) if items else (as_float(value.high) if value.high is not None else 0.0)


def _equals(item: Number | None, number: float) -> bool:
    try:
        return item is not None and as_float(item) == number
    except ValueError:
        return False
