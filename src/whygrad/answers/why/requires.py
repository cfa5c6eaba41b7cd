"""Why a tensor requires grad or not, has a grad_fn or not, is a leaf or not."""

from __future__ import annotations

from whygrad.answers.why.answer import Answer, Moment, Sentence
from whygrad.answers.why.flow import Flow
from whygrad.answers.why.history import recorded_write, requires_grad_at, why_no_history
from whygrad.answers.why.misspelt import misspelt
from whygrad.answers.why.words import origin_text, quoted, several
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import Operation, RequiresGradChanged, Tensor, TensorId

SHOWN = 3


def explain_requires_grad(ledger: Ledger, name: str, tensor: TensorId, moment: Moment) -> Answer:
    """Which line, operand or mode decided `requires_grad`."""
    known = _known(ledger, name, tensor)
    about = f"{name}.requires_grad"
    if not requires_grad_at(ledger, known, moment):
        found = why_no_history(ledger, known, moment)
        text = f"{about} is False at {moment.text}: {found.clause(ledger)}."
        return _answer(about, found.reason, moment, Sentence(text, found.events), "False", found.more)
    reason, why, events = _required(ledger, known, moment)
    text = f"{about} is True at {moment.text}: {why}."
    return _answer(about, reason, moment, Sentence(text, events), "True", tuple(misspelt(ledger, name, known)))


def explain_grad_fn(ledger: Ledger, name: str, tensor: TensorId, moment: Moment) -> Answer:
    """Which node made the tensor, or why it has none."""
    known = _known(ledger, name, tensor)
    about = f"{name}.grad_fn"
    if not known.leaf or recorded_write(ledger, known, moment) is not None:
        return _with_grad_fn(ledger, about, known, moment)
    if requires_grad_at(ledger, known, moment):
        text = f"{about} is None at {moment.text}: {name} is a leaf; {origin_text(ledger, known)}."
        return _answer(about, "leaf", moment, Sentence(text, (known.seq,)), "None")
    found = why_no_history(ledger, known, moment)
    text = f"{about} is None at {moment.text}: {name} has no history; {found.clause(ledger)}."
    return _answer(about, found.reason, moment, Sentence(text, found.events), "None", found.more)


def explain_is_leaf(ledger: Ledger, name: str, tensor: TensorId, moment: Moment) -> Answer:
    """A leaf is what no recorded operation computed."""
    known = _known(ledger, name, tensor)
    about = f"{name}.is_leaf"
    write = recorded_write(ledger, known, moment)
    if write is not None:
        text = f"{about} is False at {moment.text}: {quoted(ledger, write.site)} wrote into it what requires grad."
        return _answer(about, "written", moment, Sentence(text, (known.seq, write.seq)), "False")
    if not known.leaf:
        made = f"{quoted(ledger, known.site)} computed it" if known.origin == "result" else "it was computed earlier"
        text = f"{about} is False at {moment.text}: {made} from a tensor that requires grad."
        return _answer(about, "result", moment, Sentence(text, (known.seq,)), "False")
    if requires_grad_at(ledger, known, moment):
        text = (
            f"{about} is True at {moment.text}: {origin_text(ledger, known)}; it was not computed from other tensors."
        )
        return _answer(about, "made directly", moment, Sentence(text, (known.seq,)), "True")
    found = why_no_history(ledger, known, moment)
    why = f"a tensor that does not require grad counts as a leaf; {found.clause(ledger)}"
    text = f"{about} is True at {moment.text}: {why}."
    return _answer(about, found.reason, moment, Sentence(text, found.events), "True")


def _required(ledger: Ledger, known: Tensor, moment: Moment) -> tuple[str, str, tuple[int, ...]]:
    """(reason, clause, evidence) for a tensor that requires grad."""
    switches = [
        event for event in ledger.of(RequiresGradChanged) if event.tensor == known.id and event.seq <= moment.seq
    ]
    if (write := recorded_write(ledger, known, moment)) is not None:
        by = quoted(ledger, write.site)
        return "written", f"{by} wrote into it in place something that requires grad", (known.seq, write.seq)
    if switches:
        return "switched on", f"{quoted(ledger, switches[-1].site)} switched it on", (switches[-1].seq,)
    if known.origin == "parameter":
        return (
            "parameter",
            "it is a parameter, and parameters require grad unless they are made otherwise",
            (known.seq,),
        )
    if known.origin not in ("created", "result"):
        return "asked for", f"it did so already where it was first seen ({ledger.where(known.site)})", (known.seq,)
    if known.leaf:
        return "asked for", f"{quoted(ledger, known.site)} asked for it", (known.seq,)
    flow = Flow(ledger, moment.seq)
    maker = flow.maker(known.id)
    if maker is None:
        return "operand", f"{quoted(ledger, known.site)} computed it from a tensor that requires grad", (known.seq,)
    sources = [ledger.describe(operand) for operand in maker.inputs if operand > 0 and flow.requires_grad(operand)]
    verb = "requires" if len(sources) == 1 else "require"
    because = f" from {several(sources, SHOWN)}, which {verb} grad" if sources else ""
    return "operand", f"{quoted(ledger, maker.site)} computed it{because}, with grad mode on", (known.seq, maker.seq)


def _with_grad_fn(ledger: Ledger, about: str, known: Tensor, moment: Moment) -> Answer:
    operation = _operation(ledger, known.id, moment)
    site = operation.site if operation is not None else known.site
    node = ledger.node(operation.node) if operation is not None else None
    events = (known.seq,) if operation is None else (known.seq, operation.seq)
    text = f"{about} is {node.name if node else 'a node'} at {moment.text}: {quoted(ledger, site)} made it."
    sentences: tuple[Sentence, ...] = ()
    if operation is None:
        sentences = (
            Sentence("A module's call is recorded as a whole, so the name of its last node is not known.", events),
        )
    elif node is None:
        sentences = (
            Sentence("No backward that was recorded came to it, so the node's own name is not known.", events),
        )
    elif node.saved:
        slots = several([saved.slot for saved in node.saved], SHOWN)
        sentences = (Sentence(f"For its backward it keeps what PyTorch calls {slots}.", (node.seq,)),)
    return _answer(about, "operation", moment, Sentence(text, events), node.name if node else "", sentences)


def _operation(ledger: Ledger, tensor: TensorId, moment: Moment) -> Operation | None:
    """The operation that made the tensor, or wrote it in place last."""
    found = None
    for operation in ledger.of(Operation):
        if operation.seq > moment.seq:
            break
        if tensor in operation.outputs and operation.node is not None and (found is None or operation.in_place):
            found = operation
    return found


def _answer(
    about: str, reason: str, moment: Moment, headline: Sentence, value: str, sentences: tuple[Sentence, ...] = ()
) -> Answer:
    return Answer(about=about, reason=reason, moment=moment, headline=headline, sentences=sentences, value=value)


def _known(ledger: Ledger, name: str, tensor: TensorId) -> Tensor:
    known = ledger.tensor(tensor)
    if known is None:
        raise BadInput(f"{name}: the ledger does not hold this tensor.")
    return known
