"""Backward passes: what runs, and what each one did to the graph. What arrives at the buffers is in `arrivals`."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from whygrad.engines.book import Book
from whygrad.engines.pytorch.arrivals import Arrivals, Listener, Target
from whygrad.engines.pytorch.blame import Blame
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.graph import Graph, Label, Walk
from whygrad.engines.pytorch.tensors import Known, Tensors, version
from whygrad.engines.pytorch.values import Reader
from whygrad.engines.pytorch.writes import Writes
from whygrad.ledger.events import BackwardBegan, BackwardEnded, BackwardId, NodeId, TensorId
from whygrad.ledger.values import Value


class Call(msgspec.Struct, eq=False):
    """How PyTorch's engine was called. `wants` are the `inputs` given to `backward` or `autograd.grad`."""

    roots: tuple[Any, ...]
    gradients: tuple[Any, ...]
    keeps_graph: bool
    creates_graph: bool
    wants: tuple[Any, ...]
    accumulates: bool

    @property
    def name(self) -> str:
        return "backward" if self.accumulates else "autograd.grad"


class Pass(msgspec.Struct, eq=False):
    """One backward that is running."""

    id: BackwardId
    site: int | None
    call: Call
    walk: Walk
    thread: int = msgspec.field(default_factory=threading.get_ident)
    arrivals: Arrivals = msgspec.field(default_factory=Arrivals)

    @property
    def leaves(self) -> tuple[TensorId, ...]:
        """The leaves whose buffers it will write."""
        targets = self.arrivals.targets.values() if self.call.accumulates else ()
        return tuple(target.known.id for target in targets if target.tensor.is_leaf)


class _Mine(threading.local):
    """The passes of one thread, the innermost last; None for one that is only counted."""

    def __init__(self, everyone: dict[int, list[Pass | None]]) -> None:
        self.passes: list[Pass | None] = []
        everyone[threading.get_ident()] = self.passes


