"""Expressions of the user's code that give tensors, or take values out of them: what they did to the graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.graph import Graph, Used
from whygrad.engines.pytorch.operands import Gathered, Operands
from whygrad.engines.pytorch.tensors import Known, Tensors, pointer, version
from whygrad.engines.pytorch.values import Reader, shape
from whygrad.engines.pytorch.writes import Writes
from whygrad.execute.sites import Child, Place, SiteTable
from whygrad.ledger.events import Operand, Operation, TensorId

SITE_LIMIT = 200
"""One expression is written out at most this often (in depth `auto`)."""

COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
FLATTENING = frozenset({"argmax", "argmin", "argsort"})

WRITING = ("torch.nn.functional.", "torch.nn.init.")
"""Functions that may write into what they are given, whatever their names end in."""

WRITING_KEYWORDS = frozenset({"out", "inplace"})


class Operations:
    """Writes `Operation` events and labels the nodes that they made."""

    def __init__(
        self,
        torch: Any,
        book: Book,
        reader: Reader,
        tensors: Tensors,
        graph: Graph,
        grads: Grads,
        writes: Writes,
        table: SiteTable,
        outer_site: Callable[[], int | None],
        limited: bool,
    ) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.graph = graph
        self.grads = grads
        self.writes = writes
        self.operands = Operands(torch, tensors, table)
        self.outer_site = outer_site
        self._through_data: dict[int, Known] = {}
        self._limit = SITE_LIMIT if limited else None
        self._times: dict[int, int] = {}

    def result(self, site: int, place: Place, value: Any, names: tuple[Any, ...]) -> None:
        """An expression gave a tensor, or a list or tuple of tensors."""
        if place.operation == "grad" and place.method:
            self._buffer(site, place, value, names)
            return
        several = not isinstance(value, self.torch.Tensor)
        outputs = [item for _, item in self.tensors.members(value)] if several else [value]
        if not outputs or self.over(site):
            self._mark(site, names)
            self.operands.drop(place)
            if outputs:
                self._label(outputs, site, place, Gathered(), ())
            return
        given = self.operands.gather(place, names, site)
        self._mark(site, [tensor for tensor, _ in given.tensors])
        earlier = [self.tensors.find(output) for output in outputs]
        # a tensor that got its history since it was met: what a custom autograd.Function returned
        made = any(
            old is None or not (old.requires_grad or output.grad_fn is None)
            for old, output in zip(earlier, outputs, strict=True)
        )
        origin = "result" if given.has_tensors or outputs[0].grad_fn is not None else "created"
        known = [self.tensors.meet(output, site, origin) for output in outputs]
        self.operands.give(site, tuple(known) if several else known[0])
        written = self._writes(given, outputs, known, place, site)
        if self._through_data and place.operation.endswith("_") and not several:
            self._write_on(site, place, value)
        detached = place.operation == "detach_" and known[0].requires_grad
        given.wants_grad |= detached
        for tensor, entry in zip(outputs, known, strict=True):
            self.tensors.check_flags(tensor, entry, place.operation, site)
        if made or written or detached:
            self._write(site, place, outputs, tuple(entry.id for entry in known), given, written)

    def taken_out(self, site: int, place: Place, names: tuple[Any, ...]) -> None:
        """A value left PyTorch: `loss.item()`, `float(x)`, `h.numpy()`."""
        if self.over(site):
            self.operands.drop(place)
            return
        given = self.operands.gather(place, names, site)
        if given.wants_grad and self.torch.is_grad_enabled():
            name = place.operation.removeprefix("numpy.")
            self.book.write(
                Operation, site, function=place.operation, inputs=tuple(given.inputs), cut=name, no_node="cut"
            )

    def _buffer(self, site: int, place: Place, value: Any, names: tuple[Any, ...]) -> None:
        """`w.grad` was read: a buffer is followed as the leaf's, not as a tensor of its own."""
        for owner, entry in self.operands.gather(place, names, site).tensors:
            if owner.grad is value:
                self.tensors.retain(owner, entry)
                self.grads.observe(owner, entry, "unseen", site)
        known = self.tensors.meet(value, site, "grad")
        known.version = version(value)
        self.operands.give(site, known)
        self.tensors.name(known, place.code, place.function, site)

    def read(self, site: int, value: Any) -> None:
        """An attribute or a name gave a tensor that another expression uses."""
        self.operands.give(site, self.tensors.meet(value, site))

    def written_in_place(self, site: int, place: Place, tensor: Any, names: tuple[Any, ...] = ()) -> None:
        """A statement wrote into `tensor` (`x[0] = 1`, `x += y`)."""
        self._mark(site, names)
        if self.over(site):
            self.operands.drop(place)
            return
        given = self.operands.gather(place, names, site)
        known = self.tensors.meet(tensor, site)
        if not place.item:
            self.writes.note(tensor, known, place.operation, site)
            self._write(site, place, [tensor], (known.id,), given, True, place.operation)
            return
        if given.inputs:  # what was written into is known by the write itself
            given.inputs[0] = Operand(tensor=known.id, code=given.inputs[0].code)
            given.wants_grad |= known.requires_grad
        self.writes.note(tensor, known, place.operation or "setitem", site)
        function = f"setitem_{place.operation}".rstrip("_") if place.operation else "setitem"
        self._write(site, place, [tensor], (known.id,), given, True, function)

    def hidden_write(self, site: int, place: Place, tensor: Any) -> None:
        """The data of `tensor` was written through `.data`, which its version counter does not show."""
        if self.grads.written(tensor, place.operation or "assignment", site, closely=True):
            return
        known = self.tensors.meet(tensor, site)
        by = f".data.{place.operation}" if place.operation else ".data"
        self.writes.hidden(tensor, known, by, site)
        self._through_data[site] = known

    def _write_on(self, site: int, place: Place, output: Any) -> None:
        """A method that writes goes on from a write through `.data`: `w.data.mul_(0.9).add_(v)`."""
        form = place.operands[0].form if place.method and place.operands else None
        known = self._through_data.get(form.site) if isinstance(form, Child) else None
        owner = None if known is None else known.ref()
        if known is not None and owner is not None and pointer(owner) == pointer(output):
            self.writes.hidden(owner, known, f".data.{place.operation}", site)
            self._through_data[site] = known

    # --- parts ------------------------------------------------------------------------------------

    def _mark(self, site: int, operands: Iterable[Any]) -> None:
        """The nodes made since the last mark are this expression's, but for those that its operands rest on.

        Those a library made before it called the user's code (a hook): they belong to the expression around that.
        """
        if self.graph.unmarked() > 1:
            histories = [item.grad_fn for item in operands if isinstance(item, self.torch.Tensor)]
            last = max((node._sequence_nr() for node in histories if node is not None), default=-1)
            self.graph.mark_before(last, self.outer_site)
        self.graph.mark_site(site)

    def over(self, site: int) -> bool:
        """Count one more time for an expression; whether that is more often than it is written out."""
        times = self._times[site] = self._times.get(site, 0) + 1
        if self._limit is None or times <= self._limit:
            return False
        if times == self._limit + 1:
            self.book.lost("expressions that ran very often", f"each is written out {self._limit} times at most")
        return True

    def is_over(self, site: int) -> bool:
        return self._limit is not None and self._times.get(site, 0) > self._limit

    def _writes(self, given: Gathered, outputs: list[Any], known: list[Known], place: Place, site: int) -> bool:
        """Whether the operation wrote into what it returned; notes each write into that or into an operand."""
        written = False
        by = ""
        for tensor, entry in (*zip(outputs, known, strict=True), *given.tensors):
            if version(tensor) != entry.version:
                by = by or self._writing(place, given)
                if self.writes.observe(tensor, entry, by, site):
                    written |= entry in known
        return written

    def _writing(self, place: Place, given: Gathered) -> str:
        """The operation's name if it may write into its operands; empty if it only computes."""
        name = place.operation
        if name.endswith("_") and not name.endswith("__"):
            return name
        if any(operand.keyword in WRITING_KEYWORDS for operand in given.inputs):
            return name
        is_call = self._function(place, given) == "call"
        return name if is_call or name.startswith(WRITING) else ""

    def _label(
        self,
        outputs: list[Any],
        site: int,
        place: Place,
        given: Gathered,
        ids: tuple[TensorId, ...],
        function: str = "",
    ) -> Any:
        first = None
        results = tuple(
            Used(tensor, version(output), shape(output)) for tensor, output in zip(ids, outputs, strict=False)
        )
        for output in outputs:
            node = output.grad_fn
            if node is not None:
                label = self.graph.label(node, site, function or place.operation)
                if not label.results:
                    label.results = results
                    label.operands = tuple(given.used)
                first = first or label
        return first

    def _write(
        self,
        site: int,
        place: Place,
        outputs: list[Any],
        ids: tuple[TensorId, ...],
        given: Gathered,
        written: bool,
        function: str = "",
    ) -> None:
        function = function or self._function(place, given)
        label = self._label(outputs, site, place, given, ids, function)
        first = outputs[0]
        value = self.reader.notable(first)
        known = self.tensors.find(first)
        if known is not None and value is not None:
            known.value = (version(first), value)
        reason, cut = ("", "") if label is not None or written else self._no_node(first, given, function)
        self.book.write(
            Operation,
            site,
            function=function,
            inputs=tuple(given.inputs),
            outputs=ids,
            node=None if label is None else label.id,
            no_node=reason,
            cut=cut,
            in_place=written,
            value=value,
        )

    def _function(self, place: Place, given: Gathered) -> str:
        """A method of something that is no tensor is a call of the user's own (or of a module)."""
        name = place.operation
        if place.method:
            first = given.inputs[0] if given.inputs else None
            return name if first is not None and first.tensor is not None else "call"
        return name if "." not in name or name.startswith(("torch.", "numpy.")) else "call"

    def _inside_function(self) -> bool:
        """Whether a custom `autograd.Function` is running: the history of what it computes is its own node."""
        path = self.torch.autograd.function.__file__
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == path and frame.f_code.co_name.startswith("apply"):
                return True
            frame = frame.f_back
        return False

    def _no_node(self, output: Any, given: Gathered, function: str) -> tuple[str, str]:
        """(why the result has no grad_fn, what took the history away from an operand that had one)."""
        if output.requires_grad:  # a new leaf
            return ("", function if given.wants_grad else "")
        if not given.wants_grad:
            return ("no input requires grad" if given.has_tensors else "", "")
        plain = function.rsplit(".", 1)[-1]
        if plain in ("detach", "data", "tensor", "detach_"):
            return "cut", "torch.tensor" if plain == "tensor" else plain
        if self.torch.is_inference_mode_enabled():
            return "inference mode", "inference_mode"
        if not self.torch.is_grad_enabled():
            return "grad mode off", "" if self._inside_function() else "no_grad"
        if plain in COMPARISONS or output.dtype is self.torch.bool:
            return "integer dtype", "comparison"
        if plain in FLATTENING:
            return "integer dtype", plain
        if not (output.is_floating_point() or output.is_complex()):
            return "integer dtype", "integer dtype"
        return "cut", plain
