"""Why a gradient has the value that it has: every write since the buffer was last empty, with its terms."""

from __future__ import annotations

from collections.abc import Sequence

from whygrad.answers.why.answer import Answer, Moment, Sentence
from whygrad.answers.why.arithmetic import close, total
from whygrad.answers.why.buffer import Buffer, Light
from whygrad.answers.why.chain import explain_chain
from whygrad.answers.why.changes import explain_change, reset_text
from whygrad.answers.why.hidden import explain_hidden
from whygrad.answers.why.passes import pass_text, passes_until
from whygrad.answers.why.strange import explain_strange
from whygrad.answers.why.terms import all_through, amount, arrived, place_of, sum_of_terms, uses_text
from whygrad.answers.why.words import counted, is_spelled_out, is_zero, number_text, short_text, value_text
from whygrad.ledger import Ledger
from whygrad.ledger.events import GradReset, GradWritten, OptimizerStepped, TensorId

WRITES_SHOWN = 4
"""Backward passes that the headline spells out one by one."""

FEW = 3
"""Elements of values that many terms of one sum may have."""

LONG = 300
"""Characters of such a sum; a longer one is told by what its terms share."""


def explain_gradient(ledger: Ledger, about: str, tensor: TensorId, buffer: Buffer, moment: Moment) -> Answer:
    """The answer for a buffer that holds something."""
    if buffer.light and isinstance(buffer.steps[-1], Light):
        return _lightly(ledger, about, tensor, buffer, moment)
    subject = f"{about} is {value_text(buffer.value)} at {moment.text}"
    if buffer.changes:
        reason, headline, sentences = explain_change(ledger, subject, buffer)
    elif not buffer.writes:
        reason, headline, sentences = _zeroed(ledger, subject, buffer)
    elif len(buffer.writes) == 1 and not buffer.light and buffer.found is None:
        reason, headline, sentences = _written_once(ledger, subject, buffer)
    else:
        reason, headline, sentences = _accumulated(ledger, subject, buffer)
    strange = explain_strange(ledger, buffer, moment)
    sentences += strange or explain_chain(ledger, buffer)
    sentences += explain_hidden(ledger, buffer)
    sentences += _failed_since(ledger, tensor, buffer, moment)
    return Answer(
        about=about,
        reason=reason,
        moment=moment,
        headline=headline,
        sentences=tuple(sentences),
        value=value_text(buffer.value),
    )


# --- one backward ---------------------------------------------------------------------------------


def _written_once(ledger: Ledger, subject: str, buffer: Buffer) -> tuple[str, Sentence, list[Sentence]]:
    written = buffer.writes[0]
    parts = arrived(ledger, written)
    by = f"backward #{written.backward} ({ledger.where(written.site)})"
    onto = " onto the zeros that were there" if is_zero(written.before) else ""
    verb = "added it" if onto else "set it"
    if len(parts) > 1 and is_spelled_out(written.after):
        text = f"{subject}, from {by}{onto}: {short_text(amount(written))} = {sum_of_terms(ledger, parts)}."
    elif len(parts) > 1:
        text = f"{subject}; {by} added up {sum_of_terms(ledger, parts)}{onto}."
    elif parts and parts[0].times > 1:
        way = f"{all_through(parts)}{place_of(ledger, parts[0])}"
        text = f"{subject}: {by} {verb}{onto}, through {way}: {uses_text(parts[0])}."
    elif parts and parts[0].through:
        text = f"{subject}: {by} {verb}{onto}, through {all_through(parts)}{place_of(ledger, parts[0])}."
    else:
        text = f"{subject}: {by} {verb}{onto}."
    sentences = _hooked(ledger, written)
    if buffer.reset is not None and (sentence := _emptied_before(ledger, buffer.reset)) is not None:
        sentences.append(sentence)
    return "written", Sentence(text, (written.seq,)), sentences


# --- several backwards ----------------------------------------------------------------------------


