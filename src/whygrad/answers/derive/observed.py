"""The gradient that one backward gave, as the ledger has it."""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec
import numpy as np

from whygrad.answers.derive.agreement import rounding
from whygrad.answers.derive.arrays import array_of
from whygrad.answers.derive.graph import NotDerivedError
from whygrad.answers.derive.operations.table import Array
from whygrad.ledger import Ledger
from whygrad.ledger.events import GradReturned, GradWritten
from whygrad.ledger.values import Value

Written: TypeAlias = GradWritten | GradReturned

HOOKS = ("register_hook(", "backward_hook(", "register_prehook(", "saved_tensors_hooks(", "register_multi_grad_hook(")
"""Calls by which a program may change gradients, which the ledger does not show one by one."""


class Observed(msgspec.Struct, frozen=True):
    """What a backward gave: `array` where every element was kept, and the statistics in `value` otherwise.

    `scale` is the largest magnitude among the gradient and its terms, `slack` how far the array may be off since
    it was taken as the difference of two states of the buffer. `doubt` says what else may have had a hand in it.
    """

    value: Value
    array: Array | None
    scale: float
    slack: float
    doubt: str

    @property
    def dtype(self) -> str:
        return self.value.dtype


def observed(written: Written) -> Observed:
    """What this backward alone contributed to the gradient.

    The terms are exact where they were recorded; else it is the buffer's difference.
    """
    if isinstance(written, GradReturned):
        if written.value is None:
            raise NotDerivedError("autograd.grad returned None: nothing that it differentiated depends on this tensor")
        value, before, hooked = written.value, None, False
    else:
        value, before, hooked = written.after, written.before, written.hooked
    if "complex" in value.dtype:
        raise NotDerivedError("the gradient is complex")
    array = array_of(value)
    slack = 0.0
    if before is not None:
        earlier = array_of(before)
        if array is None or earlier is None:
            raise NotDerivedError("the gradient was added to a buffer whose elements were not kept")
        slack = 4 * rounding(value.dtype) * max(largest(array), largest(earlier))
        array = array - earlier
    terms = [array_of(term.value) for term in written.contributions]
    known = [term for term in terms if term is not None and array is not None and term.shape == array.shape]
    scale = max([_size(value) if array is None else largest(array), *map(largest, known)])
    if array is not None and known and len(known) == len(terms):
        summed = np.asarray(sum(known))
        if np.allclose(summed, array, rtol=1e-3, atol=slack + 1e-6 * scale):
            array, slack = summed, 0.0
    return Observed(
        value, array, scale, slack, "a hook of the program's may have changed what arrived" if hooked else ""
    )


def hooks(ledger: Ledger) -> str:
    """A sentence when the program's text registers hooks that change gradients on their way."""
    for path in ledger.sources():
        text = ledger.source(path) or ""
        if any(word in text for word in HOOKS):
            return "the program registers hooks, which may have changed the gradient on its way"
    return ""


def largest(array: Array) -> float:
    """The largest finite magnitude."""
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def _size(value: Value) -> float:
    bounds = [abs(float(bound)) for bound in (value.low, value.high) if bound is not None]
    return max((bound for bound in bounds if math.isfinite(bound)), default=0.0)
