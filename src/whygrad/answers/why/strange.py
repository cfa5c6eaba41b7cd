"""Why a gradient is exactly zero, NaN or infinite: the operation on its way that makes it so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from whygrad.answers.why.answer import Moment, Sentence
from whygrad.answers.why.buffer import Buffer
from whygrad.answers.why.computed import Values
from whygrad.answers.why.flow import Flow, tensors_of
from whygrad.answers.why.passes import Pass, nodes_reached, pass_of
from whygrad.answers.why.words import is_finite, is_zero, quoted, several
from whygrad.ledger import Ledger
from whygrad.ledger.events import GradWritten, Node, NodeId, NotFinite, Operation
from whygrad.ledger.values import Number, Value, as_float

SHOWN = 4


class OnTheWay(msgspec.Struct, frozen=True):
    """A node between the root and the leaf, with the operation that made it and the values around it."""

    node: Node
    operation: Operation | None
    given: tuple[Value | None, ...]
    gave: Value | None


def explain_strange(ledger: Ledger, buffer: Buffer, moment: Moment) -> list[Sentence]:
    """A sentence about the operation to blame; none for an ordinary gradient."""
    if not buffer.writes or buffer.value is None:
        return []
    last = buffer.writes[-1]
    if not is_finite(buffer.value):
        culprit = next((write for write in buffer.writes if not is_finite(write.after)), last)
        return _not_finite(ledger, culprit, moment)
    if is_zero(buffer.value) and len(buffer.writes) == 1:
        return _zero(ledger, last, moment)
    return []


# --- zero ---------------------------------------------------------------------------------------------


def _zero(ledger: Ledger, written: GradWritten, moment: Moment) -> list[Sentence]:
    """The flat operation that every way back passes, or that several ways meet and add up to nothing."""
    entry = pass_of(ledger, written.backward)
    if entry is None or not written.contributions:
        return []
    feeder = written.contributions[0].node
    for step in _way(ledger, written, moment):
        for kind, reason in FLAT.items():
            if not step.node.name.startswith(kind) or not (text := reason(step)):
                continue
            if feeder is not None and feeder not in nodes_reached(ledger, entry, without=step.node.id):
                text = f"Every way back passes {quoted(ledger, step.node.site)}: {text}."
                return [Sentence(text, _events(step))]
    return _meeting(ledger, entry, written)


def _meeting(ledger: Ledger, entry: Pass, written: GradWritten) -> list[Sentence]:
    """The node nearest to the leaf that several others send a gradient to."""
    above = nodes_reached(ledger, entry)
    senders: dict[NodeId, list[Node]] = {}
    for reached in above:
        node = ledger.node(reached)
        for edge in node.edges if node is not None else ():
            if edge.node is not None and node is not None:
                senders.setdefault(edge.node, []).append(node)
    current = written.contributions[0].node
    while current is not None:
        meeting = ledger.node(current)
        ways = senders.get(current, [])
        if len(ways) > 1 and meeting is not None:
            names = several(list(dict.fromkeys(quoted(ledger, node.site) for node in ways)), SHOWN)
            text = (
                f"Several ways back meet at {quoted(ledger, meeting.site)}, from {names}: what they bring adds up to 0."
            )
            return [Sentence(text, (meeting.seq, *(node.seq for node in ways[:SHOWN])))]
        current = above.get(current)
    return []


def _always(text: str) -> Callable[[OnTheWay], str]:
    return lambda _: text


def _flat_relu(step: OnTheWay) -> str:
    return "it gave 0 for every element, and relu has slope 0 there" if is_zero(step.gave) else ""


def _flat_clamp(step: OnTheWay) -> str:
    before, after = _first(step.given), step.gave
    if before is None or after is None or before.items is None or after.items is None:
        return ""
    outside = all(a != b for a, b in zip(before.items, after.items, strict=False))
    return "every element lay outside the bounds and was set to one of them, where the slope is 0" if outside else ""


def _saturated(*ends: float) -> Callable[[OnTheWay], str]:
    def reason(step: OnTheWay) -> str:
        if step.gave is None or step.gave.items is None or not all(item in ends for item in step.gave.items):
            return ""
        return "every element is at the end of its range, where the slope is 0 in this precision"

    return reason


def _times_zero(step: OnTheWay) -> str:
    factors = [value for value in step.given if value is not None]
    constants = [operand.constant for operand in (step.operation.inputs if step.operation else ()) if operand.known]
    zero = any(is_zero(value) for value in factors) or any(
        constant == 0 for constant in constants if _is_number(constant)
    )
    return "it multiplies by 0" if zero else ""


def _single(step: OnTheWay) -> str:
    if step.gave is not None and step.gave.items is not None and all(item == 1 for item in step.gave.items):
        return "a softmax over a single element is always 1, so nothing can change it"
    return ""


FLAT: dict[str, Callable[[OnTheWay], str]] = {
    "RoundBackward": _always("round is flat between its jumps, so its derivative is 0 everywhere"),
    "SignBackward": _always("sign is flat between its jumps, so its derivative is 0 everywhere"),
    "FloorBackward": _always("floor is flat between its jumps, so its derivative is 0 everywhere"),
    "CeilBackward": _always("ceil is flat between its jumps, so its derivative is 0 everywhere"),
    "TruncBackward": _always("trunc is flat between its jumps, so its derivative is 0 everywhere"),
    "ReluBackward": _flat_relu,
    "ClampBackward": _flat_clamp,
    "ClampMinBackward": _flat_clamp,
    "ClampMaxBackward": _flat_clamp,
    "HardtanhBackward": _flat_clamp,
    "SigmoidBackward": _saturated(0.0, 1.0),
    "TanhBackward": _saturated(-1.0, 1.0),
    "SoftmaxBackward": _single,
    "MulBackward": _times_zero,
}
"""Kinds of nodes whose derivative can be exactly 0, and what to say when it was."""


# --- NaN and infinity ---------------------------------------------------------------------------------


def _not_finite(ledger: Ledger, written: GradWritten, moment: Moment) -> list[Sentence]:
    began = pass_of(ledger, written.backward)
    if began is None:
        return []
    if not is_finite(began.began.root_value):
        return [_loss_not_finite(ledger, began)]
    for step in _way(ledger, written, moment):
        reason = next((steep for kind, steep in STEEP.items() if step.node.name.startswith(kind)), None)
        text = reason(step) if reason is not None else ""
        if not text and not is_finite(step.gave):
            text = OVERFLOWN
        if text:
            text = f"On its way from the root it passes {quoted(ledger, step.node.site)}: {text}."
            return [Sentence(text, _events(step))]
    return []


OVERFLOWN = (
    "an element that it gave is infinite or NaN, and so is its slope there; even where that element is not used, "
    "0 times infinity is NaN"
)


def _loss_not_finite(ledger: Ledger, entry: Pass) -> Sentence:
    """The first of the computations behind the loss that gave no finite number."""
    start = "The loss itself is not finite"
    told = next((event for event in ledger.of(NotFinite) if event.backward == entry.began.id), None)
    made = _first_not_finite(ledger, entry)
    if made is not None:
        return Sentence(
            f"{start}: {quoted(ledger, made.site)} was the first to give NaN or infinity.", (made.seq, entry.seq)
        )
    if told is not None and (node := ledger.node(told.node)) is not None:
        first = "was the first to give NaN or infinity" if told.certain else "gave or was given NaN or infinity"
        return Sentence(f"{start}: {quoted(ledger, node.site)} {first}.", (told.seq, entry.seq))
    if told is not None and told.tensor is not None:
        return Sentence(f"{start}: {ledger.describe(told.tensor)} held NaN or infinity already.", (told.seq, entry.seq))
    return Sentence(f"{start}.", (entry.seq,))


def _first_not_finite(ledger: Ledger, entry: Pass) -> Operation | None:
    """The earliest computation behind the roots that gave no finite number, and was given finite ones."""
    flow = Flow(ledger, entry.seq)
    behind = {made.seq for root in entry.began.roots for _, made in flow.upstream(root)}
    values = Values(ledger, Moment(seq=entry.seq, text=""))
    for operation in ledger.of(Operation):
        if operation.seq > entry.seq:
            return None
        if operation.seq not in behind or operation.value is None or is_finite(operation.value):
            continue
        before = values.given_at(operation)
        if all(is_finite(values.value(tensor, before)) for tensor in tensors_of(operation.inputs)):
            return operation
    return None


def _at_zero(text: str) -> Callable[[OnTheWay], str]:
    def reason(step: OnTheWay) -> str:
        around = [_first(step.given), step.gave]
        return text if any(_has(value, 0.0) for value in around) else ""

    return reason


def _divided_by_zero(step: OnTheWay) -> str:
    divisor = step.given[1] if len(step.given) > 1 else None
    return "it divides by 0" if _has(divisor, 0.0) else ""


def _root_power(step: OnTheWay) -> str:
    exponents = [operand.constant for operand in (step.operation.inputs[1:] if step.operation else ()) if operand.known]
    below = any(_is_number(exponent) and exponent < 1 for exponent in exponents)
    return (
        "the slope of a power below 1 is infinite at 0, and an element is 0"
        if below and _has(_first(step.given), 0.0)
        else ""
    )


STEEP: dict[str, Callable[[OnTheWay], str]] = {
    "SqrtBackward": _at_zero("the slope of sqrt is infinite at 0, and an element is 0"),
    "RsqrtBackward": _at_zero("1 / sqrt is infinite at 0, and an element is 0"),
    "LogBackward": _at_zero("the slope of log is infinite at 0, and an element is 0"),
    "NormBackward": _at_zero("the slope of a norm is not defined at 0, and the norm is 0"),
    "LinalgVectorNormBackward": _at_zero("the slope of a norm is not defined at 0, and the norm is 0"),
    "ReciprocalBackward": _at_zero("1 / x is infinite at 0, and an element is 0"),
    "DivBackward": _divided_by_zero,
    "PowBackward": _root_power,
    "LinalgSvdBackward": _always(
        "it divides by differences of singular values, so equal ones (two zeros) give no number"
    ),
    "LinalgEighBackward": _always("it divides by differences of eigenvalues, so equal ones give no number"),
}
"""Kinds of nodes whose derivative can be infinite or undefined, and what to say when it was."""


# --- the way ------------------------------------------------------------------------------------------


def _way(ledger: Ledger, written: GradWritten, moment: Moment) -> Iterator[OnTheWay]:
    """The nodes between the root and the leaf along each term, nearest to the root first."""
    entry = pass_of(ledger, written.backward)
    if entry is None:
        return
    above = nodes_reached(ledger, entry)
    way: list[NodeId] = []
    for part in written.contributions:
        current = part.node
        climb: list[NodeId] = []
        while current is not None and current not in climb:
            climb.append(current)
            current = above.get(current)
        way += [node for node in reversed(climb) if node not in way]
    wanted = set(way)
    made = {event.node: event for event in ledger.of(Operation) if event.node in wanted}
    values = Values(ledger, moment)
    for identity in way:
        node = ledger.node(identity)
        if node is None:
            continue
        operation = made.get(identity)
        if operation is None:
            yield OnTheWay(node, None, (), None)
            continue
        given = tuple(values.value(tensor, operation.seq) for tensor in tensors_of(operation.inputs))
        yield OnTheWay(node, operation, given, operation.value)


def _events(step: OnTheWay) -> tuple[int, ...]:
    return (step.node.seq,) if step.operation is None else (step.operation.seq, step.node.seq)


def _first(values: tuple[Value | None, ...]) -> Value | None:
    return values[0] if values else None


def _has(value: Value | None, number: float) -> bool:
    if value is None:
        return False
    if value.items is not None:
        return any(_equals(item, number) for item in value.items)
    return _equals(value.low, number) or _equals(value.high, number)


def _equals(item: Number | None, number: float) -> bool:
    try:
        return item is not None and as_float(item) == number
    except ValueError:
        return False


def _is_number(constant: object) -> bool:
    return isinstance(constant, int | float) and not isinstance(constant, bool)
