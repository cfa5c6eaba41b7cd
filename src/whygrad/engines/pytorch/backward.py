"""Backward passes: what ran, what each leaf's buffer received and through which node, what stopped it."""

from __future__ import annotations

import itertools
import re
import threading
from dataclasses import dataclass, field
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.graph import Graph, Label, Walk
from whygrad.engines.pytorch.tensors import Known, Tensors, version
from whygrad.engines.pytorch.values import Reader
from whygrad.ledger.events import (
    BackwardBegan,
    BackwardEnded,
    BackwardId,
    Contribution,
    GradReturned,
    GradWritten,
    NodeId,
    SiteId,
    TensorId,
)
from whygrad.ledger.values import Value

VERSION_ERROR = re.compile(r"is at version (\d+); expected version (\d+)")


@dataclass(slots=True)
class Pass:
    """One backward that is running."""

    id: BackwardId
    site: int | None
    call: str
    keeps_graph: bool
    walk: Walk
    before: dict[TensorId, tuple[Any, Known, Value | None]]
    inputs: list[Any] | None
    arrived: dict[tuple[NodeId, int], Value] = field(default_factory=dict)
    listened: set[TensorId] = field(default_factory=set)
    handles: list[Any] = field(default_factory=list)
    gradients: tuple[Any, ...] = ()


