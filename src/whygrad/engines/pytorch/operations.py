"""Expressions of the user's code that give tensors, or take values out of them: what they did to the graph."""

from __future__ import annotations

from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.backward import Backwards
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.graph import Graph, Used
from whygrad.engines.pytorch.modules import Modules
from whygrad.engines.pytorch.operands import Gathered, Operands
from whygrad.engines.pytorch.tensors import Known, Tensors, version
from whygrad.engines.pytorch.values import Reader
from whygrad.execute.sites import Place
from whygrad.ledger.events import DataChanged, Operation, TensorId
from whygrad.ledger.values import WHOLE_LIMIT

SITE_LIMIT = 200
"""One expression is written out at most this often (in depth `auto`)."""

COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
FLATTENING = frozenset({"argmax", "argmin", "argsort"})


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
        backwards: Backwards,
        modules: Modules,
        limited: bool,
    ) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.graph = graph
        self.grads = grads
        self.backwards = backwards
        self.modules = modules
        self.operands = Operands(torch, tensors)
        self._limit = SITE_LIMIT if limited else None
        self._times: dict[int, int] = {}

    def result(self, site: int, place: Place, value: Any, names: tuple[Any, ...]) -> None:
        """An expression gave a tensor, or a list or tuple of tensors."""
        if place.operation == "grad" and place.method:
            self._buffer(site, place, value)
            return
        self.graph.mark_site(site)
        several = not isinstance(value, self.torch.Tensor)
        outputs = [item for _, item in self.tensors.members(value)] if several else [value]
        if not outputs or self._over(site):
            if outputs:
                self._label(outputs, site, place, Gathered(), ())
            return
        given = self.operands.gather(place, names, site)
        fresh = [self.tensors.find(output) is None for output in outputs]
        origin = "result" if given.tensors or outputs[0].grad_fn is not None else "created"
        known = [self.tensors.meet(output, site, origin) for output in outputs]
        ids = tuple(entry.id for entry in known)
        self.operands.last[site] = ids if several else ids[0]
        written = self._writes(given, outputs, known, place, site)
        for tensor, entry in zip(outputs, known, strict=True):
            self.tensors.check_flags(tensor, entry, place.operation, site)
        if any(fresh) or written:
            self._write(site, place, outputs, ids, given, written)

    def taken_out(self, site: int, place: Place, names: tuple[Any, ...]) -> None:
        """A value left PyTorch: `loss.item()`, `float(x)`, `h.numpy()`."""
        if self._over(site):
            return
        given = self.operands.gather(place, names, site)
        if given.wants_grad and self.torch.is_grad_enabled():
            name = place.operation.removeprefix("numpy.")
            self.book.write(
                Operation, site, function=place.operation, inputs=tuple(given.inputs), cut=name, no_node="cut"
            )

    def _buffer(self, site: int, place: Place, value: Any) -> None:
        """`w.grad` was read: a buffer is followed as the leaf's, not as a tensor of its own."""
        known = self.tensors.meet(value, site, "grad")
        known.version = version(value)
        self.operands.last[site] = known.id
        self.tensors.name(known, place.code, place.function, site)

    def read(self, site: int, value: Any) -> None:
        """An attribute or a name gave a tensor that another expression uses."""
        self.operands.last[site] = self.tensors.meet(value, site).id

    def written_in_place(self, site: int, place: Place, tensor: Any, names: tuple[Any, ...] = ()) -> None:
        """A statement wrote into `tensor` (`x[0] = 1`, `x += y`)."""
        self.graph.mark_site(site)
        if self._over(site):
            return
        given = self.operands.gather(place, names, site)
        known = self.tensors.meet(tensor, site)
        function = "setitem" if place.item and not place.operation else place.operation
        self._note_write(tensor, known, function, site)
        self._write(site, place, [tensor], (known.id,), given, True, function)

    def hidden_write(self, site: int, place: Place, tensor: Any) -> None:
        """The data of `tensor` was written through `.data`, which its version counter does not show."""
        known = self.tensors.meet(tensor, site)
        now = version(tensor)
        by = f".data.{place.operation}" if place.method else ".data"
        self.book.write(
            DataChanged,
            site,
            tensor=known.id,
            by=by,
            version_before=known.version,
            version=now,
            hidden=True,
            after=self.reader.small(tensor),
        )
        known.version = now

    def observe_data(self, tensor: Any, known: Known, by: str, site: int | None) -> bool:
        """Note an in-place write since the tensor was last seen."""
        now = version(tensor)
        if now == known.version:
            return False
        self._note_write(tensor, known, by, site)
        return True

    # --- parts ------------------------------------------------------------------------------------

    def _over(self, site: int) -> bool:
        times = self._times.get(site, 0) + 1
        self._times[site] = times
        return self._limit is not None and times > self._limit

    def _writes(self, given: Gathered, outputs: list[Any], known: list[Known], place: Place, site: int) -> bool:
        """Whether the operation wrote into one of its operands; notes each such write."""
        seen = {entry.id for entry in known}
        written = False
        for tensor, entry in [*zip(outputs, known, strict=True), *given.tensors]:
            if self.observe_data(tensor, entry, place.operation, site):
                written |= entry.id in seen
        return written

    def _note_write(self, tensor: Any, known: Known, by: str, site: int | None) -> None:
        before, known.version = known.version, version(tensor)
        self.backwards.note_write(known, known.version, site)
        self.book.write(
            DataChanged,
            site,
            tensor=known.id,
            by=by,
            version_before=before,
            version=known.version,
            after=self.reader.small(tensor),
        )
        base = tensor._base
        if base is not None:
            owner = self.tensors.find(base)
            if owner is not None and owner.version != version(base):
                self._note_write(base, owner, by, site)

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
            Used(id, version(output), tuple(output.shape)) for id, output in zip(ids, outputs, strict=False)
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
            value=self.reader.read(first) if first.numel() <= WHOLE_LIMIT else None,
        )

    def _function(self, place: Place, given: Gathered) -> str:
        """A method of something that is no tensor is a call of the user's own (or of a module)."""
        name = place.operation
        if place.method:
            first = given.inputs[0] if given.inputs else None
            return name if first is not None and first.tensor is not None else "call"
        return name if "." not in name or name.startswith(("torch.", "numpy.")) else "call"

    def _no_node(self, output: Any, given: Gathered, function: str) -> tuple[str, str]:
        """(why the result has no grad_fn, what took the history away from an operand that had one)."""
        if output.requires_grad:  # a new leaf
            return ("", function if given.wants_grad else "")
        if not given.wants_grad:
            return ("no input requires grad" if given.tensors else "", "")
        plain = function.rsplit(".", 1)[-1]
        if plain in ("detach", "data", "tensor", "detach_"):
            return "cut", "torch.tensor" if plain == "tensor" else plain
        if self.torch.is_inference_mode_enabled():
            return "inference mode", "inference_mode"
        if not self.torch.is_grad_enabled():
            return "grad mode off", "no_grad"
        if plain in COMPARISONS or output.dtype is self.torch.bool:
            return "integer dtype", "comparison"
        if plain in FLATTENING:
            return "integer dtype", plain
        if not (output.is_floating_point() or output.is_complex()):
            return "integer dtype", "integer dtype"
        return "cut", plain
