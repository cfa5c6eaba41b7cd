"""In-place writes into data: who brought which tensor to which version. Grad buffers are the affair of `grads`.

A write is found when the version counter of a tensor that somebody looks at has moved. What moved it is the
operation that just ran if it writes, else a noted write into the same memory, else something unseen.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from whygrad.engines.book import Book
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.tensors import Known, Tensors, pointer, version
from whygrad.engines.pytorch.values import Reader
from whygrad.ledger.events import DataChanged, SiteId

LOG_LIMIT = 10_000
"""Writes that are remembered for the version error that may follow."""


class Written(msgspec.Struct, frozen=True, eq=False):
    """A write: into which tensor and memory, which version came of it, who did it and where."""

    known: Known
    memory: int
    version: int
    by: str
    site: int | None


class Writes:
    """Notes the in-place writes of one program."""

    def __init__(self, book: Book, reader: Reader, tensors: Tensors, grads: Grads) -> None:
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.grads = grads
        self._log: deque[Written] = deque(maxlen=LOG_LIMIT)
        self._pointers: dict[int, Known] = {}
        self._counted = 0

    def observe(self, tensor: Any, known: Known, by: str, site: int | None) -> bool:
        """Note a write since the tensor was last seen, as done by `by`; "" if what ran just now writes nothing.

        Returns whether `by` wrote.
        """
        if version(tensor) == known.version:
            return False
        if by:
            self.note(tensor, known, by, site)
            return True
        earlier = self._explaining(tensor, known)
        if earlier is not None:
            self._tell(tensor, known, earlier.by, earlier.site)
        elif not self.grads.written(tensor, "unseen", site):
            self.note(tensor, known, "unseen", site)
        known.version = version(tensor)
        return False

    def note(self, tensor: Any, known: Known, by: str, site: int | None) -> None:
        """`by` wrote into `tensor`."""
        base = tensor._base
        if not self.grads.written(tensor, by, site):
            self._log.append(Written(known, memory(tensor), version(tensor), by, site))
            self._tell(tensor, known, by, site)
            owner = None if base is None else self.tensors.find(base)
            if owner is not None and owner.version != version(base):
                self._tell(base, owner, by, site)
                owner.version = version(base)
            leaf = self._leaf_behind(tensor if base is None else base)
            if leaf is not None and leaf is not known and leaf is not owner:
                self._tell_leaf(leaf.ref(), leaf, by, site)
        known.version = version(tensor)

    def hidden(self, tensor: Any, known: Known, by: str, site: int | None) -> None:
        """`by` wrote into `tensor` in a way that its version counter does not show."""
        known.value = None
        self._tell(tensor, known, by, site, hidden=True)
        known.version = version(tensor)

    def stepped(self, tensor: Any, known: Known, by: str, site: int | None) -> bool:
        """An optimizer is done with `tensor`: whether it wrote. The step itself tells how far it moved."""
        now = version(tensor)
        if now == known.version:
            return False
        known.version = now
        self._log.append(Written(known, 0, now, by, site))
        return True

    def writer(self, tensor: Any, expected: int) -> SiteId | None:
        """Where the first write after version `expected` was made."""
        place = memory(tensor)
        for written in self._log:
            if written.version > expected and self._same(written, tensor, place):
                return None if written.site is None else self.book.site(written.site)
        return None

    def _tell_leaf(self, tensor: Any, leaf: Known, by: str, site: int | None) -> None:
        """A leaf was written through an alias: `w.detach()` shares its version counter, `w.data` does not."""
        if version(tensor) == leaf.version:
            self.hidden(tensor, leaf, f".data.{by}", site)
        else:
            self._tell(tensor, leaf, by, site)
            leaf.version = version(tensor)

    def _leaf_behind(self, tensor: Any) -> Known | None:
        """The leaf of which `tensor` is an alias (`w.data`, `w.detach()`)."""
        if tensor.requires_grad:
            return None
        leaves = self.tensors.leaves
        if len(leaves) != self._counted:
            self._counted = len(leaves)
            self._pointers = {pointer(leaf): known for leaf, known in self.tensors.live_leaves()}
        place = pointer(tensor)
        known = self._pointers.get(place) if place else None
        leaf = None if known is None else known.ref()
        return known if leaf is not None and leaf is not tensor and pointer(leaf) == place else None

    def _explaining(self, tensor: Any, known: Known) -> Written | None:
        """The noted write, through another tensor of the same memory, that brought `tensor` where it is."""
        place = memory(tensor)
        for written in reversed(self._log):
            if written.version <= known.version:
                continue
            if written.known is not known and self._same(written, tensor, place):
                return written
        return None

    def _same(self, written: Written, tensor: Any, place: int) -> bool:
        if written.known.ref() is tensor:
            return True
        if written.memory:
            return written.memory == place
        other = written.known.ref()
        return other is not None and place != 0 and memory(other) == place

    def _tell(self, tensor: Any, known: Known, by: str, site: int | None, hidden: bool = False) -> None:
        self.book.write(
            DataChanged,
            site,
            tensor=known.id,
            by=by,
            version_before=known.version,
            version=version(tensor),
            hidden=hidden,
            after=self.reader.small(tensor),
        )


def memory(tensor: Any) -> int:
    """Where the storage begins that `tensor` lies in; 0 where there is none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0
