"""Which tensor is which: stable ids for tensor objects, what they were last seen as, and their names.

Holds no tensor alive.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.values import Reader, shape
from whygrad.ledger.events import Named, RequiresGradChanged, Tensor, TensorId
from whygrad.ledger.values import INPUT_LIMIT, Value

ELEMENT_LIMIT = 16
"""Members of a list, tuple or dict that get names (`params[0]`)."""


class Known:
    """One tensor as it was last seen.

    `version` is its version counter, `value` what it held at some version, if that was read; `grad` is the buffer
    object seen last (weakly), with its version and value; `form` is the dtype and device of a parameter;
    `thread` is the one that used it last, and the only one that may read its buffer unasked: PyTorch does not
    bear a reading beside what another thread's C++ code does with the same tensor.
    """

    __slots__ = (
        "form", "grad", "grad_value", "grad_version", "id", "leaf", "ref",
        "requires_grad", "shape", "thread", "value", "version",
    )  # fmt: skip

    def __init__(self, id: TensorId, ref: weakref.ref[Any], tensor: Any) -> None:  # noqa: A002
        self.id = id
        self.ref = ref
        self.thread = threading.get_ident()
        self.shape = shape(tensor)
        self.leaf: bool = tensor.is_leaf
        self.requires_grad: bool = tensor.requires_grad
        self.version = version(tensor)
        self.grad: weakref.ref[Any] | None = None
        self.grad_version = 0
        self.grad_value: Value | None = None
        self.value: tuple[int, Value] | None = None
        self.form: tuple[Any, Any] | None = None


class Tensors:
    """The tensors that the ledger has met."""

    def __init__(self, torch: Any, book: Book, reader: Reader) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self._tensor = torch.Tensor
        self._parameter = torch.nn.Parameter
        self._known: dict[int, Known] = {}
        self._by_id: dict[TensorId, Known] = {}
        self._next = itertools.count(1).__next__
        self._holders: dict[tuple[str, str], TensorId] = {}
        self.leaves: dict[TensorId, Known] = {}
        self.retained: dict[TensorId, Known] = {}
        self.met_parameter: Callable[[int | None], None]

    def find(self, tensor: Any) -> Known | None:
        known = self._known.get(id(tensor))
        return known if known is not None and known.ref() is tensor else None

    def alive(self, tensor: TensorId) -> Any:
        """The tensor object of an id, or None if it is gone."""
        known = self._by_id.get(tensor)
        return None if known is None else known.ref()

    def meet(self, tensor: Any, site: int | None, origin: str = "unknown") -> Known:
        """The entry of `tensor`, written to the ledger if it is new."""
        key = id(tensor)
        known = self._known.get(key)
        if known is not None and known.ref() is tensor:
            return known
        known = Known(TensorId(self._next()), self._watch(tensor, key), tensor)
        self._known[key] = self._by_id[known.id] = known
        if known.leaf and known.requires_grad:
            self.leaves[known.id] = known
            self._take_buffer(known, tensor.grad)
        is_parameter = isinstance(tensor, self._parameter)
        if is_parameter:
            origin = "parameter"
            known.form = tensor.dtype, tensor.device
        value = None
        if origin != "result" and tensor.numel() <= INPUT_LIMIT:
            value = self.reader.read(tensor, INPUT_LIMIT)
        self.book.write(
            Tensor,
            site,
            id=known.id,
            shape=known.shape,
            dtype=self.reader.dtype(tensor),
            device=str(tensor.device),
            leaf=known.leaf,
            requires_grad=known.requires_grad,
            origin=origin,
            value=value,
        )
        if is_parameter:
            self.met_parameter(site)
        return known

    def _take_buffer(self, known: Known, grad: Any) -> None:
        """A gradient that was there before the recording met the leaf: nothing happened to it now."""
        if grad is not None:
            known.grad, known.grad_version, known.grad_value = weakref.ref(grad), version(grad), self.reader.read(grad)

    def name(self, known: Known, name: str, scope: str, site: int | None) -> None:
        """From here on the user's code can call it `name` in `scope`."""
        key = (name, scope)
        if self._holders.get(key) == known.id:
            return
        self._holders[key] = known.id
        self.book.write(Named, site, tensor=known.id, name=name, scope=scope)

    def check_flags(self, tensor: Any, known: Known, by: str, site: int | None) -> None:
        """Note a switch of `requires_grad` since the tensor was last seen."""
        requires_grad = tensor.requires_grad
        known.leaf = tensor.is_leaf
        if requires_grad == known.requires_grad:
            return
        known.requires_grad = requires_grad
        if known.leaf:
            self.book.write(RequiresGradChanged, site, tensor=known.id, to=requires_grad, by=by)
            if requires_grad:
                self.leaves[known.id] = known

    def retain(self, tensor: Any, known: Known) -> None:
        """Follow the buffer of a tensor that is no leaf, from here on."""
        if not tensor.is_leaf:
            self.retained[known.id] = known

    def live_retained(self) -> list[tuple[Any, Known]]:
        """The tensors of this thread with a buffer that are no leaves and still there."""
        return [entry for entry in _alive(self.retained) if entry[0].retains_grad] if self.retained else []

    def live_leaves(self) -> list[tuple[Any, Known]]:
        """The leaves of this thread that are still there, and still leaves."""
        return [entry for entry in _alive(self.leaves) if entry[0].is_leaf]

    def members(self, value: Any) -> list[tuple[str, Any]]:
        """(index text, tensor) of the tensors in a list, tuple or dict."""
        if isinstance(value, dict):
            pairs = [(f"[{key!r}]", item) for key, item in itertools.islice(value.items(), ELEMENT_LIMIT)]
            return [(text.replace("'", '"'), item) for text, item in pairs if isinstance(item, self._tensor)]
        first = itertools.islice(value, ELEMENT_LIMIT)
        return [(f"[{position}]", item) for position, item in enumerate(first) if isinstance(item, self._tensor)]

    def _watch(self, tensor: Any, key: int) -> weakref.ref[Any]:
        known, by_id = self._known, self._by_id

        def gone(ref: weakref.ref[Any]) -> None:
            entry = known.get(key)
            if entry is not None and entry.ref is ref:
                del known[key]
                del by_id[entry.id]

        return weakref.ref(tensor, gone)


def _alive(entries: dict[TensorId, Known]) -> list[tuple[Any, Known]]:
    """The entries of this thread (and of threads that are over) whose tensor is still there; the others are dropped."""
    alive = []
    mine = threading.get_ident()
    others: set[int | None] | None = None
    for key, known in list(entries.items()):
        if known.thread != mine:
            if others is None:
                others = {thread.ident for thread in threading.enumerate()}
            if known.thread in others:
                continue
            known.thread = mine
        tensor = known.ref()
        if tensor is None:
            entries.pop(key, None)
        else:
            alive.append((tensor, known))
    return alive


def version(tensor: Any) -> int:
    """The version counter; -1 where there is none (inference tensors)."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return -1


def pointer(tensor: Any) -> int:
    """Where the data lies; 0 where there is none."""
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        return 0
