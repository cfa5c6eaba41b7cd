"""Why a `.grad` is what it is: the value's story, or the reason that there is none."""

from __future__ import annotations

import re

from whygrad.answers.why.answer import Answer, Aspect, Moment
from whygrad.answers.why.buffer import Light, buffer_at
from whygrad.answers.why.expression import Wanted
from whygrad.answers.why.gradient import explain_gradient
from whygrad.answers.why.missing import explain_missing
from whygrad.answers.why.resolve import Found, resolve
from whygrad.errors import BadInput
from whygrad.ledger import Ledger

_GRAD = re.compile(r"((?:[^\W\d]\w*)(?:\.\w+|\[[^\[\]]*\])*?)\.grad\b(?!_)")


def explain_grad(ledger: Ledger, name: str, found: Found, moment: Moment) -> Answer:
    """The answer for the buffer of the tensor that `name` means."""
    assert found.tensor is not None
    about = f"{name}.grad" if " " not in name else f"the grad of {name}"
    buffer = buffer_at(ledger, found.tensor, moment)
    lightly = bool(buffer.steps) and isinstance(buffer.steps[-1], Light)
    if buffer.value is None and not lightly:
        return explain_missing(ledger, about, found.tensor, buffer, moment, found.earlier)
    return explain_gradient(ledger, about, found.tensor, buffer, moment)


def grad_in(ledger: Ledger, expression: str, moment: Moment) -> Answer | None:
    """The answer for the first `NAME.grad` in an expression of the program's; None where it has none that is known."""
    name = _owner(expression)
    if not name:
        return None
    try:
        found = resolve(ledger, Wanted(text=f"{name}.grad", name=name, aspect=Aspect.GRAD), moment)
    except BadInput:
        return None
    return explain_grad(ledger, name, found, moment) if found.tensor is not None else None


def _owner(expression: str) -> str:
    """The name before the first `.grad` (not `.grad_fn`).

    >>> _owner("float(model[0].weight.grad.norm()) > 1")
    'model[0].weight'
    """
    match = _GRAD.search(expression)
    return match[1] if match is not None else ""
