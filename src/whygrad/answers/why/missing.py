"""Why a grad buffer is None: each of the different reasons, told apart by the ledger."""

from __future__ import annotations

import re

from whygrad.answers.why.answer import Answer, Moment, Sentence
from whygrad.answers.why.buffer import Buffer
from whygrad.answers.why.changes import reset_text
from whygrad.answers.why.flow import Flow
from whygrad.answers.why.history import explain_no_history, recorded_write, requires_grad_at
from whygrad.answers.why.passes import Pass, pass_text, passes_until
from whygrad.answers.why.unreached import explain_unreached
from whygrad.answers.why.words import quoted, several, short_text
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    BackwardBegan,
    GradReturned,
    Raised,
    SiteId,
    StepsFolded,
    Tensor,
    TensorId,
)

Reason = tuple[str, Sentence, list[Sentence]]
"""A reason's name, the headline, and the sentences below it."""

SHOWN = 3

TELLING = ("cut: ", "required too late", "no gradient arrived", "not in the derivative")
"""Reasons that name a line to blame."""


def explain_missing(
    ledger: Ledger, about: str, tensor: TensorId, buffer: Buffer, moment: Moment, earlier: tuple[TensorId, ...] = ()
) -> Answer:
    """The answer for a buffer that is None. `earlier` are tensors that bore the same name before."""
    subject = f"{about} is None at {moment.text}"
    owner = about.removesuffix(".grad")
    reason, headline, sentences = _reason(ledger, subject, owner, tensor, buffer, moment, earlier)
    for folded in ledger.of(StepsFolded):
        if folded.seq <= moment.seq:
            text = f"Steps {folded.first} to {folded.last} were recorded lightly; nothing wrote it there either."
            sentences.append(Sentence(text, (folded.seq,)))
    return Answer(
        about=about, reason=reason, moment=moment, headline=headline, sentences=tuple(sentences), value="None"
    )


def _reason(
    ledger: Ledger,
    subject: str,
    owner: str,
    tensor: TensorId,
    buffer: Buffer,
    moment: Moment,
    earlier: tuple[TensorId, ...],
) -> Reason:
    known = ledger.tensor(tensor)
    if buffer.reset is not None and not buffer.steps:
        return _reset(ledger, subject, owner, tensor, buffer, moment)
    if known is not None and (not known.leaf or recorded_write(ledger, known, moment) is not None):
        return _not_a_leaf(ledger, subject, owner, known, moment, earlier)
    if known is not None and not requires_grad_at(ledger, known, moment):
        return explain_no_history(ledger, subject, owner, known, moment, earlier)
    passes = passes_until(ledger, moment)
    if not passes:
        return _no_backward(ledger, subject, owner, tensor, moment)
    if known is not None and known.seq > passes[-1].seq:
        place = f" at {ledger.where(known.site)}" if known.site is not None else ""
        since = "was made" if known.origin in ("created", "result") else "came into the program"
        last = pass_text(ledger, passes[-1])
        text = f"{subject}: no backward has run since {owner} {since}{place}; the last was {last}."
        return "no backward since", Sentence(text, (passes[-1].seq, known.seq)), []
    return _not_written(ledger, subject, owner, tensor, passes, moment)


# --- reset ------------------------------------------------------------------------------------------


def _reset(ledger: Ledger, subject: str, owner: str, tensor: TensorId, buffer: Buffer, moment: Moment) -> Reason:
    reset = buffer.reset
    assert reset is not None
    held = f"; until then it held {short_text(reset.before)}" if reset.before is not None else ""
    text = f"{subject}: {reset_text(ledger, reset)} reset it{held}"
    since = [entry for entry in passes_until(ledger, moment) if entry.seq > reset.seq]
    if not since:
        return "reset", Sentence(f"{text}, and no backward has run since.", (reset.seq,)), []
    _, headline, sentences = _not_written(ledger, "since then", owner, tensor, tuple(since), moment)
    return (
        "reset",
        Sentence(f"{text}, and no backward has written to it since.", (reset.seq,)),
        [Sentence(_capital(headline.text.removeprefix("since then: ")), headline.events), *sentences],
    )


# --- not a leaf ---------------------------------------------------------------------------------------