def _accumulated(ledger: Ledger, subject: str, buffer: Buffer) -> tuple[str, Sentence, list[Sentence]]:
    writes = buffer.writes
    events = tuple(step.seq for step in buffer.steps)
    if buffer.light:
        count = sum(light.fold.writes for light in buffer.light)
        story = (
            f"{counted(len(writes), 'recorded backward pass', 'recorded backward passes')} and {count} more in lightly "
        )
        story += "recorded steps added to it"
    elif len(writes) <= WRITES_SHOWN and len(texts := " + ".join(_added(ledger, written) for written in writes)) < LONG:
        spelled = all(is_spelled_out(amount(written)) for written in writes)
        if buffer.found is not None:
            texts = f"{short_text(buffer.found)} ({found_text(ledger)}) + {texts}"
            spelled = spelled and is_spelled_out(buffer.found)
        story = texts if spelled else f"the sum of {len(writes) + (buffer.found is not None)} gradients, {texts}"
    else:
        story = f"the sum of {_many(ledger, writes)}"
        if buffer.found is not None:
            story += f", on top of {short_text(buffer.found)} ({found_text(ledger)})"
    since = "; nothing reset the buffer between" if len(writes) + bool(buffer.found) + bool(buffer.light) > 1 else ""
    zeros = ", after it had been filled with zeros" if is_zero(writes[0].before) else ""
    text = f"{subject}: {story}{since}{zeros}."
    sentences = []
    for written in writes[:WRITES_SHOWN]:
        parts = arrived(ledger, written)
        if len(parts) > 1:
            whole = f"{short_text(amount(written))} = {sum_of_terms(ledger, parts)}"
            sentences.append(
                Sentence(f"Backward #{written.backward} ({ledger.where(written.site)}): {whole}.", (written.seq,))
            )
        sentences += _hooked(ledger, written)
    sentences.append(
        Sentence("backward() adds into .grad; only a reset (zero_grad, or .grad = None) starts it afresh.", events)
    )
    sentences += _steps_between(ledger, writes)
    if buffer.reset is not None and (sentence := _emptied_before(ledger, buffer.reset)) is not None:
        sentences.append(sentence)
    return "accumulated", Sentence(text, events), sentences


def _added(ledger: Ledger, written: GradWritten) -> str:
    """`20 (backward #1, line 9, through w * 2.0)`."""
    parts = arrived(ledger, written)
    way = f", through {all_through(parts)}" if parts and parts[0].through else ""
    return f"{short_text(amount(written))} (backward #{written.backward}, {ledger.where(written.site)}{way})"


def _many(ledger: Ledger, writes: Sequence[GradWritten]) -> str:
    """Many passes: what they share is said once."""
    amounts = [amount(written) for written in writes]
    places = list(dict.fromkeys(ledger.where(written.site) for written in writes))
    ways = list(dict.fromkeys(all_through(arrived(ledger, written)) for written in writes))
    where = places[0] if len(places) == 1 else f"{len(places)} lines, {places[0]} first"
    way = f", through {ways[0]}" if len(ways) == 1 and ways[0] else ""
    passes = f"{len(writes)} backward passes (#{writes[0].backward} to #{writes[-1].backward}, {where}{way})"
    if all(close(amounts[0], each) for each in amounts):
        return f"{passes}, {short_text(amounts[0])} each"
    if amounts[0] is not None and amounts[0].count <= FEW and is_spelled_out(amounts[0]):
        first = " + ".join(short_text(each) for each in amounts[:3])
        return f"{passes}: {first} + ... + {short_text(amounts[-1])}"
    norms = [norm for each in amounts if each is not None and (norm := each.magnitude) is not None]
    return f"{passes}, each of norm {number_text(min(norms))} to {number_text(max(norms))}" if norms else passes


def _steps_between(ledger: Ledger, writes: Sequence[GradWritten]) -> list[Sentence]:
    """That an optimizer used the buffer before it was whole."""
    used = [
        step
        for step in ledger.of(OptimizerStepped)
        if writes[0].seq < step.seq < writes[-1].seq
        and any(update.tensor == writes[0].tensor for update in step.updates)
    ]
    if not used:
        return []
    times = "" if len(used) == 1 else f" {len(used)} times"
    where = ledger.where(used[0].site)
    text = f"An optimizer stepped{times} between them ({where}), so it used what earlier steps had left."
    return [Sentence(text, tuple(step.seq for step in used[:WRITES_SHOWN]))]


