"""A gradient that something else than a backward pass changed: clipping, scaling, an assignment, a reset."""

from __future__ import annotations

from collections.abc import Sequence

from whygrad.answers.why.answer import Sentence
from whygrad.answers.why.buffer import Buffer, Step
from whygrad.answers.why.terms import all_through, amount, arrived
from whygrad.answers.why.words import code_of, quoted, short_text
from whygrad.ledger import Ledger
from whygrad.ledger.events import HELD, GradChanged, GradReset, GradWritten, Lost

OFTEN = "expressions that ran very often"
"""How the loss begins of what lines did that ran more often than is written out."""


def explain_change(ledger: Ledger, subject: str, buffer: Buffer) -> tuple[str, Sentence, list[Sentence]]:
    """The last change, and what the buffer held before it."""
    change = buffer.changes[-1]
    later = [step for step in buffer.writes if step.seq > change.seq]
    events = tuple(step.seq for step in buffer.steps)
    if change.by == HELD and not later:
        text = f"{subject}: it held that when recording began ({ledger.where(change.site)})"
        return "held", Sentence(f"{text}, and nothing has written to it since.", (change.seq,)), []
    if change.before is None and not later:
        text = f"{subject}: {_who(ledger, change)} assigned it."
        since = Sentence("No backward pass has written to the buffer since.", (change.seq,))
        return "assigned", Sentence(text, (change.seq,)), [since]
    story = [_told(ledger, step) for step in buffer.steps]
    if later:
        added = [f"{short_text(amount(step))} (backward #{step.backward}, {ledger.where(step.site)})" for step in later]
        left = f"{short_text(change.after)} (left by {_who(ledger, change)})"
        if change.by == HELD:
            left = f"{short_text(change.after)} (held when recording began, {ledger.where(change.site)})"
            return "accumulated", Sentence(f"{subject}: {' + '.join([left, *added])}.", events), []
        text = f"{subject}: {' + '.join([left, *added])}."
        return "changed", Sentence(text, events), story
    came = _came_from(ledger, buffer.steps[: buffer.steps.index(change)])
    text = f"{subject}: {_who(ledger, change)} changed it from {short_text(change.before)}{came}."
    return "changed", Sentence(text, events), story if len(story) > 2 else []


def reset_text(ledger: Ledger, reset: GradReset) -> str:
    """`optimizer.zero_grad()` (line 6), or `w.grad = None` (line 22)."""
    code = code_of(ledger, reset.site)
    if code and ("=" in reset.by or reset.by == "assignment" or reset.by.rpartition(".")[2] in code):
        return quoted(ledger, reset.site)
    return f"{reset.by} ({ledger.where(reset.site)})"


def _came_from(ledger: Ledger, steps: Sequence[Step]) -> str:
    writes = [step for step in steps if isinstance(step, GradWritten)]
    if len(writes) != len(steps) or not writes:
        return ""
    if len(writes) == 1:
        parts = arrived(ledger, writes[0])
        way = f" through {all_through(parts)}" if parts and parts[0].through else ""
        return f", which backward #{writes[0].backward} ({ledger.where(writes[0].site)}) had written{way}"
    return f", the sum of {len(writes)} backward passes (#{writes[0].backward} to #{writes[-1].backward})"


def _who(ledger: Ledger, change: GradChanged) -> str:
    if change.by == "unseen" and any(lost.what.startswith(OFTEN) for lost in ledger.of(Lost)):
        noticed = ledger.where(change.site)
        return f"a write that was not recorded, perhaps of a line that ran very often (noticed at {noticed})"
    if change.by == "unseen":
        return f"something that was not seen at work (noticed at {ledger.where(change.site)})"
    return quoted(ledger, change.site) if change.site is not None else change.by


def _told(ledger: Ledger, step: Step) -> Sentence:
    if isinstance(step, GradWritten):
        start = "set it" if step.before is None else f"added {short_text(amount(step))}, which made it"
        text = f"Backward #{step.backward} ({ledger.where(step.site)}) {start} {short_text(step.after)}"
        if step.before is None:
            text = f"Backward #{step.backward} ({ledger.where(step.site)}) set it to {short_text(step.after)}"
        parts = arrived(ledger, step)
        return Sentence(f"{text}, through {all_through(parts)}." if parts else f"{text}.", (step.seq,))
    if isinstance(step, GradChanged):
        text = f"{_who(ledger, step)} changed it from {short_text(step.before)} to {short_text(step.after)}."
        return Sentence(text[0].upper() + text[1:], (step.seq,))
    return Sentence(
        f"Steps {step.event.first} to {step.event.last} were recorded lightly: {step.fold.writes} writes.", (step.seq,)
    )
