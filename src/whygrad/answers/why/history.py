"""Why a tensor requires grad or does not: who decided it, at which line."""

from __future__ import annotations

import msgspec

from whygrad.answers.why.answer import Moment, Sentence
from whygrad.answers.why.cuts import advice, cut_events, cut_text
from whygrad.answers.why.flow import Flow, Made
from whygrad.answers.why.words import quoted
from whygrad.ledger import Ledger
from whygrad.ledger.events import Operation, RequiresGradChanged, SiteId, Tensor, TensorId

SHOWN = 4


class NoHistory(msgspec.Struct, frozen=True):
    """Why a tensor does not require grad: a word for machines, the cause, its evidence, and what to do.

    `via` is the expression that computed the tensor, where the cause lies further back.
    """

    reason: str
    cause: str
    events: tuple[int, ...]
    more: tuple[Sentence, ...] = ()
    via: SiteId | None = None

    def clause(self, ledger: Ledger) -> str:
        """The cause, led up to by the expression that computed the tensor."""
        if self.via is None:
            return self.cause
        made_by = f"{quoted(ledger, self.via)} computed it"
        if self.reason == "inputs without grad":
            return f"{made_by}, and {self.cause}"
        return f"{made_by} from values without history: {self.cause}"


def switched_off(ledger: Ledger, tensor: TensorId, moment: Moment) -> RequiresGradChanged | None:
    """The switch that left `requires_grad` off at `moment`, if one did."""
    last = None
    for event in ledger.of(RequiresGradChanged):
        if event.tensor == tensor and event.seq <= moment.seq:
            last = event
    return last if last is not None and not last.to else None


def why_no_history(ledger: Ledger, known: Tensor, moment: Moment) -> NoHistory:
    """Who decided that a tensor does not require grad."""
    off = switched_off(ledger, known.id, moment)
    if off is not None:
        by = quoted(ledger, off.site) if off.site is not None else off.by
        return NoHistory("switched off", f"{by} switched its requires_grad off", (off.seq,))
    flow = Flow(ledger, moment.seq)
    maker = flow.maker(known.id) if known.origin != "parameter" else None
    if maker is not None and flow.loses_history(maker, known.id):
        return _cut(ledger, maker)
    if maker is not None and maker.inputs:
        return _from_inputs(ledger, flow, known, maker)
    if _is_integer(known.dtype):
        cause = f"its dtype is {known.dtype}, and only floating-point tensors can require grad"
        more = (Sentence(f"{quoted(ledger, known.site)} made it.", (known.seq,)),) if known.site is not None else ()
        return NoHistory("integer dtype", cause, (known.seq,), more)
    return NoHistory(*_made_without(ledger, known), (known.seq,))


def _made_without(ledger: Ledger, known: Tensor) -> tuple[str, str]:
    """The reason and the cause for a tensor that was not computed from others."""
    place = f" ({ledger.where(known.site)})" if known.site is not None else ""
    if known.origin == "parameter":
        return "created without requires_grad", f"it is a parameter with requires_grad=False{place}"
    if known.origin == "buffer":
        return "buffer", f"it is a buffer of a module{place}, and buffers are not trained"
    if known.origin == "grad":
        return (
            "a gradient",
            f"it is a gradient{place}, and gradients have no history of their own unless create_graph=True",
        )
    if known.site is not None and known.origin in ("created", "result"):
        return "created without requires_grad", f"{quoted(ledger, known.site)} made it without requires_grad=True"
    return "created without requires_grad", f"it came into the program without it{place}"


def _cut(ledger: Ledger, made: Made) -> NoHistory:
    hint = advice(ledger, made)
    more = (Sentence(hint, (made.seq,)),) if hint else ()
    return NoHistory(f"cut: {made.cut or 'unknown'}", cut_text(ledger, made), cut_events(ledger, made), more)


def _from_inputs(ledger: Ledger, flow: Flow, known: Tensor, maker: Made) -> NoHistory:
    """A result whose inputs do not require grad: the nearest cut above it, or that nothing ever did."""
    above = list(flow.upstream(known.id))
    for output, made in above:
        if flow.loses_history(made, output):
            found = _cut(ledger, made)
            return NoHistory(found.reason, found.cause, (maker.seq, *found.events), found.more, maker.site)
    sources = [
        tensor
        for source in dict.fromkeys(operand for _, made in above for operand in made.inputs)
        if (tensor := ledger.tensor(source)) is not None and not _computed(flow, source)
    ]
    more = []
    for source in sources[:SHOWN]:
        name = ledger.name(source.id)
        if source.origin == "created" and source.site is not None and not _is_integer(source.dtype):
            made_it = f"{quoted(ledger, source.site)} made {name or 'an operand'} without requires_grad=True"
            more.append(Sentence(f"{made_it}.", (source.seq,)))
        elif name:
            more.append(Sentence(f"{name} does not require grad.", (source.seq,)))
    cause = "nothing that it was computed from requires grad"
    return NoHistory("inputs without grad", cause, (maker.seq,), tuple(more), maker.site)


def _computed(flow: Flow, tensor: TensorId) -> bool:
    maker = flow.maker(tensor)
    return maker is not None and bool(maker.inputs)


def explain_no_history(
    ledger: Ledger, subject: str, owner: str, known: Tensor, moment: Moment, earlier: tuple[TensorId, ...]
) -> tuple[str, Sentence, list[Sentence]]:
    """The reason that a buffer is None: its tensor does not require grad."""
    found = why_no_history(ledger, known, moment)
    sentences = list(found.more)
    leaf = next((tensor for tensor in reversed(earlier) if _required(ledger, tensor)), None)
    if leaf is not None:
        before = ledger.tensor(leaf)
        assert before is not None
        sentences.append(
            Sentence(
                f"An earlier tensor called {owner} did require grad: {quoted(ledger, before.site)} made it.",
                (before.seq,),
            )
        )
    if found.reason == "created without requires_grad":
        sentences.append(
            Sentence("No backward pass computes a gradient for a tensor that does not require one.", (known.seq,))
        )
    return (
        found.reason,
        Sentence(f"{subject}: {owner} does not require grad; {found.clause(ledger)}.", found.events),
        sentences,
    )


def requires_grad_at(ledger: Ledger, known: Tensor, moment: Moment) -> bool:
    """`requires_grad` of a tensor at a moment."""
    state = known.requires_grad
    for event in ledger.of(RequiresGradChanged):
        if event.tensor == known.id and event.seq <= moment.seq:
            state = event.to
    return state or recorded_write(ledger, known, moment) is not None


def recorded_write(ledger: Ledger, known: Tensor, moment: Moment) -> Operation | None:
    """The last in-place write that autograd recorded: it turns what was a leaf into a result."""
    found = None
    for operation in ledger.of(Operation):
        if operation.seq > moment.seq:
            break
        if operation.in_place and operation.node is not None and known.id in operation.outputs:
            found = operation
    return found


def _is_integer(dtype: str) -> bool:
    return dtype.removeprefix("torch.").startswith(("int", "uint", "bool"))


def _required(ledger: Ledger, tensor: TensorId) -> bool:
    known = ledger.tensor(tensor)
    return known is not None and known.requires_grad
