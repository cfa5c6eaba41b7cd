"""Why the program (or one of its lines) failed: recognises the error and asks the module that knows its story."""

from __future__ import annotations

from collections.abc import Callable

from whygrad.answers.why.answer import Answer, Moment, Sentence
from whygrad.answers.why.contracts import explain_broken_call, explain_operation
from whygrad.answers.why.failure import Failure, find_failure, headline
from whygrad.answers.why.freed import explain_freed
from whygrad.answers.why.grads import grad_in
from whygrad.answers.why.refusals import (
    explain_gradcheck,
    explain_inference,
    explain_integer_grad,
    explain_leaf_in_place,
    explain_no_grad_fn,
    explain_non_leaf_optimized,
    explain_not_scalar,
    explain_numpy,
    explain_unused,
)
from whygrad.answers.why.versions import explain_version
from whygrad.ledger import Ledger

Reason = tuple[str, Sentence, list[Sentence]]
Explanation = Callable[[Ledger, Failure], Reason]

BY_TEXT: tuple[tuple[str, Explanation], ...] = (
    ("backward through the graph a second time", explain_freed),
    ("directly access saved tensors after they have already been freed", explain_freed),
    ("modified by an inplace operation", explain_version),
    ("does not require grad and does not have a grad_fn", explain_no_grad_fn),
    ("appears to not have been used in the graph", explain_unused),
    ("leaf Variable that requires grad", explain_leaf_in_place),
    ("grad can be implicitly created only for scalar outputs", explain_not_scalar),
    ("Can't call numpy() on Tensor that requires grad", explain_numpy),
    ("can't optimize a non-leaf Tensor", explain_non_leaf_optimized),
    ("Inference tensors cannot be saved for backward", explain_inference),
    ("can require gradients", explain_integer_grad),
    ("Jacobian mismatch", explain_gradcheck),
)
"""PyTorch's words for an error, and who explains it."""


def explain_error(ledger: Ledger, moment: Moment) -> Answer:
    """The error at the moment's line, or the one that ended the program."""
    failure = find_failure(ledger, moment)
    reason, first, sentences = _explain(ledger, failure)
    return Answer(
        about="error",
        reason=reason,
        moment=Moment(seq=failure.seq, text=ledger.where(failure.site), path=moment.path, line=moment.line),
        headline=first,
        sentences=tuple(sentences),
        value=f"{failure.kind}: {failure.first_line}" if failure.first_line else failure.kind,
    )


def _explain(ledger: Ledger, failure: Failure) -> Reason:
    for words, explanation in BY_TEXT:
        if words in failure.text:
            return explanation(ledger, failure)
    if failure.check is not None:
        return _assertion(ledger, failure)
    if "NoneType" in failure.text and (told := _none(ledger, failure)) is not None:
        return told
    if failure.call is not None:
        return explain_broken_call(ledger, failure, failure.call)
    return explain_operation(ledger, failure)


def _assertion(ledger: Ledger, failure: Failure) -> Reason:
    """An assert that did not hold: its sides' values, and the story of a gradient among them."""
    check = failure.check
    assert check is not None
    shown = [f"{text} is {value}" for text, value in check.sides if text != value]
    because = f": {', '.join(shown)}" if shown else ""
    text = headline(ledger, failure, f"`assert {check.code}` does not hold{because}.")
    sentences = []
    if failure.text:
        sentences.append(Sentence(f"The program says: {failure.first_line}", (failure.seq,)))
    answer = grad_in(ledger, check.code, _just_before(ledger, failure))
    if answer is not None:
        sentences += [answer.headline, *answer.sentences]
    return "assertion", Sentence(text, (check.seq, failure.seq)), sentences


def _none(ledger: Ledger, failure: Failure) -> Reason | None:
    """A line that took a gradient for granted which was None."""
    site = ledger.site(failure.site)
    answer = grad_in(ledger, site.code, _just_before(ledger, failure)) if site is not None else None
    if answer is None or answer.value != "None":
        return None
    text = headline(ledger, failure, f"{answer.about} is None there ({failure.first_line.rstrip('.')}).")
    return "gradient is None", Sentence(text, (failure.seq,)), [answer.headline, *answer.sentences]


def _just_before(ledger: Ledger, failure: Failure) -> Moment:
    site = ledger.site(failure.site)
    function = site.function if site is not None else "<module>"
    return Moment(seq=failure.seq, text=ledger.where(failure.site), function=function)
