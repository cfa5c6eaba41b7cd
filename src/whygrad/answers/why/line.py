"""What a line did, when nothing more is asked: its most telling event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from whygrad.answers.why.answer import Answer, Moment, Sentence
from whygrad.answers.why.changes import reset_text
from whygrad.answers.why.errors import explain_error
from whygrad.answers.why.failed_code import root_name
from whygrad.answers.why.modes import explain_module, explain_training
from whygrad.answers.why.terms import all_through, amount, arrived, place_of, sum_of_terms
from whygrad.answers.why.values import explain_value
from whygrad.answers.why.words import code_of, counted, number_text, quoted, several, short_text
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    AnyEvent,
    BackwardBegan,
    BackwardEnded,
    Check,
    Event,
    GradChanged,
    GradModeChanged,
    GradReset,
    GradReturned,
    GradWritten,
    ModeChanged,
    ModuleCalled,
    Operation,
    OptimizerStepped,
    Raised,
    Tensor,
    Update,
)

SHOWN = 6

MODES = {
    "on": "operations are recorded",
    "off": "operations are not recorded",
    "inference": "operations are not recorded, and their results can never be used in a backward",
}

Kind = TypeVar("Kind", bound=Event)


def explain_line(ledger: Ledger, moment: Moment) -> Answer:
    """An error, a backward, a check, a reset, a step, a mode, a call, or the value that it computed; in this order."""
    if not moment.line:
        if next(ledger.of(Raised), None) is not None:
            return explain_error(ledger, moment)
        raise BadInput("an expression is missing: name a gradient (w.grad), a tensor, a module, or a line (FILE:LINE).")
    events = [event for event in ledger.at(moment.path, moment.line) if event.seq <= moment.seq]
    if any(isinstance(event, Raised) or (isinstance(event, BackwardEnded) and event.error) for event in events):
        return explain_error(ledger, moment)
    if (began := _last(events, BackwardBegan)) is not None:
        return _backward(ledger, moment, began, events)
    if (check := _last(events, Check)) is not None:
        return _check(ledger, moment, check)
    if (step := _last(events, OptimizerStepped)) is not None:
        return _step(ledger, moment, step)
    if changes := [event for event in events if isinstance(event, GradReset | GradChanged)]:
        return _changes(ledger, moment, changes)
    if (mode := _last(events, ModeChanged)) is not None:
        module = ledger.module(mode.module)
        path = module.path if module is not None and module.path else "the module"
        return explain_training(ledger, f"{path}.training", mode.module, moment)
    if (switch := _last(events, GradModeChanged)) is not None:
        return _grad_mode(ledger, moment, switch)
    return _computation(ledger, moment, events)


def _computation(ledger: Ledger, moment: Moment, events: Sequence[AnyEvent]) -> Answer:
    """A line that only computed: the module that it called, or the value that it gave."""
    call = _last([event for event in events if isinstance(event, ModuleCalled) and event.depth == 0], ModuleCalled)
    operation = _last(events, Operation)
    if call is not None and (operation is None or call.seq > operation.seq):
        module = ledger.module(call.module)
        if module is not None:
            return explain_module(ledger, module.path or module.kind, module.id, moment)
    if operation is not None and operation.outputs:
        output = operation.outputs[0]
        return explain_value(ledger, ledger.name(output) or f"`{code_of(ledger, operation.site)}`", output, moment)
    if operation is not None:
        given = several([ledger.describe(operand.tensor) for operand in operation.inputs if operand.tensor is not None])
        text = f"{quoted(ledger, operation.site)} took a value out of {given}; the history ends there."
        return _answer(moment, "taken out", Sentence(text, (operation.seq,)))
    if (made := _last(events, Tensor)) is not None:
        return explain_value(ledger, ledger.describe(made.id), made.id, moment)
    raise BadInput(f"{moment.text}: nothing that the ledger can tell of happened there.")


def _answer(moment: Moment, reason: str, headline: Sentence, sentences: Sequence[Sentence] = ()) -> Answer:
    return Answer(about=moment.text, reason=reason, moment=moment, headline=headline, sentences=tuple(sentences))


def _last(events: Sequence[AnyEvent], kind: type[Kind]) -> Kind | None:
    return next((event for event in reversed(events) if isinstance(event, kind)), None)


# --- what happened ------------------------------------------------------------------------------------


def _backward(ledger: Ledger, moment: Moment, began: BackwardBegan, events: Sequence[AnyEvent]) -> Answer:
    root = root_name(ledger, began)
    value = f" = {short_text(began.root_value)}" if began.root_value is not None else ""
    written = list(ledger.contributions(began.id))
    done = f"wrote {counted(len(written), 'buffer')}"
    if began.call != "backward":
        done = f"returned {counted(len(written), 'gradient')}"
    goes = f"it went back from {root}{value} through {counted(began.nodes, 'node')} and {done}"
    text = f"{quoted(ledger, began.site)} ran {began.call} #{began.id}: {goes}."
    sentences = [_effect(ledger, event) for event in written[:SHOWN]]
    if len(written) > SHOWN:
        more = written[SHOWN:]
        sentences.append(Sentence(f"And {len(more)} more.", tuple(event.seq for event in more)))
    ended = next((event for event in events if isinstance(event, BackwardEnded) and event.id == began.id), None)
    if began.retain_graph:
        sentences.append(Sentence("It kept the graph (retain_graph=True).", (began.seq,)))
    elif ended is not None and ended.freed:
        sentences.append(Sentence(f"It freed what {counted(len(ended.freed), 'node')} had saved.", (ended.seq,)))
    return _answer(moment, "backward", Sentence(text, (began.seq,)), sentences)


def _effect(ledger: Ledger, event: GradWritten | GradReturned) -> Sentence:
    """What one pass wrote into one buffer, or returned for one tensor."""
    owner = ledger.describe(event.tensor)
    parts = arrived(ledger, event)
    if isinstance(event, GradReturned):
        value, text = event.value, f"For {owner} it returned {short_text(event.value)}"
    elif event.before is None:
        value, text = event.after, f"{owner}.grad: None -> {short_text(event.after)}"
    else:
        value, text = amount(event), f"{owner}.grad: {short_text(event.before)} -> {short_text(event.after)}"
    if len(parts) > 1:
        text += f"; {short_text(value)} = {sum_of_terms(ledger, parts)}"
    elif parts and parts[0].through:
        more = f"{short_text(value)} more" if isinstance(event, GradWritten) and event.before is not None else ""
        text += f", {more}{' ' if more else ''}through {all_through(parts)}{place_of(ledger, parts[0])}"
    return Sentence(f"{text}.", (event.seq,))


def _check(ledger: Ledger, moment: Moment, check: Check) -> Answer:
    shown = [f"{text} is {value}" for text, value in check.sides if text != value]
    code = code_of(ledger, check.site)
    text = code if code.startswith("assert") else f"assert {code}"
    verdict = f"{'held' if check.held else 'failed'}{': ' + ', '.join(shown) if shown else ''}"
    headline = Sentence(f"`{text}` ({ledger.where(check.site)}) {verdict}.", (check.seq,))
    return _answer(moment, "check held" if check.held else "check failed", headline)


def _changes(ledger: Ledger, moment: Moment, changes: Sequence[GradReset | GradChanged]) -> Answer:
    last = changes[-1]
    same = [
        change for change in changes if type(change) is type(last) and (change.by, change.step) == (last.by, last.step)
    ]
    names = several([ledger.describe(change.tensor) for change in same])
    reason = "changed"
    text = f"{quoted(ledger, last.site)} changed the grad of {names}."
    if isinstance(last, GradReset):
        reason = "reset"
        text = f"{reset_text(ledger, last)} set the grad of {names} to {'None' if last.to == 'none' else 'zeros'}."
    sentences = []
    for change in same[:SHOWN]:
        owner = f"{ledger.describe(change.tensor)}.grad"
        became = f" -> {short_text(change.after)}" if isinstance(change, GradChanged) else ""
        held = (
            f"{owner}: {short_text(change.before)}{became}."
            if became
            else f"{owner} had been {short_text(change.before)}."
        )
        sentences.append(Sentence(held, (change.seq,)))
    return _answer(moment, reason, Sentence(text, tuple(change.seq for change in same)), sentences)


def _step(ledger: Ledger, moment: Moment, step: OptimizerStepped) -> Answer:
    optimizer = ledger.optimizer(step.optimizer)
    kind = optimizer.kind if optimizer is not None else "an optimizer"
    moved = sum(update.changed for update in step.updates)
    held = counted(len(step.updates) + len(step.skipped), "parameter")
    text = f"{quoted(ledger, step.site)} made a step of {kind}: it changed {moved} of {held}."
    sentences = []
    for update in step.updates[:SHOWN]:
        effect = _moved(update) if update.changed else "did not move by a bit"
        told = f"{ledger.describe(update.tensor)}, with grad {short_text(update.grad)}, {effect}."
        sentences.append(Sentence(told, (step.seq,)))
    if step.skipped:
        names = several([ledger.describe(tensor) for tensor in step.skipped])
        sentences.append(Sentence(f"It skipped {names}: their grad was None.", (step.seq,)))
    return _answer(moment, "step", Sentence(text, (step.seq,)), sentences)


def _grad_mode(ledger: Ledger, moment: Moment, change: GradModeChanged) -> Answer:
    by, verb = quoted(ledger, change.site), "entered" if change.entered else "left"
    text = f"{by} {verb} {change.by}: from then on {MODES.get(change.mode, change.mode)}."
    later = (event for event in ledger.of(GradModeChanged) if event.seq > change.seq and event.site == change.site)
    left = next((event for event in later if not event.entered), None) if change.entered else None
    sentences = []
    if left is not None:
        sentences.append(Sentence(f"At the end of the block {MODES.get(left.mode, left.mode)} again.", (left.seq,)))
    return _answer(moment, "grad mode", Sentence(text, (change.seq,)), sentences)


def _moved(update: Update) -> str:
    return "was changed" if update.change is None else f"moved by {number_text(update.change)} (norm)"
