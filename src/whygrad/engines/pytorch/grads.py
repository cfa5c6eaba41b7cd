"""The grad buffers: what each held when last seen, and what changed since."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.tensors import Known, Tensors, pointer, version
from whygrad.engines.pytorch.values import Reader, is_zero
from whygrad.ledger.events import GradChanged, GradReset
from whygrad.ledger.values import Number


class Grads:
    """Compares buffers with what they were. All writes that no backward made are found here.

    While a backward runs, `settle` is called first: what it wrote to a buffer so far is its own.
    """

    def __init__(self, book: Book, reader: Reader, tensors: Tensors) -> None:
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.settle: Callable[[Any, Known], None] | None = None
        self.quiet: Callable[[], AbstractContextManager[Callable[[Known], bool]]]
        self._owners: dict[int, Known] | None = None

    def differs(self, known: Known, grad: Any) -> bool:
        """Whether the buffer is another one, or was written, since it was last seen."""
        if grad is None:
            return known.grad_value is not None
        return known.grad is None or known.grad() is not grad or known.grad_version != version(grad)

    def remember(self, known: Known, grad: Any) -> None:
        """Take the buffer as it is now."""
        self._owners = None
        if grad is None:
            known.grad, known.grad_value = None, None
            return
        known.grad = weakref.ref(grad)
        known.grad_version = version(grad)
        value = known.grad_value = self.reader.read(grad)
        if value.nan or value.inf:
            self.reader.alert = True

    def observe(self, tensor: Any, known: Known, by: str, site: int | None, *, closely: bool = False) -> bool:
        """Write what happened to `tensor.grad` since it was last seen, as done by `by`. True if something did.

        `closely` compares the values even if the version counter says that nothing was written.
        """
        if not tensor.is_leaf and not tensor.retains_grad:
            return False
        if self.settle is not None:
            self.settle(tensor, known)
        grad = tensor.grad
        if not self.differs(known, grad) and not (closely and grad is not None):
            return False
        before = known.grad_value
        self.remember(known, grad)
        after = known.grad_value
        if after is None:
            self.book.write(GradReset, site, tensor=known.id, to="none", by=by, before=before)
        elif before == after and not by.endswith("zero_grad") and by != "zero_":
            return False
        elif is_zero(after):
            self.book.write(GradReset, site, tensor=known.id, to="zero", by=by, before=before)
        else:
            self.book.write(GradChanged, site, tensor=known.id, by=by, before=before, after=after)
        return True

    def observe_all(self, by: str, site: int | None, *, closely: bool = False) -> None:
        with self.quiet() as readable:
            for tensor, known in (*self.tensors.live_leaves(), *self.tensors.live_retained()):
                if readable(known):
                    self.observe(tensor, known, by, site, closely=closely)

    def remember_all(self) -> None:
        """Take every buffer as it is now."""
        with self.quiet() as readable:
            for tensor, known in self.tensors.live_leaves():
                if readable(known):
                    self.remember(known, tensor.grad)

    def norms(self) -> list[tuple[Known, Number]]:
        """The norm of every buffer."""
        with self.quiet() as readable:
            return [
                (known, self.reader.norm(grad))
                for tensor, known in self.tensors.live_leaves()
                if readable(known) and (grad := tensor.grad) is not None
            ]

    def observe_these(self, tensors: Iterable[Any], by: str, site: int | None) -> None:
        """Observe the buffers of tensors that the program has just touched on this thread."""
        thread = threading.get_ident()
        for tensor in tensors:
            known = self.tensors.find(tensor)
            if known is not None:
                known.thread = thread
                self.observe(tensor, known, by, site)

    def written(self, tensor: Any, by: str, site: int | None, *, closely: bool = False) -> bool:
        """The memory of `tensor` was written: whether that is some leaf's buffer. If so, writes what it did."""
        owner = self.owner(tensor)
        if owner is None:
            return False
        self.observe(owner.ref(), owner, by, site, closely=closely)
        return True

    def owner(self, tensor: Any) -> Known | None:
        """The leaf whose buffer lies in the memory of `tensor` (the buffer itself, a view or an alias of it)."""
        base = tensor._base
        return self.holder(pointer(tensor if base is None else base))

    def holder(self, place: int) -> Known | None:
        """The leaf whose buffer starts at this address."""
        if self._owners is None:
            with self.quiet() as readable:
                self._owners = {
                    pointer(grad): known
                    for leaf, known in (*self.tensors.live_leaves(), *self.tensors.live_retained())
                    if readable(known) and (grad := leaf.grad) is not None
                }
        known = self._owners.get(place) if place else None
        if known is None:
            return None
        leaf = known.ref()
        grad = None if leaf is None else leaf.grad
        return known if grad is not None and pointer(grad) == place else None
