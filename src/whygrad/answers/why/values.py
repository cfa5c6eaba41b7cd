"""Why a tensor has its value: the operation that computed it, with its operands' values, back to the leaves."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.answers.why.answer import Answer, Moment, Sentence
from whygrad.answers.why.computed import Computed, Values, Write
from whygrad.answers.why.flow import tensors_of
from whygrad.answers.why.words import (
    code_of,
    is_brief,
    joined,
    number_text,
    origin_text,
    quoted,
    shape_text,
    short_text,
    shortened,
    value_text,
)
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    BackwardBegan,
    Event,
    ModuleCalled,
    Operand,
    Operation,
    PassFold,
    SiteId,
    StepsFolded,
    Tensor,
    TensorId,
)
from whygrad.ledger.values import Value

STEPS = 6
"""Computations that are told below the headline, nearest first."""

LOOKED_AT = 10_000
"""Operands that are followed back before the search gives up."""


def explain_value(ledger: Ledger, name: str, tensor: TensorId, moment: Moment) -> Answer:
    """The operation behind a value, and those behind its operands."""
    values = Values(ledger, moment)
    now = moment.seq + 1
    known = ledger.tensor(tensor)
    value = values.value(tensor, now)
    computed = values.computed(tensor, now)
    shown = value_text(value) if value is not None else _unkept(known)
    write = values.last_write(tensor, now)
    subject = f"{name} is {shown} at {moment.text}"
    sentences: list[Sentence] = []
    since = max(computed.event.seq if computed else 0, write.event.seq if write else 0, known.seq if known else 0)
    folded = [fold for fold in ledger.of(StepsFolded) if since < fold.seq <= moment.seq]
    if folded:
        subject = f"{name} was {shown} when last recorded in full (step {folded[0].first - 1})"
        sentences.append(_lightly(ledger, name, folded))
    if write is not None and (computed is None or write.event.seq > computed.event.seq):
        reason = "written"
        text = f"{subject}: {quoted(ledger, write.event.site)} wrote it in place last ({write.by})."
        headline = Sentence(text, (write.event.seq,))
        if known is not None:
            sentences.append(_origin(ledger, known, values.value(tensor, known.seq + 1)))
    elif computed is not None and isinstance(computed.event, Operation) and computed.event.in_place:
        reason = "written"
        event = computed.event
        text = f"{subject}: {_place(ledger, event)} wrote it in place last{_with(ledger, values, event)}."
        headline = Sentence(text, (computed.event.seq,))
    elif computed is not None and _sources(computed.event):
        reason = "computed"
        text = f"{subject}: {_place(ledger, computed.event)}{_with(ledger, values, computed.event)}."
        headline = Sentence(text, (computed.event.seq,))
        sentences += _behind(ledger, values, computed.event)
    else:
        reason = "made"
        origin = origin_text(ledger, known) if known is not None else "it was not computed here"
        headline = Sentence(f"{subject}: {origin}.", (known.seq,) if known is not None else ())
    return Answer(
        about=name,
        reason=reason,
        moment=moment,
        headline=headline,
        sentences=tuple(sentences),
        value=value_text(value) if value is not None else "",
    )


def _lightly(ledger: Ledger, name: str, folded: list[StepsFolded]) -> Sentence:
    """What is known of the steps since: of several losses, what is known of the one that is asked about."""
    losses: list[StepsFolded | PassFold] = [fold for fold in folded if not fold.passes]
    if not losses:
        roots = {began.site for began in ledger.of(BackwardBegan) if name in map(ledger.name, began.roots)}
        losses = [kind for fold in folded for kind in fold.passes if kind.site in roots]
        losses = losses or [fold for fold in folded if len(fold.passes) == 1]
    loss = ""
    if losses and losses[0].loss_first is not None and losses[-1].loss_last is not None:
        loss = f"; the loss went from {number_text(losses[0].loss_first)} to {number_text(losses[-1].loss_last)}"
    text = f"Steps {folded[0].first} to {folded[-1].last} were recorded lightly{loss}."
    return Sentence(text, tuple(fold.seq for fold in folded))


def _behind(ledger: Ledger, values: Values, last: Operation | ModuleCalled) -> list[Sentence]:
    """The computations that led to the operands, nearest first; each line of a loop is told once."""
    sentences: list[Sentence] = []
    told: set[SiteId | None] = {last.site}
    turns = 1
    seen = {last.seq}
    queue: list[tuple[TensorId, int]] = [(operand, values.given_at(last)) for operand in _sources(last)]
    for operand, before in queue:
        if len(sentences) >= STEPS or len(queue) > LOOKED_AT:
            break
        computed = values.computed(operand, before)
        value = values.value(operand, before)
        known = ledger.tensor(operand)
        write = values.last_write(operand, before)
        writer = _writer(write, computed, known)
        if writer is not None:
            if writer.seq not in seen:
                seen.add(writer.seq)
                title = _said(ledger.describe(operand), value, known)
                sentences.append(
                    Sentence(f"{title}: {quoted(ledger, writer.site)} wrote it in place last.", (writer.seq,))
                )
            continue
        if computed is None or not _sources(computed.event):
            if known is not None and known.seq not in seen and (known.site is None or known.site not in told):
                seen.add(known.seq)
                told.add(known.site)
                sentences.append(_origin(ledger, known, value))
            continue
        event = computed.event
        if event.seq in seen:
            continue
        seen.add(event.seq)
        queue += [(source, values.given_at(event)) for source in _sources(event)]
        if event.site in told:
            turns += event.site == last.site
            continue
        told.add(event.site)
        name = ledger.name(operand)
        result = _said(name or _place(ledger, event), value, known)
        way = f": {_place(ledger, event)}" if name else ""
        sentences.append(Sentence(f"{result}{way}{_with(ledger, values, event)}.", (event.seq,)))
    if turns > 1 and isinstance(last, Operation):
        sentences.insert(0, Sentence(f"{quoted(ledger, last.site)} ran {turns} times on the way to it.", (last.seq,)))
    return sentences


def _writer(write: Write | None, computed: Computed | None, known: Tensor | None) -> Event | None:
    """What wrote a value in place last, where no computation from recorded tensors says more of it."""
    made = max(known.seq if known is not None else 0, computed.event.seq if computed is not None else 0)
    if write is not None and write.event.seq > made:
        return write.event
    if computed is not None and isinstance(computed.event, Operation) and computed.event.in_place:
        return None if _sources(computed.event) else computed.event
    return None


def _said(title: str, value: Value | None, known: Tensor | None) -> str:
    """`w is 3`, or `h has shape (2, 4)` where the value was not kept."""
    if value is not None:
        return f"{title} is {short_text(value)}" if is_brief(value) else f"{title} has {_norm(value)}"
    return f"{title} has shape {shape_text(known.shape)}" if known is not None else f"{title} was not recorded"


def _norm(value: Value) -> str:
    """The norm of a value whose elements are too many to say."""
    norm = value.magnitude
    return f"shape {shape_text(value.shape)}" if norm is None else f"norm {number_text(norm)}"


def _origin(ledger: Ledger, known: Tensor, value: Value | None) -> Sentence:
    name = ledger.name(known.id)
    if not name and known.site is not None:
        return Sentence(f"{_said(quoted(ledger, known.site), value, known)}.", (known.seq,))
    return Sentence(f"{_said(name or 'a tensor', value, known)}: {origin_text(ledger, known)}.", (known.seq,))


def _place(ledger: Ledger, event: Operation | ModuleCalled) -> str:
    """`w * 2.0` (line 8), or the module and the expression that called it."""
    text = quoted(ledger, event.site)
    if isinstance(event, ModuleCalled):
        module = ledger.module(event.module)
        if module is not None and module.path and module.path not in code_of(ledger, event.site):
            return f"{module.path} in {text}"
    return text


def _with(ledger: Ledger, values: Values, event: Operation | ModuleCalled) -> str:
    """The operands and their values: `, with w = 3`."""
    parts = list(dict.fromkeys(_operands(ledger, values, event)))
    return f", with {joined(parts)}" if parts else ""


def _operands(ledger: Ledger, values: Values, event: Operation | ModuleCalled) -> Iterator[str]:
    before = values.given_at(event)
    for title, tensor in _given(ledger, event):
        value = values.value(tensor, before)
        if value is not None and is_brief(value):
            yield f"{title} = {short_text(value)}"
        elif value is not None:
            yield f"{title} of {_norm(value)}"
        else:
            known = ledger.tensor(tensor)
            yield f"{title} of shape {shape_text(known.shape)}" if known is not None else title


def _given(ledger: Ledger, event: Operation | ModuleCalled) -> list[tuple[str, TensorId]]:
    if isinstance(event, ModuleCalled):
        module = ledger.module(event.module)
        tensors = [shape.tensor for shape in event.inputs if shape.tensor is not None]
        unnamed = "its input" if len(tensors) == 1 else "its input {}"
        parameters = module.parameters if module is not None else ()
        return [
            *((ledger.name(tensor) or unnamed.format(number), tensor) for number, tensor in enumerate(tensors, 1)),
            *((ledger.name(tensor) or name, tensor) for name, tensor in parameters),
        ]
    return [
        (shortened(operand.code or ledger.describe(operand.tensor)), operand.tensor)
        for operand in _flat(event.inputs)
        if operand.tensor is not None
    ]


def _flat(operands: tuple[Operand, ...]) -> Iterator[Operand]:
    for operand in operands:
        if operand.items:
            yield from _flat(operand.items)
        else:
            yield operand


def _sources(event: Operation | ModuleCalled) -> list[TensorId]:
    if isinstance(event, ModuleCalled):
        return [shape.tensor for shape in event.inputs if shape.tensor is not None]
    return list(dict.fromkeys(tensors_of(event.inputs)))


def _unkept(known: Tensor | None) -> str:
    shape = f" of shape {shape_text(known.shape)}" if known is not None else ""
    return f"a tensor{shape}" if known is not None else "a tensor that was not recorded"
