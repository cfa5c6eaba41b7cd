"""Answers a question: finds what the expression means at the moment, and asks the module that knows."""

from __future__ import annotations

from whygrad.answers.why.answer import Answer, Aspect, Moment, Target
from whygrad.answers.why.errors import explain_error
from whygrad.answers.why.expression import parse
from whygrad.answers.why.grads import explain_grad
from whygrad.answers.why.line import explain_line
from whygrad.answers.why.modes import explain_module, explain_training
from whygrad.answers.why.moment import after_line, end_of
from whygrad.answers.why.requires import explain_grad_fn, explain_is_leaf, explain_requires_grad
from whygrad.answers.why.resolve import Found, resolve
from whygrad.answers.why.values import explain_value
from whygrad.errors import BadInput
from whygrad.ledger import Ledger


def why(ledger: Ledger, target: str | Target = "", at: tuple[str, int] | None = None) -> Answer:
    """Why `target` is as it is, at the end of the program or just after line `at` (path, line) ran last.

    `target` is an expression of the program's (`w.grad`, `loss`, `model.training`), `error` for the exception,
    or empty for what the line did. A path of "" is the program's own file. Raises `BadInput` for what the
    ledger does not know.
    """
    if ledger.broken:
        raise BadInput(f"nothing can be told of this run: the recording broke down, {ledger.broken}.")
    moment = end_of(ledger) if at is None else after_line(ledger, *at)
    if isinstance(target, Target):
        if ledger.tensor(target.tensor) is None:
            raise BadInput(f"tensor {target.tensor} is not in the ledger.")
        name = ledger.describe(target.tensor)
        return _of_tensor(ledger, name, target.aspect, Found(tensor=target.tensor), moment)
    if not target.strip():
        return explain_line(ledger, moment)
    wanted = parse(target)
    if wanted.is_error:
        return explain_error(ledger, moment)
    found = resolve(ledger, wanted, moment)
    if found.module is not None:
        if wanted.aspect is Aspect.TRAINING:
            return explain_training(ledger, wanted.text, found.module, moment)
        if wanted.aspect is Aspect.VALUE:
            return explain_module(ledger, wanted.text, found.module, moment)
        raise BadInput(
            f"{wanted.text}: {wanted.name} is a module; ask for one of its parameters, or for {wanted.name}.training."
        )
    return _of_tensor(ledger, wanted.name, wanted.aspect, found, moment)


def _of_tensor(ledger: Ledger, name: str, aspect: Aspect, found: Found, moment: Moment) -> Answer:
    tensor = found.tensor
    assert tensor is not None
    if aspect is Aspect.GRAD:
        return explain_grad(ledger, name, found, moment)
    if aspect is Aspect.REQUIRES_GRAD:
        return explain_requires_grad(ledger, name, tensor, moment)
    if aspect is Aspect.GRAD_FN:
        return explain_grad_fn(ledger, name, tensor, moment)
    if aspect is Aspect.IS_LEAF:
        return explain_is_leaf(ledger, name, tensor, moment)
    if aspect is Aspect.TRAINING:
        raise BadInput(f"{name}.training: {name} is a tensor, and only modules have a training flag.")
    return explain_value(ledger, name, tensor, moment)