class Backwards:
    """Follows the passes of every thread."""

    def __init__(
        self, torch: Any, book: Book, reader: Reader, tensors: Tensors, graph: Graph, grads: Grads, writes: Writes
    ) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.graph = graph
        self.grads = grads
        self.writes = writes
        self._listener = Listener(torch, book, reader, grads)
        self._blame = Blame(torch, tensors, graph, writes)
        self._next = itertools.count(1).__next__
        self.running: list[Pass] = []
        self._everyone: dict[int, list[Pass | None]] = {}
        self._mine = _Mine(self._everyone)
        self._starting = threading.RLock()
        grads.quiet = self.quiet
        self._batched = torch._C._functorch.is_legacy_batchedtensor

    def stack(self) -> list[Pass | None]:
        return self._mine.passes

    def forked(self) -> None:
        """This is a child process now: whatever other threads were doing, they are not here."""
        self._starting = threading.RLock()
        self._everyone.clear()

    def skip(self) -> None:
        """A pass is about to run; nobody follows it, unless `begin` is called for it."""
        with self._starting:
            self._mine.passes.append(None)

    @contextmanager
    def quiet(self) -> Iterator[Callable[[Known], bool]]:
        """While it lasts no thread starts a pass. Gives a test: whether a buffer may be read.

        PyTorch's engine writes buffers without holding Python's lock, so reading one that another thread's pass may
        write would crash the program.
        """
        with self._starting:
            mine = threading.get_ident()
            others = [entry for thread, stack in list(self._everyone.items()) if thread != mine for entry in stack]
            if not others:
                yield _anything
            elif None in others:
                yield _nothing
            else:
                written = {leaf for entry in others if entry is not None for leaf in entry.arrivals.targets}
                yield lambda known: known.id not in written

    def begin(self, site: int | None, call: Call) -> Pass | None:
        """A pass is about to enter PyTorch's engine. None: it runs over a batch of gradients at once."""
        if any(isinstance(given, self.torch.Tensor) and self._batched(given) for given in call.gradients):
            self.book.lost("a backward over a batch of gradients", "its values are wrapped")
            return None
        self.grads.observe_all("unseen", site)
        nodes = [root.grad_fn if isinstance(root, self.torch.Tensor) else root.node for root in call.roots]
        walk = self.graph.walk([node for node in nodes if node is not None], site)
        entry = Pass(BackwardId(self._next()), site, call, walk)
        entry.arrivals.is_partial = walk.is_partial
        self._aim(entry)
        self._write_began(entry, nodes)
        self._listener.listen(entry.arrivals)
        with self._starting:
            self._note_sharing(entry)
            self.running.append(entry)
            self.grads.settle = self.settle
            self.stack()[-1] = entry
        return entry

    def end(self, entry: Pass, result: Any) -> None:
        """The pass came back."""
        self._over(entry)
        self._write_arrivals(entry, result)
        freed: list[NodeId] = []
        if not entry.call.keeps_graph:
            for node, label in self._ran(entry):
                if label.freed_by is None and self.graph.saves(node):
                    label.freed_by = entry.id
                    freed.append(label.id)
        self.book.write(BackwardEnded, entry.site, id=entry.id, freed=tuple(freed))

    def fail(self, entry: Pass, error: BaseException | None) -> None:
        """The pass raised `error`."""
        self._over(entry)
        self._write_arrivals(entry, None)
        text = "" if error is None else f"{type(error).__name__}: {error}"
        blamed = self._blame.find(entry.walk, error, text)
        self.book.write(
            BackwardEnded,
            entry.site,
            id=entry.id,
            error=text,
            blamed=None if blamed.label is None else blamed.label.id,
            freed_by=blamed.freed_by,
            written=blamed.written,
            written_by=blamed.written_by,
        )

    # --- parts ------------------------------------------------------------------------------------

    def _aim(self, entry: Pass) -> None:
        """Find the tensors that the pass will write to or return a gradient for, and what feeds them."""
        call, walk, arrivals, site = entry.call, entry.walk, entry.arrivals, entry.site
        careful = walk.runs_python or bool(self.running)
        given = self._given(call)
        if call.wants:
            for tensor in self._tensors(call.wants):
                known = self.tensors.meet(tensor, site)
                if call.accumulates:
                    self.tensors.retain(tensor, known)
                arrivals.add(self._target(walk, tensor, known, given), careful=careful)
        else:
            for tensor, feeders in walk.leaves.values():
                known = self.tensors.meet(tensor, site)
                self.writes.observe(tensor, known, "", site)
                arrivals.add(Target(tensor, known, feeders, given.get(id(tensor))), careful=careful)
            for root in self._tensors(call.roots):
                if root.grad_fn is None and root.requires_grad:
                    known = self.tensors.meet(root, site)
                    if known.id not in arrivals.targets:
                        arrivals.add(Target(root, known, [], given.get(id(root))), careful=careful)
        if call.accumulates:
            reached = {node for node, _ in walk.nodes} if self.tensors.retained else set()
            for tensor, known in self.tensors.live_retained():
                if tensor.grad_fn in reached and known.id not in arrivals.targets:
                    arrivals.add(self._target(walk, tensor, known, given), careful=careful)

    def _target(self, walk: Walk, tensor: Any, known: Known, given: dict[int, Value]) -> Target:
        leaf = walk.leaves.get(known.id)
        feeders = leaf[1] if leaf is not None else walk.feeders(tensor) if tensor.grad_fn is not None else []
        return Target(tensor, known, feeders, given.get(id(tensor)))

    def _given(self, call: Call) -> dict[int, Value]:
        """What the pass starts with at each root whose own gradient is written or returned."""
        wanted = {id(tensor) for tensor in call.wants} | {id(tensor) for tensor, _ in self.tensors.live_retained()}
        return {
            id(root): self.reader.read(gradient)
            for root, gradient in zip(call.roots, call.gradients, strict=False)
            if gradient is not None
            and isinstance(root, self.torch.Tensor)
            and (root.grad_fn is None or id(root) in wanted)
        }

    def _note_sharing(self, entry: Pass) -> None:
        """Mark the buffers that passes of other threads are writing at this moment too."""
        for other in self.running:
            if other.thread != entry.thread:
                for leaf in other.arrivals.targets.keys() & entry.arrivals.targets.keys():
                    other.arrivals.targets[leaf].shared = entry.arrivals.targets[leaf].shared = True

    def _write_began(self, entry: Pass, nodes: list[Any]) -> None:
        call, site = entry.call, entry.site
        tensors = self._tensors(call.roots)
        first = tensors[0] if len(tensors) == 1 else None
        given = call.gradients[0] if len(call.gradients) == 1 else None
        implicit = given is None or (given.numel() == 1 and first is not None and first.numel() == 1)
        self.book.write(
            BackwardBegan,
            site,
            id=entry.id,
            call=call.name,
            roots=tuple(self.tensors.meet(root, site).id for root in tensors),
            root_nodes=tuple(None if node is None else self.graph.label(node, site).id for node in nodes),
            root_value=None if first is None else self._value(first),
            gradient=None if implicit and self._is_one(given) else self.reader.read(given),
            retain_graph=call.keeps_graph,
            create_graph=call.creates_graph,
            inputs=tuple(self.tensors.meet(tensor, site).id for tensor in self._tensors(call.wants)) or None,
            nodes=len(entry.walk.nodes),
            leaves=entry.leaves,
            partial=entry.walk.is_partial,
        )

    def _over(self, entry: Pass) -> None:
        entry.arrivals.unlisten()
        self.running.remove(entry)
        if not self.running:
            self.grads.settle = None

    def settle(self, tensor: Any, known: Known) -> None:
        """Somebody looks at a buffer while passes run: what they wrote to it so far is theirs."""
        for entry in reversed(self.running):
            target = entry.arrivals.targets.get(known.id)
            if target is not None and entry.call.accumulates and target.tensor is tensor:
                self._listener.write(entry.arrivals, target, entry.id, entry.site)

    def _write_arrivals(self, entry: Pass, result: Any) -> None:
        if entry.call.accumulates:
            for target in entry.arrivals.targets.values():
                self._listener.write(entry.arrivals, target, entry.id, entry.site)
                self._listener.write_vanished(entry.arrivals, target, entry.id, entry.site)
            if entry.walk.is_partial:
                self._write_others(entry)
        elif result is not None:
            for tensor, gradient in zip(entry.call.wants, result, strict=False):
                if not isinstance(tensor, self.torch.Tensor):
                    continue
                target = entry.arrivals.targets[self.tensors.meet(tensor, entry.site).id]
                value = None if gradient is None else self.reader.read(gradient)
                self._listener.write_returned(entry.arrivals, target, value, entry.id, entry.site)

    def _write_others(self, entry: Pass) -> None:
        """Tell what a pass did to leaves that it was not seen to reach: nobody else writes buffers while it runs."""
        for tensor, known in self.tensors.live_leaves():
            if known.id not in entry.arrivals.targets:
                self._listener.write(entry.arrivals, Target(tensor, known, []), entry.id, entry.site)

    def _tensors(self, items: tuple[Any, ...]) -> list[Any]:
        """The tensors among roots or inputs; the others are gradient edges."""
        return [item for item in items if isinstance(item, self.torch.Tensor)]

    def _value(self, tensor: Any) -> Value:
        known = self.tensors.find(tensor)
        if known is not None and known.value is not None and known.value[0] == version(tensor):
            return known.value[1]
        return self.reader.read(tensor)

    def _is_one(self, given: Any) -> bool:
        return given is None or self.reader.scalar(given) == 1.0

    def _ran(self, entry: Pass) -> list[tuple[Any, Label]]:
        """The nodes that the pass executed: with `inputs`, only those that lead to one of them."""
        wants = entry.call.wants
        if not wants:
            return entry.walk.nodes
        ends = [item.grad_fn if isinstance(item, self.torch.Tensor) else item.node for item in wants]
        targets = {id(node) for node in ends if node is not None}
        leaves = {id(item) for item, node in zip(wants, ends, strict=True) if node is None}
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


def _anything(known: Known) -> bool:  # noqa: ARG001
    return True


def _nothing(known: Known) -> bool:  # noqa: ARG001
    return False