class Backwards:
    """Follows the passes of every thread."""

    def __init__(self, torch: Any, book: Book, reader: Reader, tensors: Tensors, graph: Graph, grads: Grads) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.graph = graph
        self.grads = grads
        self._next = itertools.count(1).__next__
        self._running = threading.local()
        self.writes: list[tuple[TensorId, int, SiteId | None]] = []

    def stack(self) -> list[Pass | None]:
        try:
            return self._running.stack  # type: ignore[no-any-return]
        except AttributeError:
            self._running.stack = []
            return self._running.stack  # type: ignore[no-any-return]

    def begin(
        self, site: int | None, roots: Any, gradients: Any, flags: tuple[bool, bool], inputs: Any, accumulate: bool
    ) -> Pass:
        """A pass is about to enter PyTorch's engine."""
        keep_graph, create_graph = flags
        tensors = [root for root in roots if isinstance(root, self.torch.Tensor)]
        nodes = [root.grad_fn if isinstance(root, self.torch.Tensor) else root.node for root in roots]
        self.grads.observe_all("unseen", site)
        walk = self.graph.walk([node for node in nodes if node is not None], site)
        wanted = self._wanted(inputs)
        if accumulate:
            for root in tensors:
                if root.grad_fn is None and root.requires_grad:
                    walk.leaves.setdefault(self.tensors.meet(root, site).id, (root, []))
            if wanted is not None:
                names = {self.tensors.meet(tensor, site).id for tensor in wanted}
                walk.leaves = {leaf: entry for leaf, entry in walk.leaves.items() if leaf in names}
        entry = Pass(
            BackwardId(self._next()), site, "backward" if accumulate else "autograd.grad", keep_graph, walk, {}, wanted
        )
        entry.gradients = tuple(gradients)
        root_ids = [self.tensors.meet(root, site) for root in tensors]
        first = tensors[0] if len(tensors) == 1 else None
        given = entry.gradients[0] if len(entry.gradients) == 1 else None
        implicit = given is None or (given.numel() == 1 and first is not None and first.numel() == 1)
        self.book.write(
            BackwardBegan,
            site,
            id=entry.id,
            call=entry.call,
            roots=tuple(known.id for known in root_ids),
            root_nodes=tuple(None if node is None else self.graph.label(node, site).id for node in nodes),
            root_value=None if first is None else self.reader.read(first),
            gradient=None if implicit and self._is_one(given) else self.reader.read(given),
            retain_graph=keep_graph,
            create_graph=create_graph,
            inputs=None if wanted is None else tuple(self.tensors.meet(tensor, site).id for tensor in wanted),
            nodes=len(walk.nodes),
            leaves=tuple(walk.leaves) if accumulate else (),
        )
        if accumulate:
            self._listen(entry)
        self.stack().append(entry)
        return entry

    def end(self, result: Any) -> None:
        """The pass came back."""
        entry = self.stack().pop()
        if entry is None:
            return
        self._unlisten(entry)
        if entry.call == "backward":
            self._write_buffers(entry)
        elif entry.inputs is not None:
            self._write_returned(entry, result)
        freed: list[NodeId] = []
        if not entry.keeps_graph:
            for node, label in self._ran(entry):
                if label.freed_by is None and self.graph.saves(node):
                    label.freed_by = entry.id
                    freed.append(label.id)
        self.book.write(BackwardEnded, entry.site, id=entry.id, freed=tuple(freed))

    def fail(self, error: BaseException | None) -> None:
        """The pass raised `error`."""
        entry = self.stack().pop()
        if entry is None:
            return
        self._unlisten(entry)
        if entry.call == "backward":
            self._write_buffers(entry)
        text = "" if error is None else f"{type(error).__name__}: {error}"
        blamed, freed_by, written, written_by = self._blame(entry, text)
        self.book.write(
            BackwardEnded,
            entry.site,
            id=entry.id,
            error=text,
            blamed=None if blamed is None else blamed.id,
            freed_by=freed_by,
            written=written,
            written_by=written_by,
        )

    def note_write(self, known: Known, now: int, site: int | None) -> None:
        """Remember who brought a tensor to this version, for the error that may follow."""
        self.writes.append((known.id, now, None if site is None else self.book.site(site)))
        if len(self.writes) > 10_000:
            del self.writes[:5_000]

    # --- what arrives -----------------------------------------------------------------------------

    def _listen(self, entry: Pass) -> None:
        """Catch what each node sends to a leaf, where the buffer alone does not show it."""
        slots: dict[Any, list[int]] = {}
        labels: dict[Any, Label] = {}
        for leaf, (tensor, feeders) in entry.walk.leaves.items():
            known = self.tensors.meet(tensor, entry.site)
            entry.before[leaf] = (tensor, known, known.grad_value)
            plain = len(feeders) == 1 and known.grad_value is None and not tensor._backward_hooks
            if plain:
                continue
            entry.listened.add(leaf)
            for node, label, position in feeders:
                slots.setdefault(node, []).append(position)
                labels[node] = label
        for node, positions in slots.items():
            entry.handles.append(node.register_hook(self._catcher(entry, labels[node].id, tuple(positions))))

    def _catcher(self, entry: Pass, node: NodeId, positions: tuple[int, ...]) -> Any:
        def catch(sent: tuple[Any, ...], received: tuple[Any, ...]) -> None:  # noqa: ARG001
            try:
                for position in positions:
                    gradient = sent[position]
                    if gradient is not None:
                        entry.arrived[node, position] = self.reader.read(gradient)
            except Exception as error:
                self.book.lost("a contribution to a gradient", error)

        return catch

    def _unlisten(self, entry: Pass) -> None:
        for handle in entry.handles:
            handle.remove()
        entry.handles.clear()

    def _write_buffers(self, entry: Pass) -> None:
        for leaf, (tensor, known, before) in entry.before.items():
            grad = tensor.grad
            if not self.grads.differs(known, grad):
                continue
            self.grads.remember(known, grad)
            after = known.grad_value
            if after is None:
                continue
            feeders = entry.walk.leaves[leaf][1]
            terms = [
                term
                for node, label, position in feeders
                if (term := self._term(entry, leaf, node, label, position, after))
            ]
            if not feeders:
                terms = [Contribution(after)] if before is None else []
            hooks = bool(tensor._backward_hooks)
            self.book.write(
                GradWritten,
                entry.site,
                tensor=leaf,
                backward=entry.id,
                before=before,
                contributions=tuple(terms),
                after=after,
                hooked=hooks,
            )
        for tensor, known in self._retained(entry):
            self.grads.observe(tensor, known, "backward", entry.site)

    def _term(
        self, entry: Pass, leaf: TensorId, node: Any, label: Label, position: int, after: Value
    ) -> Contribution | None:
        value = entry.arrived.get((label.id, position)) if leaf in entry.listened else after
        if value is None:
            return None
        site = None if label.site is None else self.book.site(label.site)
        return Contribution(value, label.id, site, label.operation or _plain(node))

    def _retained(self, entry: Pass) -> list[tuple[Any, Known]]:
        found = []
        for _, label in entry.walk.nodes:
            for used in label.results:
                tensor = self.tensors.alive(used.tensor)
                if tensor is not None and not tensor.is_leaf and tensor.retains_grad:
                    found.append((tensor, self.tensors.meet(tensor, None)))
        return found

    def _write_returned(self, entry: Pass, result: Any) -> None:
        assert entry.inputs is not None
        for tensor, gradient in zip(entry.inputs, result, strict=False):
            known = self.tensors.meet(tensor, entry.site)
            feeders = entry.walk.leaves.get(known.id, (None, []))[1]
            value = None if gradient is None else self.reader.read(gradient)
            terms = []
            if value is not None and len(feeders) == 1:
                node, label, _ = feeders[0]
                site = None if label.site is None else self.book.site(label.site)
                terms.append(Contribution(value, label.id, site, label.operation or _plain(node)))
            self.book.write(
                GradReturned, entry.site, tensor=known.id, backward=entry.id, contributions=tuple(terms), value=value
            )

    # --- what went wrong --------------------------------------------------------------------------

    def _blame(self, entry: Pass, text: str) -> tuple[Label | None, BackwardId | None, TensorId | None, SiteId | None]:
        if "second time" in text:
            for _, label in entry.walk.nodes:
                if label.freed_by is not None:
                    return label, label.freed_by, None, None
        versions = VERSION_ERROR.search(text)
        if versions is not None:
            found, expected = int(versions[1]), int(versions[2])
            for _, label in entry.walk.nodes:
                for used in (*label.operands, *label.results):
                    if used is None or used.version != expected:
                        continue
                    tensor = self.tensors.alive(used.tensor)
                    if tensor is not None and version(tensor) == found:
                        return label, None, used.tensor, self._writer(used.tensor, expected)
            for tensor_id, now, site in reversed(self.writes):
                if now == found:
                    return None, None, tensor_id, site
        return None, None, None, None

    def _writer(self, tensor: TensorId, expected: int) -> SiteId | None:
        """The first write after version `expected`."""
        for written, now, site in self.writes:
            if written == tensor and now > expected:
                return site
        return None

    # --- small things -----------------------------------------------------------------------------

    def _wanted(self, inputs: Any) -> list[Any] | None:
        if not inputs:
            return None
        return [item for item in inputs if isinstance(item, self.torch.Tensor)]

    def _is_one(self, given: Any) -> bool:
        return given is None or self.reader.scalar(given) == 1.0

    def _ran(self, entry: Pass) -> list[tuple[Any, Label]]:
        """The nodes that the pass executed: with `inputs`, only those that lead to one of them."""
        if entry.inputs is None:
            return entry.walk.nodes
        targets = {id(tensor.grad_fn) for tensor in entry.inputs if tensor.grad_fn is not None}
        leaves = {id(tensor) for tensor in entry.inputs if tensor.grad_fn is None}
        useful: set[int] = set()
        for node, _ in sorted(entry.walk.nodes, key=lambda item: item[0]._sequence_nr()):
            for following, _ in node.next_functions:
                if following is not None and (
                    id(following) in useful
                    or id(following) in targets
                    or id(getattr(following, "variable", None)) in leaves
                ):
                    useful.add(id(node))
        return [(node, label) for node, label in entry.walk.nodes if id(node) in useful]


def _plain(node: Any) -> str:
    """`mul` from `MulBackward0`."""
    name = re.sub(r"Backward\d*$", "", str(node.name()).rsplit("::", 1)[-1])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
