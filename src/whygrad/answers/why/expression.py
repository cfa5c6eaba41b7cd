"""Reads the expression of a question: `w.grad`, `model.0.weight.grad`, `model.training`, `error`."""

from __future__ import annotations

import re

import msgspec

from whygrad.answers.why.answer import Aspect

ASPECTS = {aspect.value: aspect for aspect in Aspect if aspect is not Aspect.VALUE}

_ITEM = re.compile(r"""\[\s*(?:(\d+)|(?:"([^"\]]*)"|'([^'\]]*)'))\s*\]""")


class Wanted(msgspec.Struct, frozen=True):
    """What is asked: a name as the user wrote it, and the aspect that ends it. `error` has an empty name."""

    text: str
    name: str
    aspect: Aspect
    is_error: bool = False


def parse(expression: str) -> Wanted:
    """
    >>> parse("model[0].weight.grad").name, parse("w.grad").aspect.value, parse("loss").aspect.value
    ('model[0].weight', 'grad', 'value')
    """
    text = expression.strip()
    if text in ("error", "the error"):
        return Wanted(text="error", name="", aspect=Aspect.VALUE, is_error=True)
    name, dot, last = text.rpartition(".")
    if dot and name and last in ASPECTS:
        return Wanted(text=text, name=name.strip(), aspect=ASPECTS[last])
    return Wanted(text=text, name=text, aspect=Aspect.VALUE)


def canonical(name: str) -> str:
    """One spelling for names that mean the same: `model[0].weight` and `model.0.weight`, `b['x']` and `b["x"]`.

    >>> canonical("model[0].weight"), canonical("batch['x']")
    ('model.0.weight', 'batch["x"]')
    """
    return _ITEM.sub(_item, name.replace(" ", ""))


def _item(match: re.Match[str]) -> str:
    index, double, single = match.groups()
    if index is not None:
        return f".{index}"
    return f'["{double if double is not None else single}"]'
