"""The grad buffers: what each held when last seen, and what changed since."""

from __future__ import annotations

import weakref
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.tensors import Known, Tensors, version
from whygrad.engines.pytorch.values import Reader, is_zero
from whygrad.ledger.events import GradChanged, GradReset


class Grads:
    """Compares buffers with what they were. All writes that no backward made are found here."""

    def __init__(self, book: Book, reader: Reader, tensors: Tensors) -> None:
        self.book = book
        self.reader = reader
        self.tensors = tensors

    def differs(self, known: Known, grad: Any) -> bool:
        """Whether the buffer is another one, or was written, since it was last seen."""
        if grad is None:
            return known.grad_value is not None
        return known.grad is None or known.grad() is not grad or known.grad_version != version(grad)

    def remember(self, known: Known, grad: Any) -> None:
        """Take the buffer as it is now."""
        if grad is None:
            known.grad, known.grad_value = None, None
            return
        known.grad = weakref.ref(grad)
        known.grad_version = version(grad)
        known.grad_value = self.reader.read(grad)

    def observe(self, tensor: Any, known: Known, by: str, site: int | None) -> bool:
        """Write what happened to `tensor.grad` since it was last seen, as done by `by`. True if something did."""
        if not tensor.is_leaf and not tensor.retains_grad:
            return False
        grad = tensor.grad
        if not self.differs(known, grad):
            return False
        before = known.grad_value
        self.remember(known, grad)
        after = known.grad_value
        if after is None:
            self.book.write(GradReset, site, tensor=known.id, to="none", by=by, before=before)
        elif is_zero(after) and (before is None or not is_zero(before) or by.endswith("zero_grad") or by == "zero_"):
            self.book.write(GradReset, site, tensor=known.id, to="zero", by=by, before=before)
        elif before != after:
            self.book.write(GradChanged, site, tensor=known.id, by=by, before=before, after=after)
        return True

    def observe_all(self, by: str, site: int | None) -> None:
        for tensor, known in self.tensors.live_leaves():
            self.observe(tensor, known, by, site)
