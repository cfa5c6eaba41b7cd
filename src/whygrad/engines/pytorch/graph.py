"""The backward graph as PyTorch keeps it: which line made which node, and what a backward can reach.

A node's label lives in the node's own metadata, so it is exact, costs nothing to look up and goes when the
node goes. Nodes that no tap saw (made inside library code) are placed by their sequence number, which PyTorch
counts per thread: the expression that was running when the counter passed it made them.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import msgspec

from whygrad.engines.book import Book
from whygrad.engines.pytorch.tensors import Tensors, version
from whygrad.engines.pytorch.values import shape
from whygrad.ledger.events import BackwardId, Edge, ModuleId, Node, NodeId, Saved, TensorId

RAW = "_raw_saved_"
"""What the names of a node's saved tensors start with."""

NOWHERE = Edge()
"""An edge to an operand that needs no gradient."""

NODE_LIMIT = 20_000
"""A graph with more nodes than this is not walked."""

MARK_LIMIT = 400_000
SPAN_LIMIT = 1000

OPERAND_SLOTS = {
    "self": 0, "input": 0, "mat1": 0, "tensor1": 0, "other": 1, "mat2": 1, "vec": 1, "target": 1, "tensor2": 1,
}  # fmt: skip
"""Which operand a node keeps in which slot, by PyTorch's own names (derivatives.yaml): for versions of PyTorch
whose saved tensors do not show what they hold."""

Feeder = tuple[Any, "Label", int]
"""A node that sends a gradient on: the node, its label, and which of its inputs' gradients it is."""


class Label(msgspec.Struct, eq=False):
    """What is known of a node: the site and thread that made it, the operation, its results and its operands.

    `operands` stand in call order, None for those that are no tensors. `freed_by` is the backward that
    released its saved tensors.
    """

    id: NodeId
    site: int | None = None
    thread: int = 0
    operation: str = ""
    operands: tuple[Used | None, ...] = ()
    results: tuple[Used, ...] = ()
    module: ModuleId | None = None
    written: bool = False
    freed_by: BackwardId | None = None


class Kind(msgspec.Struct, frozen=True, eq=False):
    """A type of node: the slots in which it keeps tensors, whether it is the end at a leaf, whether it is Python."""

    slots: tuple[str, ...]
    accumulates: bool
    runs_python: bool