def _not_a_leaf(
    ledger: Ledger, subject: str, owner: str, known: Tensor, moment: Moment, earlier: tuple[TensorId, ...]
) -> Reason:
    maker = recorded_write(ledger, known, moment) or Flow(ledger, moment.seq).maker(known.id)
    site = maker.site if maker is not None else known.site if known.origin == "result" else None
    made = f" but the result of {quoted(ledger, site)}" if site is not None else ""
    events = (known.seq,) if maker is None else (known.seq, maker.seq)
    passes = [entry for entry in passes_until(ledger, moment) if entry.seq > known.seq]
    text = f"{subject}: {owner} is not a leaf{made}, and a backward pass keeps the gradients of leaves only."
    sentences = []
    asked = _retain_grad_line(ledger, owner, known)
    if asked and passes:
        sentences.append(
            Sentence(
                f"{owner}.retain_grad() stands at line {asked}; only a backward that runs after it and reaches {owner} "
                f"keeps the gradient (the last one was {pass_text(ledger, passes[-1])}).",
                (passes[-1].seq,),
            )
        )
    leaf = next((ledger.tensor(tensor) for tensor in reversed(earlier) if _is_grad_leaf(ledger, tensor)), None)
    if leaf is not None:
        made_it = quoted(ledger, leaf.site)
        before = f"The leaf that was called {owner} before is another tensor: {made_it} made it."
        advice = (
            "To change a leaf and keep it a leaf, write into it in place under torch.no_grad(), or call "
            ".detach().requires_grad_() on the result."
        )
        sentences += [Sentence(before, (leaf.seq,)), Sentence(advice, (known.seq,))]
    elif not asked:
        sentences.append(Sentence(f"{owner}.retain_grad() before the backward keeps its gradient too.", (known.seq,)))
    if not passes:
        sentences.append(Sentence(f"Besides, no backward has run since {owner} was computed.", (known.seq,)))
    return "not a leaf", Sentence(text, events), sentences


def _is_grad_leaf(ledger: Ledger, tensor: TensorId) -> bool:
    known = ledger.tensor(tensor)
    return known is not None and known.leaf and known.requires_grad


def _retain_grad_line(ledger: Ledger, owner: str, known: Tensor) -> int:
    """The line of the program's text that calls retain_grad() on the tensor by this name; 0 if none does."""
    site = ledger.site(known.site)
    if site is None:
        return 0
    call = re.compile(rf"(?<![\w.]){re.escape(owner)}\.retain_grad\(")
    lines = enumerate((ledger.source(site.path) or "").splitlines(), 1)
    return next((number for number, text in lines if call.search(text)), 0)


# --- no backward, or none that wrote it ---------------------------------------------------------------


def _no_backward(ledger: Ledger, subject: str, owner: str, tensor: TensorId, moment: Moment) -> Reason:
    refused = _refused(ledger, moment)
    if refused is not None:
        where = ledger.where(refused.site)
        text = f"{subject}: the backward at {where} failed ({refused.kind}) before it went back from anything."
        return "backward failed", Sentence(text, (refused.seq,)), _why_it_failed(ledger, refused.site, refused.seq)
    later = next(ledger.of(BackwardBegan), None)
    sentences: list[Sentence] = []
    stopped = next((raised for raised in ledger.of(Raised) if raised.caught is None), None)
    if later is None and stopped is not None:
        text = f"{subject}: no backward had run by then."
        return "no backward", Sentence(text, (stopped.seq,)), _why_it_failed(ledger, stopped.site, moment.seq)[:1]
    if later is None and not ledger.is_over:
        text = f"{subject}: no backward is recorded before the ledger ends; it ends before the program does."
        return "no backward yet", Sentence(text), []
    if later is None:
        text = f"{subject}: no backward pass ran at all."
        sentences.append(
            Sentence("Gradients are computed by backward() (or torch.autograd.grad), never by the forward pass.")
        )
        return "no backward", Sentence(text), sentences
    text = f"{subject}: no backward had run by then; the first one runs at {ledger.where(later.site)}."
    written = next(ledger.history(tensor), None)
    if written is not None:
        sentences.append(Sentence(f"{owner}.grad is first written at {ledger.where(written.site)}.", (written.seq,)))
    return "no backward yet", Sentence(text, (later.seq,)), sentences


def _refused(ledger: Ledger, moment: Moment) -> Raised | None:
    """The last call of backward() that PyTorch refused before it began."""
    found = None
    for raised in ledger.of(Raised):
        site = ledger.site(raised.site)
        if raised.seq <= moment.seq and site is not None and "backward(" in site.code:
            found = raised
    return found