# --- zeros, light steps ---------------------------------------------------------------------------


def _zeroed(ledger: Ledger, subject: str, buffer: Buffer) -> tuple[str, Sentence, list[Sentence]]:
    reset = buffer.reset
    if reset is None:
        return "unknown", Sentence(f"{subject}; what wrote it was not recorded."), []
    held = f" (it held {short_text(reset.before)})" if reset.before is not None else ""
    text = f"{subject}: {reset_text(ledger, reset)} set it to zeros{held}, and no backward has written to it since."
    return "zeroed", Sentence(text, (reset.seq,)), []


def _lightly(ledger: Ledger, about: str, tensor: TensorId, buffer: Buffer, moment: Moment) -> Answer:
    light = buffer.light[-1]
    fold = light.fold
    known = ""
    if fold.sampled:
        first, last = number_text(fold.norm_first), number_text(fold.norm_last)
        known = f"; its norm was {first} in the one step that was looked at"
        if fold.sampled > 1:
            known = f"; in the {fold.sampled} steps that were looked at its norm went from {first} to {last}"
    text = (
        f"{about} at {moment.text} was not recorded one by one: in steps {light.event.first} to {light.event.last} "
        f"it was written {fold.writes} times and reset {fold.resets} times{known}."
    )
    hint = Sentence("Every write is recorded where the program is run in full depth.", (light.seq,))
    before = [event for event in ledger.history(tensor) if event.seq < light.seq and isinstance(event, GradWritten)]
    sentences: tuple[Sentence, ...] = (hint,)
    if before:
        parts = arrived(ledger, before[-1])
        way = f", through {all_through(parts)}" if parts and parts[0].through else ""
        by = f"backward #{before[-1].backward} ({ledger.where(before[-1].site)})"
        told = f"The last write recorded in full was {by}: {short_text(before[-1].after)}{way}."
        sentences = (Sentence(told, (before[-1].seq,)), hint)
    return Answer(
        about=about,
        reason="recorded lightly",
        moment=moment,
        headline=Sentence(text, (light.seq,)),
        sentences=sentences,
    )


def found_text(ledger: Ledger) -> str:
    """What is known of a gradient that was there before the first write that was recorded."""
    if ledger.header.kind == "block":
        return "there before the recording saw the tensor"
    return "there already; what put it there was not recorded"


# --- shared ---------------------------------------------------------------------------------------


def _emptied_before(ledger: Ledger, reset: GradReset) -> Sentence | None:
    if reset.before is None or reset.to == "zero":
        return None
    text = f"Before that, {reset_text(ledger, reset)} had emptied the buffer, which held {short_text(reset.before)}."
    return Sentence(text, (reset.seq,))


def _hooked(ledger: Ledger, written: GradWritten) -> list[Sentence]:
    if not written.hooked:
        return []
    came = total([part.value for part in written.contributions]) if written.contributions else None
    added = amount(written)
    by = f"backward #{written.backward} ({ledger.where(written.site)})"
    if came is not None and close(came, added):
        return [Sentence(f"A hook on the tensor saw the gradient of {by} and left it as it was.", (written.seq,))]
    sizes = f": {short_text(came)} arrived, {short_text(added)} was written" if came is not None else ""
    return [Sentence(f"A hook on the tensor replaced the gradient of {by}{sizes}.", (written.seq,))]


def _failed_since(ledger: Ledger, tensor: TensorId, buffer: Buffer, moment: Moment) -> list[Sentence]:
    """Passes that were to write the buffer too, and failed."""
    last = buffer.steps[-1].seq if buffer.steps else 0
    failed = [
        entry
        for entry in passes_until(ledger, moment)
        if entry.error and entry.seq > last and tensor in entry.began.leaves and entry.ended is not None
    ]
    if not failed:
        return []
    entry = failed[0]
    kind = entry.error.partition(":")[0]
    text = f"{pass_text(ledger, entry)} would have added to it, but failed ({kind})."
    return [Sentence(text[0].upper() + text[1:], tuple(entry.ended.seq for entry in failed if entry.ended is not None))]
