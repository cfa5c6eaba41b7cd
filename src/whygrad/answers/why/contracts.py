"""Shapes and dtypes that did not fit: which module or operation refused, and the line that made the input so."""

from __future__ import annotations

from whygrad.answers.why.answer import Moment, Sentence
from whygrad.answers.why.computed import Values
from whygrad.answers.why.failed_code import inner_results, operands
from whygrad.answers.why.failure import Failure, headline
from whygrad.answers.why.flow import Flow, Made
from whygrad.answers.why.words import code_of, is_name, quoted, several, shape_text, short_text, shortened
from whygrad.ledger import Ledger
from whygrad.ledger.events import ModuleCalled, Shape, Tensor, TensorId

Reason = tuple[str, Sentence, list[Sentence]]

OPERANDS = 5
"""Operands of a failed line that are described."""

FEW = 4
"""Elements of an operand whose value is shown."""

STEPS_BACK = 3
"""How many computations back the origin of a shape is told."""


def explain_broken_call(ledger: Ledger, failure: Failure, call: ModuleCalled) -> Reason:
    """A module got what it cannot take."""
    module = ledger.module(call.module)
    path = (module.path or module.kind) if module is not None else "a module"
    said = failure.first_line.rstrip(".")
    events = (call.seq, failure.seq)
    origin = _story(ledger, call.inputs[0], failure.seq, path) if call.inputs else []
    if call.broken:
        text = headline(ledger, failure, f"{path} got an input that does not fit. {call.broken.rstrip('.')}.")
        return "broken contract", Sentence(text, events), [*origin, Sentence(f"PyTorch says: {said}.", (failure.seq,))]
    shapes = several([f"{shape_text(shape.shape)} {shape.dtype}" for shape in call.inputs])
    mode = "training" if call.training else "evaluation"
    given = f" It was given {shapes}, in {mode} mode." if shapes else ""
    text = headline(ledger, failure, f"the call of {path} failed: {said}.{given}")
    return "module failed", Sentence(text, events), origin


def explain_operation(ledger: Ledger, failure: Failure) -> Reason:
    """An error without a cause of its own: the line, the operation, and its operands."""
    place = quoted(ledger, failure.site)
    said = failure.first_line
    text = headline(ledger, failure, said if said else f"{place} failed without a message.")
    moment = Moment(seq=failure.seq, text="then")
    values = Values(ledger, moment)
    flow = Flow(ledger, failure.seq)
    sentences = []
    for name, known in [*operands(ledger, failure), *inner_results(ledger, failure)][:OPERANDS]:
        value = values.value(known.id, failure.seq)
        shown = f", value {short_text(value)}" if value is not None and value.count <= FEW else ""
        maker = flow.maker(known.id)
        site = maker.site if maker is not None else known.site
        made = ""
        if site is not None and (maker is not None or known.origin == "created") and code_of(ledger, site) != name:
            made = f"; {quoted(ledger, site)} made it"
        title = name if is_name(name) else f"`{shortened(name)}`"
        sentences.append(
            Sentence(f"{title} has shape {shape_text(known.shape)} and dtype {known.dtype}{shown}{made}.", (known.seq,))
        )
    if not sentences or said:
        sentences.insert(0, Sentence(f"The line is {place}.", (failure.seq,)))
    return "error", Sentence(text, (failure.seq,)), sentences


def _story(ledger: Ledger, given: Shape, before: int, path: str) -> list[Sentence]:
    """Where a shape came from: the line that made the input, and what that line was given."""
    flow = Flow(ledger, before)
    sentences: list[Sentence] = []
    tensor = given.tensor
    known = ledger.tensor(tensor)
    while known is not None and len(sentences) < STEPS_BACK:
        maker = _outside(flow, known.id, path)
        site = maker.site if maker is not None else known.site
        if site is None:
            break
        name = ledger.name(known.id)
        what = name or ("its input" if not sentences else "what that was given")
        seq = maker.seq if maker is not None else known.seq
        sentences.append(
            Sentence(f"{_by(ledger, maker, known)} made {what} of shape {shape_text(known.shape)}.", (seq,))
        )
        source = _source(ledger, maker)
        if source is None or source.shape == known.shape:
            break
        known = source
    return sentences


def _by(ledger: Ledger, maker: Made | None, known: Tensor) -> str:
    site = maker.site if maker is not None else known.site
    if maker is not None and maker.module and maker.module not in code_of(ledger, site):
        return f"{maker.module} in {quoted(ledger, site)}"
    return quoted(ledger, site)


def _outside(flow: Flow, tensor: TensorId, path: str) -> Made | None:
    """The computation that made a tensor, not counting the call that failed."""
    return next((made for made in flow.makers.get(tensor, ()) if made.module != path), None)


def _source(ledger: Ledger, maker: Made | None) -> Tensor | None:
    """The first operand of a computation that is not a parameter."""
    for operand in maker.inputs if maker is not None else ():
        known = ledger.tensor(operand)
        if known is not None and known.origin != "parameter":
            return known
    return None