def _not_written(
    ledger: Ledger, subject: str, owner: str, tensor: TensorId, passes: tuple[Pass, ...], moment: Moment
) -> Reason:
    """Passes ran, and none wrote: the last one that tells why."""
    returned = next((event for event in _returned(ledger, tensor, passes)), None)
    plain = [entry for entry in passes if entry.began.call == "backward"]
    if not plain:
        return _only_returned(ledger, subject, owner, passes, returned)
    last = plain[-1]
    if last.error:
        kind = last.error.partition(":")[0]
        text = f"{subject}: {pass_text(ledger, last)} stopped with {kind} before it wrote {owner}.grad."
        ended = last.ended
        assert ended is not None
        sentences = _why_it_failed(ledger, last.began.site, moment.seq)
        return "backward failed", Sentence(text, (last.seq, ended.seq)), sentences
    if last.began.inputs is not None and tensor not in last.began.inputs:
        names = several([ledger.describe(wanted) for wanted in last.began.inputs], SHOWN)
        text = f"{subject}: {pass_text(ledger, last)} was told to write only {names} (inputs=...)."
        return "not among inputs", Sentence(text, (last.seq,)), []
    last, (reason, headline, sentences) = _most_telling(ledger, subject, owner, tensor, plain, moment)
    if returned is not None:
        sentences.append(_return_sentence(ledger, owner, returned))
    if len(plain) > 1:
        rest = [entry for entry in plain if entry is not last]
        others = ", ".join(f"#{entry.began.id}" for entry in rest[:SHOWN]) + (", ..." if len(rest) > SHOWN else "")
        which = "earlier" if last is plain[-1] else "other"
        sentences.append(
            Sentence(f"The {which} passes ({others}) did not write it either.", tuple(entry.seq for entry in rest))
        )
    return reason, headline, sentences


def _most_telling(
    ledger: Ledger, subject: str, owner: str, tensor: TensorId, plain: list[Pass], moment: Moment
) -> tuple[Pass, Reason]:
    """The last pass whose way to the tensor was cut; else the last one. Passes from one line are looked at once."""
    by_place = {entry.began.site: entry for entry in plain}
    newest = sorted(by_place.values(), key=lambda entry: -entry.seq)[:SHOWN]
    found = [(entry, explain_unreached(ledger, subject, owner, tensor, entry, moment)) for entry in newest]
    return next((one for one in found if one[1][0].startswith(TELLING)), found[0])


def _returned(ledger: Ledger, tensor: TensorId, passes: tuple[Pass, ...]) -> list[GradReturned]:
    ids = {entry.began.id for entry in passes}
    return [event for event in ledger.of(GradReturned) if event.tensor == tensor and event.backward in ids]


def _only_returned(
    ledger: Ledger, subject: str, owner: str, passes: tuple[Pass, ...], returned: GradReturned | None
) -> Reason:
    last = passes[-1]
    text = f"{subject}: only {pass_text(ledger, last)} ran, and autograd.grad returns gradients; it never writes .grad."
    sentences = [_return_sentence(ledger, owner, returned)] if returned is not None else []
    if returned is None and last.began.inputs:
        asked = several([ledger.describe(wanted) for wanted in last.began.inputs], SHOWN)
        sentences.append(Sentence(f"It was asked for the gradient of {asked}.", (last.seq,)))
    sentences.append(
        Sentence(f"To fill the buffer, call backward(), or assign the returned gradient to {owner}.grad.", (last.seq,))
    )
    return "returned, not written", Sentence(text, (last.seq,)), sentences


def _return_sentence(ledger: Ledger, owner: str, returned: GradReturned) -> Sentence:
    value = short_text(returned.value)
    return Sentence(
        f"torch.autograd.grad ({ledger.where(returned.site)}) returned {value} for {owner}.", (returned.seq,)
    )


def _why_it_failed(ledger: Ledger, site_id: SiteId | None, until: int) -> list[Sentence]:
    """The story of the error at a line."""
    from whygrad.answers.why.errors import explain_error  # errors tell of gradients, and gradients of errors

    site = ledger.site(site_id)
    if site is None:
        return []
    try:
        error = explain_error(ledger, Moment(seq=until + 1, text="then", path=site.path, line=site.line))
    except BadInput:
        return []
    return [error.headline, *error.sentences]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