class Marks:
    """For one thread: up to which sequence number each site (or module) made nodes."""

    __slots__ = ("owners", "upto")

    def __init__(self) -> None:
        self.upto: list[int] = []
        self.owners: list[Any] = []

    def add(self, sequence: int, owner: Any) -> None:
        """The nodes numbered below `sequence`, and above the last mark, belong to `owner`."""
        if not self.upto or sequence > self.upto[-1]:
            self.upto.append(sequence)
            self.owners.append(owner)
            if len(self.upto) > MARK_LIMIT:
                del self.upto[: MARK_LIMIT // 2]
                del self.owners[: MARK_LIMIT // 2]
                self.owners[0] = None  # whose the nodes before are is forgotten

    def owner(self, sequence: int, fallback: Any) -> Any:
        position = bisect_left(self.upto, sequence + 1)
        return self.owners[position] if position < len(self.upto) else fallback


class ThreadMarks:
    """The marks of one thread."""

    __slots__ = ("modules", "sites")

    def __init__(self) -> None:
        self.sites = Marks()
        self.modules = Marks()


class Spans(threading.local):
    """What the outermost module calls of one thread made since its last backward, while recording is light: from and
    up to which sequence number, and the site of the call. Enough to place the nodes if recording wakes before the
    backward."""

    def __init__(self) -> None:
        self.open: tuple[int, int | None] | None = None
        self.made: list[tuple[int, int, int | None]] = []


class Used(msgspec.Struct, frozen=True, eq=False):
    """A tensor as an operation used it: its version and shape then."""

    tensor: TensorId
    version: int
    shape: tuple[int, ...]


class Walk(msgspec.Struct, eq=False):
    """What a backward can reach.

    `leaves` maps each leaf's id to the tensor and what feeds it. `runs_python` says whether a custom
    `autograd.Function` is among the nodes, which may do anything, even run a backward of its own. `is_partial`: the
    graph is larger than what was walked.
    """

    nodes: list[tuple[Any, Label]] = msgspec.field(default_factory=list)
    leaves: dict[TensorId, tuple[Any, list[Feeder]]] = msgspec.field(default_factory=dict)
    runs_python: bool = False
    is_partial: bool = False

    def feeders(self, tensor: Any) -> list[Feeder]:
        """What sends a gradient to a tensor that is no leaf."""
        target = tensor.grad_fn, tensor.output_nr
        return [
            (node, label, position)
            for node, label in self.nodes
            for position, edge in enumerate(node.next_functions)
            if edge == target
        ]


class Graph:
    """Labels nodes and walks graphs."""

    def __init__(self, torch: Any, book: Book, tensors: Tensors) -> None:
        self.torch = torch
        self.book = book
        self.tensors = tensors
        self.sequence = torch._C._autograd._get_sequence_nr
        self._next = itertools.count(1).__next__
        self._kinds: dict[type, Kind] = {}
        self._key = object()
        self._shows_data = hasattr(torch._C._autograd.SavedTensor, "data")
        self._python = torch.autograd.function.BackwardCFunction
        self._marks: dict[int, ThreadMarks] = {}
        self.spans = Spans()

    def marks(self, thread: int) -> ThreadMarks:
        found = self._marks.get(thread)
        if found is None:
            found = self._marks[thread] = ThreadMarks()
        return found

    def label(self, node: Any, site: int | None, operation: str = "") -> Label:
        """The label of `node`, made now if it has none."""
        metadata = node.metadata
        label: Label | None = metadata.get(self._key)
        if label is None:
            label = metadata[self._key] = Label(NodeId(self._next()), site, threading.get_ident(), operation)
        elif operation and not label.operation:
            label.operation, label.site = operation, site
        return label

    def mark_site(self, site: int | None) -> None:
        """Every node that this thread has made since the last mark came from `site`."""
        self.marks(threading.get_ident()).sites.add(self.sequence(), site)

    def begin_span(self, site: int | None) -> None:
        """An outermost module call begins; nobody looks inside."""
        self.spans.open = (self.sequence(), site)

    def end_span(self) -> None:
        spans = self.spans
        if spans.open is not None:
            made = spans.made
            made.append((spans.open[0], self.sequence(), spans.open[1]))
            spans.open = None
            if len(made) > SPAN_LIMIT:
                del made[: SPAN_LIMIT // 2]

    def mark_spans(self) -> None:
        """Somebody looks from here on: what was made meanwhile is of the calls in the spans, else of nobody known."""
        spans = self.spans
        sites = self.marks(threading.get_ident()).sites
        for begin, end, site in spans.made:
            sites.add(begin, None)
            sites.add(end, site)
        spans.made.clear()
        if spans.open is not None:
            begin, site = spans.open
            sites.add(begin, None)
            sites.add(self.sequence(), site)
            spans.open = None
        sites.add(self.sequence(), None)

    def unmarked(self) -> int:
        """How many nodes this thread has made since the last mark."""
        upto = self.marks(threading.get_ident()).sites.upto
        return self.sequence() - upto[-1] if upto else 0

    def mark_before(self, sequence: int, owner: Callable[[], int | None]) -> None:
        """The nodes up to this number, of those made since the last mark, came from `owner()`."""
        sites = self.marks(threading.get_ident()).sites
        if sites.upto and sequence >= sites.upto[-1]:
            sites.add(sequence + 1, owner())

    def mark_module(self, module: ModuleId | None) -> None:
        self.marks(threading.get_ident()).modules.add(self.sequence(), module)

    def walk(self, roots: list[Any], site: int | None) -> Walk:
        """Label and write every node that can be reached from the grad_fns `roots`."""
        walk = Walk(runs_python=any(self._kind(root).runs_python for root in roots))
        seen: dict[Any, Label | TensorId] = {}
        unwritten: list[tuple[Any, Label, list[Edge]]] = []
        stack = [(root, self._place(root, None, site)) for root in reversed(dict.fromkeys(roots))]
        seen.update(stack)
        kinds, order = self._kinds, walk.nodes
        while stack:
            node, label = stack.pop()
            order.append((node, label))
            if len(order) > NODE_LIMIT:
                walk.is_partial = True
                self._too_large()
                break
            edges: list[Edge] = []
            for position, (following, _) in enumerate(node.next_functions):
                if following is None:
                    edges.append(NOWHERE)
                    continue
                known = seen.get(following)
                if known is None:
                    kind = kinds.get(type(following)) or self._kind(following)
                    if kind.accumulates:
                        variable = following.variable
                        known = self.tensors.meet(variable, None).id
                        walk.leaves[known] = (variable, [])
                    else:
                        walk.runs_python |= kind.runs_python
                        known = self._place(following, label, site)
                        stack.append((following, known))
                    seen[following] = known
                if isinstance(known, int):
                    walk.leaves[known][1].append((node, label, position))
                    edges.append(Edge(leaf=known))
                else:
                    edges.append(Edge(node=known.id))
            if not label.written:
                unwritten.append((node, label, edges))
        for node, label, edges in reversed(unwritten):
            self._write(node, label, edges)
        return walk

    def reach(self, roots: list[Any]) -> list[Any]:
        """The leaves that can be reached from the grad_fns `roots`, and nothing else about the graph."""
        leaves: list[Any] = []
        stack, seen = list(roots), set(roots)
        while stack and len(seen) <= NODE_LIMIT:
            for following, _ in stack.pop().next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    if self._kind(following).accumulates:
                        leaves.append(following.variable)
                    else:
                        stack.append(following)
        if stack:
            self._too_large()
        return leaves

    def _too_large(self) -> None:
        self.book.lost("a backward's graph", f"it has more than {NODE_LIMIT} nodes")

    def saves(self, node: Any) -> tuple[str, ...]:
        """The slots in which this kind of node keeps tensors."""
        return self._kind(node).slots

    def _kind(self, node: Any) -> Kind:
        """What is true of all nodes of a type."""
        kind = self._kinds.get(type(node))
        if kind is None:
            slots = tuple(name.removeprefix(RAW) for name in dir(type(node)) if name.startswith(RAW))
            accumulates = hasattr(node, "variable") and not node.next_functions
            kind = self._kinds[type(node)] = Kind(slots, accumulates, isinstance(node, self._python))
        return kind

    def _place(self, node: Any, consumer: Label | None, site: int | None) -> Label:
        metadata = node.metadata
        label: Label | None = metadata.get(self._key)
        if label is not None:
            return label
        thread = consumer.thread if consumer is not None else threading.get_ident()
        fallback = consumer.site if consumer is not None else site
        marks = self.marks(thread)
        sequence = node._sequence_nr()
        owner = marks.sites.owner(sequence, fallback)  # None: made while no tap looked
        label = metadata[self._key] = Label(NodeId(self._next()), owner, thread)
        label.module = marks.modules.owner(sequence, None)
        return label

    def _write(self, node: Any, label: Label, edges: list[Edge]) -> None:
        label.written = True
        if label.module is None:
            label.module = self.marks(label.thread).modules.owner(node._sequence_nr(), None)
        saved: list[Saved] = []
        for slot in self.saves(node):
            held = getattr(node, RAW + slot, None)
            if isinstance(held, tuple):
                saved.extend(kept for one in held if (kept := self._saved(one, slot, label)) is not None)
            elif (kept := self._saved(held, slot, label)) is not None:
                saved.append(kept)
        self.book.write(
            Node,
            label.site,
            id=label.id,
            name=str(node.name()).rsplit("::", 1)[-1],
            edges=tuple(edges),
            saved=tuple(saved),
            module=label.module,
        )

    def _saved(self, held: Any, slot: str, label: Label) -> Saved | None:
        """What a node keeps in a slot; None for a slot that holds nothing."""
        if held is None or not self._shows_data:
            return self._assumed(slot, label)
        tensor = held.data
        return None if tensor is None else self._held(slot, tensor, label)

    def _held(self, slot: str, tensor: Any, label: Label) -> Saved:
        """A saved tensor that shows itself: an operand or a base of it by identity, a result by its memory."""
        if not isinstance(tensor, self.torch.Tensor):  # a hook of the program's packed it
            return self._assumed(slot, label)
        known = self.tensors.find(tensor)
        if known is None and tensor._base is not None:
            known = self.tensors.find(tensor._base)
        if known is not None:
            used = next((used for used in label.operands if used is not None and used.tensor == known.id), None)
            return Saved(slot, known.id, shape(tensor), version(tensor) if used is None else used.version)
        for result in label.results:
            original = self.tensors.alive(result.tensor)
            if original is not None and original.data_ptr() == tensor.data_ptr() and result.shape == shape(tensor):
                return Saved(slot, result.tensor, result.shape, result.version)
        return Saved(slot, None, shape(tensor))

    def _assumed(self, slot: str, label: Label) -> Saved:
        position = OPERAND_SLOTS.get(slot)
        used: Used | None = None
        if position is not None and position < len(label.operands):
            used = label.operands[position]
        elif slot == "result" and label.results:
            used = label.results[0]
        if used is None:
            return Saved(slot, None, ())
        return Saved(slot, used.tensor, used.shape, used.version)
