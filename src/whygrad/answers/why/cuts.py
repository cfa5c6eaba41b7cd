"""Says where and by what a tensor lost its history, and what to write instead."""

from __future__ import annotations

import re

import msgspec

from whygrad.answers.why.answer import Sentence
from whygrad.answers.why.flow import Made, grad_mode_entry
from whygrad.answers.why.words import code_of, quoted, shortened
from whygrad.ledger import Ledger

GRAD_MODES = {"no_grad": "no_grad", "inference_mode": "inference mode"}
"""The grad modes in which nothing is recorded, as they are said."""


class Cut(msgspec.Struct, frozen=True):
    """A way to lose history: its name, what a line did that used it, and what to do instead."""

    name: str
    clause: str
    instead: str


_TENSORS = "compute with tensors from there on; take numbers out only for printing."
_AS_IT_IS = "use the tensor itself there."
_VALUES = "compute the loss from the values themselves (softmax, gather), not from positions or integers."
_NUMBER = "took a Python number out, and a number has no history"
_ARRAY = "took a NumPy array out, and an array has no history"

CUTS = {
    "detach": Cut("detach()", "detached the value: detach() gives a tensor without history", _AS_IT_IS),
    "detach_": Cut("detach_()", "took the history off the tensor itself", "leave it out."),
    "data": Cut(".data", "took .data, which gives a tensor without history", _AS_IT_IS),
    "item": Cut(".item()", _NUMBER, _TENSORS),
    "float": Cut("float()", _NUMBER, _TENSORS),
    "int": Cut("int()", _NUMBER, _TENSORS),
    "bool": Cut("bool()", _NUMBER, _TENSORS),
    "tolist": Cut(".tolist()", "took Python numbers out, and numbers have no history", _TENSORS),
    "numpy": Cut("a NumPy array", _ARRAY, _TENSORS),
    "array": Cut("a NumPy array", _ARRAY, _TENSORS),
    "asarray": Cut("a NumPy array", _ARRAY, _TENSORS),
    "torch.tensor": Cut(
        "a copy with torch.tensor(...)",
        "copied the values into a new tensor, without their history",
        "use the tensor itself, or put tensors together with torch.stack or torch.cat.",
    ),
    "comparison": Cut(
        "a comparison",
        "is a comparison: its result is true or false, and no gradient passes through that",
        "use something smooth (such as a sigmoid) in place of the comparison.",
    ),
    "argmax": Cut("argmax", "gives positions (integers), and no gradient passes through those", _VALUES),
    "argmin": Cut("argmin", "gives positions (integers), and no gradient passes through those", _VALUES),
    "argsort": Cut("argsort", "gives positions (integers), and no gradient passes through those", _VALUES),
    "integer dtype": Cut("a conversion to integers", "gives integers, and no gradient passes through those", _VALUES),
}
"""What `Operation.cut` can name, apart from the grad modes."""


def cut_text(ledger: Ledger, made: Made) -> str:
    """A clause: what the line did that took the history away."""
    place = f"`{shortened(made.code)}` ({_where(ledger, made)})" if made.code else quoted(ledger, made.site)
    if made.cut in GRAD_MODES:
        who = place
        if made.module and made.module not in code_of(ledger, made.site):
            who = f"{made.module} in {place}"
        return f"{who} ran {_grad_mode(ledger, made)}, so autograd kept no history of it"
    if made.cut in CUTS:
        return f"{place} {CUTS[made.cut].clause}"
    if not made.cut:
        return f"{place} gave a tensor without history"
    return f"{place} cut the history ({made.cut})"


def _grad_mode(ledger: Ledger, made: Made) -> str:
    """`under no_grad (line 6)`, or whatever else had switched recording off."""
    entry = grad_mode_entry(ledger, made)
    mode = GRAD_MODES[made.cut]
    if entry is None:
        return f"under {mode}"
    if entry.by == "set_grad_enabled":
        return f"with grad mode off, set by {quoted(ledger, entry.site)}"
    if entry.by not in code_of(ledger, entry.site):
        return f"under {mode}, entered by the call {quoted(ledger, entry.site)}"
    return f"under {mode}, entered by {quoted(ledger, entry.site)}"


def cut_short(ledger: Ledger, made: Made) -> str:
    """The cut in two words and its line, for a headline: `detach() at line 6`."""
    name = GRAD_MODES.get(made.cut) or (CUTS[made.cut].name if made.cut in CUTS else f"`{code_of(ledger, made.site)}`")
    return f"{name} at {_where(ledger, made)}"


def _where(ledger: Ledger, made: Made) -> str:
    """The place of a computation; of one that only the text shows, the line of that text in the same file."""
    where = ledger.where(made.site)
    return re.sub(r"\d+$", str(made.line), where) if made.line else where


def cut_events(ledger: Ledger, made: Made) -> tuple[int, ...]:
    """The cut itself, and the switch of the grad mode where that was the cause."""
    if made.cut in GRAD_MODES and (entry := grad_mode_entry(ledger, made)) is not None:
        return (entry.seq, made.seq)
    return (made.seq,)


def advice(ledger: Ledger, made: Made) -> str:
    """What to write if the gradient is wanted; empty where that depends on what is meant."""
    wanted = "If the gradient is wanted, "
    if made.cut in GRAD_MODES:
        entry = grad_mode_entry(ledger, made)
        if entry is not None and entry.by == "set_grad_enabled":
            return wanted + "switch recording on again before that line."
        if entry is not None and entry.by not in code_of(ledger, entry.site):
            return wanted + f"take @torch.{entry.by}() off the function."
        return wanted + "run that line outside the block."
    return wanted + CUTS[made.cut].instead if made.cut in CUTS else ""


def cut_sentences(ledger: Ledger, cuts: tuple[Made, ...]) -> list[Sentence]:
    """The nearest cut in full, and the others by their lines."""
    first, *others = cuts
    text = cut_text(ledger, first)
    sentences = [Sentence(text[0].upper() + text[1:] + ".", cut_events(ledger, first))]
    if others:
        places = list(dict.fromkeys(cut_short(ledger, other) for other in others))
        shown = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        sentences.append(
            Sentence(f"Every other way back to it is cut too: {shown}.", tuple(other.seq for other in others))
        )
    if hint := advice(ledger, first):
        sentences.append(Sentence(hint, (first.seq,)))
    return sentences
