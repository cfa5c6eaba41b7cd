"""The ledger as its readers see it: a stream of events, and the questions that every report asks of it.

It keeps no event in memory that it can read again. One pass over the stream builds an index: where each
tensor, node and kind of event stands, and the few entities (sites, modules, sources) that grow with the
program's text and not with its running time.
"""

from __future__ import annotations

import heapq
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar, cast

from whygrad.ledger.events import (
    EVERYTHING,
    AnyEvent,
    BackwardBegan,
    BackwardEnded,
    BackwardId,
    Ended,
    Event,
    GradChanged,
    GradModeChanged,
    GradReset,
    GradReturned,
    GradWritten,
    Header,
    Lost,
    ModeChanged,
    Module,
    ModuleCalled,
    ModuleId,
    Named,
    Node,
    NodeId,
    Optimizer,
    OptimizerId,
    RequiresGradChanged,
    Site,
    SiteId,
    Source,
    StepsFolded,
    Tensor,
    TensorId,
)
from whygrad.ledger.names import Bindings, best_name

History: TypeAlias = GradWritten | GradReset | GradChanged

Kind = TypeVar("Kind", bound=Event)

CODE_LIMIT = 60
"""Expressions are quoted up to this many characters in `describe`."""


class Events(Protocol):
    """Where the events are: a list in memory or a file. A position is whatever finds one event again."""

    torn: str
    """"", or one sentence about the last line that was cut off."""
    skipped: dict[str, int]
    """How many events of each kind that this version does not know were passed over (after a full pass)."""

    def since(self, position: int) -> Iterator[tuple[int, AnyEvent]]:
        """The events from `position` on (0: the first), each with its own position."""

    def at(self, position: int) -> AnyEvent:
        """The event at a position that `since` gave."""

    def end(self) -> int:
        """The position after the last event."""


class Ledger:
    """What happened, in order.

    >>> from whygrad.ledger import Ledger, events
    >>> header = events.Header(whygrad="0.1.0", schema=1, program="lab.py")
    >>> tensor = events.Tensor(seq=1, id=1, shape=(), dtype="float32", device="cpu", leaf=True,
    ...                        requires_grad=True, origin="created")
    >>> ledger = Ledger(header, [tensor, events.Named(seq=2, tensor=1, name="w", scope="<module>")])
    >>> [ledger.name(leaf) for leaf in ledger.leaves()]
    ['w']
    """

    def __init__(self, header: Header, events: Sequence[AnyEvent] | Events) -> None:
        self.header = header
        self._events: Events = _InMemory(events) if isinstance(events, Sequence) else events
        self._index = _Index()

    def __iter__(self) -> Iterator[AnyEvent]:
        """Every event in order; may be called again."""
        for _, event in self._events.since(0):
            yield event

    @property
    def torn(self) -> str:
        """One sentence about a last line that was cut off; empty when the ledger is whole."""
        return self._events.torn

    @property
    def skipped(self) -> dict[str, int]:
        """Kinds of events that this version does not know, and how many of each were passed over."""
        self._indexed()
        return self._events.skipped

    @property
    def broken(self) -> str:
        """Why the recording broke down as a whole, in one clause; empty where it did not."""
        lost = next((event for event in self.of(Lost) if event.what.startswith(EVERYTHING)), None)
        return f"{lost.what} was lost ({lost.why})" if lost is not None else ""

    @property
    def count(self) -> int:
        """How many events there are."""
        return sum(map(len, self._indexed().by_kind.values()))

    @property
    def is_over(self) -> bool:
        """Whether the ledger tells of the program's end. It does not while it runs, or if it was killed."""
        return bool(self._indexed().by_kind.get(Ended))

    # --- entities: None for an id that the ledger does not hold -------------------------------------

    def site(self, site: SiteId | None) -> Site | None:
        return self._indexed().sites.get(site) if site is not None else None

    def tensor(self, tensor: TensorId | None) -> Tensor | None:
        """The tensor as it was when first seen."""
        position = self._indexed().tensors.get(tensor) if tensor is not None else None
        return None if position is None else cast("Tensor", self._events.at(position))

    def node(self, node: NodeId | None) -> Node | None:
        position = self._indexed().nodes.get(node) if node is not None else None
        return None if position is None else cast("Node", self._events.at(position))

    def module(self, module: ModuleId | None) -> Module | None:
        """The module as last described: by the path that the program's outermost name gives it."""
        return self._indexed().modules.get(module) if module is not None else None

    def optimizer(self, optimizer: OptimizerId | None) -> Optimizer | None:
        """The optimizer as last described: with the parameter groups that were added later."""
        return self._indexed().optimizers.get(optimizer) if optimizer is not None else None

    def source(self, path: str) -> str | None:
        """The text of a file of the user's code as it ran."""
        return self._indexed().sources.get(path)

    def sources(self) -> tuple[str, ...]:
        """The paths of the user's files, in the order in which they ran."""
        return tuple(self._indexed().sources)

    def main_path(self) -> str:
        """The program's own file, as sites spell it."""
        return self._indexed().main_path(self.header.program)

    # --- names and places ---------------------------------------------------------------------------

    def names(self, tensor: TensorId) -> tuple[str, ...]:
        """All names the tensor ever had, in order, each once."""
        return tuple(dict.fromkeys(named.name for named in self._indexed().names.get(tensor, ())))

    def name(self, tensor: TensorId | None) -> str:
        """The best name: a module's path before a global name before a local one; empty if it has none."""
        if tensor is None:
            return ""
        index = self._indexed()
        owned = index.parameter_names.get(tensor, "")
        names = index.names.get(tensor, [])
        if index.was_replaced(tensor):
            names = [named for named in names if index.bearers[named.name][-1] == tensor]
        return best_name(names, index.module_paths, owned)

    def describe(self, tensor: TensorId | None) -> str:
        """The tensor's name, or how a person would point at it: "the result of `w * 2` (line 6)"."""
        if name := self.name(tensor):
            return name
        known = self.tensor(tensor)
        if known is None:
            return "a tensor that was not recorded"
        site = self.site(known.site)
        if site is not None and site.code and known.origin in ("result", "created"):
            return f"the result of `{_shortened(site.code)}` ({self.where(site.id)})"
        kind = known.origin if known.origin in ("parameter", "buffer") else "tensor"
        place = f" ({self.where(site.id)})" if site is not None else ""
        return f"a {kind} of shape {known.shape}{place}"

    def where(self, site: SiteId | None) -> str:
        """A place for a sentence: "line 6" in the program's own file, "helpers.py:6" elsewhere."""
        known = self.site(site)
        if known is None:
            return "an unrecorded line"
        if known.path == self.main_path():
            return f"line {known.line}"
        return f"{os.path.basename(known.path)}:{known.line}"

    def find(self, name: str, line: int | None = None, path: str | None = None) -> tuple[TensorId, ...]:
        """The tensors that bore `name`, newest first.

        With `line`, those that the name meant when that line (of the program's own file, or of `path`) ran;
        for `x = x * 2` the result comes before the operand. A line that recorded nothing takes what the name
        meant when the last recorded line before it in the same file had run.
        """
        if line is None:
            bearers = self._indexed().bearers.get(name, ())
            return tuple(dict.fromkeys(reversed(bearers)))
        where = path if path is not None else self.main_path()
        sites = self._indexed().sites.values()
        lines = {site.line for site in sites if site.path == where and site.line <= line}
        lines |= {site.end_line for site in sites if site.path == where and site.line <= line <= site.end_line}
        if not lines:
            return ()
        return self._meant_by(name, where, min(line, max(lines)))

    def _meant_by(self, name: str, path: str, line: int) -> tuple[TensorId, ...]:
        covering = self._covering(path, line)
        bindings = Bindings(name)
        meant: dict[TensorId, None] = {}
        for event in self:
            if isinstance(event, Named):
                bindings.bind(event)
            site = covering.get(event.site) if event.site is not None and not isinstance(event, Node) else None
            tensor = bindings.seen_from(site.function) if site is not None else None
            if tensor is not None:
                meant.pop(tensor, None)
                meant[tensor] = None
        return tuple(reversed(meant))

    # --- what happened --------------------------------------------------------------------------------

    def of(self, kind: type[Kind]) -> Iterator[Kind]:
        """Every event of one kind, in order, without reading the others."""
        for position in self._indexed().by_kind.get(kind, ()):
            yield cast("Kind", self._events.at(position))

    def history(self, tensor: TensorId) -> Iterator[History]:
        """All that happened to the tensor's grad buffer, in order."""
        for position in self._indexed().buffers.get(tensor, ()):
            yield cast("History", self._events.at(position))

    def contributions(self, backward: BackwardId) -> Iterator[GradWritten | GradReturned]:
        """What one backward pass wrote or returned, in order."""
        start = self._indexed().backwards.get(backward)
        if start is None:
            return
        for _, event in self._events.since(start):
            if isinstance(event, GradWritten | GradReturned) and event.backward == backward:
                yield event
            elif isinstance(event, BackwardEnded) and event.id == backward:
                return

    def modes(self) -> Iterator[ModeChanged | GradModeChanged]:
        """Every `train()`, `eval()` and change of the grad mode, in order."""
        by_kind = self._indexed().by_kind
        for position in heapq.merge(by_kind.get(ModeChanged, ()), by_kind.get(GradModeChanged, ())):
            yield cast("ModeChanged | GradModeChanged", self._events.at(position))

    def calls(self, module: ModuleId) -> Iterator[ModuleCalled]:
        """The calls of one module, in order."""
        for call in self.of(ModuleCalled):
            if call.module == module:
                yield call

    def at(self, path: str, line: int) -> Iterator[AnyEvent]:
        """Every event whose site covers a line, in order; the sites themselves are not among them."""
        covering = self._covering(path, line)
        for event in self:
            if event.site in covering and not isinstance(event, Site):
                yield event

    def leaves(self) -> tuple[TensorId, ...]:
        """The tensors to report on: leaves that require grad, and any that ever had a buffer, as they appeared.

        A parameter in whose place another one was put before anything happened to it is none of them, unless an
        optimizer holds it.
        """
        index = self._indexed()
        gone = {tensor for tensor in index.modules_of if index.was_replaced(tensor) and not index.is_stepped(tensor)}
        return tuple(sorted(index.leaves - gone, key=lambda tensor: index.tensors.get(tensor, 0)))

    # --- the index ------------------------------------------------------------------------------------

    def _covering(self, path: str, line: int) -> dict[SiteId, Site]:
        sites = self._indexed().sites.values()
        return {site.id: site for site in sites if site.path == path and site.line <= line <= site.end_line}

    def _indexed(self) -> _Index:
        """The index, brought up to the last event (a ledger in memory may still be growing)."""
        end = self._events.end()
        if self._index.end != end:
            self._index.add(self._events.since(self._index.end))
            self._index.end = end
        return self._index


class _InMemory:
    """Events in a list; a position is an index."""

    torn = ""

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        self._list = events
        self.skipped: dict[str, int] = {}

    def since(self, position: int) -> Iterator[tuple[int, AnyEvent]]:
        for index in range(position, len(self._list)):
            yield index, self._list[index]

    def at(self, position: int) -> AnyEvent:
        return self._list[position]

    def end(self) -> int:
        return len(self._list)


class _Index:
    """Where everything stands. It grows with entities, and by 8 to 16 bytes with each event."""

    def __init__(self) -> None:
        self.end = 0
        self.sites: dict[SiteId, Site] = {}
        self.modules: dict[ModuleId, Module] = {}
        self.optimizers: dict[OptimizerId, Optimizer] = {}
        self.sources: dict[str, str] = {}
        self.tensors: dict[TensorId, int] = {}
        self.nodes: dict[NodeId, int] = {}
        self.backwards: dict[BackwardId, int] = {}
        self.names: dict[TensorId, list[Named]] = {}
        self.bearers: dict[str, list[TensorId]] = {}
        self.module_paths: set[str] = set()
        self.parameter_names: dict[TensorId, str] = {}
        self.modules_of: dict[TensorId, set[ModuleId]] = {}
        self.leaves: set[TensorId] = set()
        self.folded: set[TensorId] = set()
        self.buffers: dict[TensorId, array[int]] = {}
        self.by_kind: dict[type[Event], array[int]] = {}

    def add(self, entries: Iterable[tuple[int, AnyEvent]]) -> None:
        by_kind = self.by_kind
        for position, event in entries:
            kind = type(event)
            positions = by_kind.get(kind)
            if positions is None:
                positions = by_kind[kind] = array("Q")
            positions.append(position)
            if kind in _INDEXED:
                self._note(position, event)

    def _note(self, position: int, event: AnyEvent) -> None:
        match event:
            case GradWritten() | GradReset() | GradChanged():
                self.leaves.add(event.tensor)
                positions = self.buffers.get(event.tensor)
                if positions is None:
                    positions = self.buffers[event.tensor] = array("Q")
                positions.append(position)
            case Tensor():
                self.tensors[event.id] = position
                if event.leaf and event.requires_grad:
                    self.leaves.add(event.id)
            case Node():
                self.nodes[event.id] = position
            case Named():
                self.names.setdefault(event.tensor, []).append(event)
                self.bearers.setdefault(event.name, []).append(event.tensor)
            case Site():
                self.sites[event.id] = event
            case BackwardBegan():
                self.backwards[event.id] = position
                self.leaves.update(event.leaves)
            case RequiresGradChanged() if event.to:
                self.leaves.add(event.tensor)
            case StepsFolded():
                self.leaves.update(fold.tensor for fold in event.buffers)
                self.folded.update(fold.tensor for fold in event.buffers if fold.writes)
            case Module():
                before = self.modules.get(event.id)
                self.modules[event.id] = event
                if before is not None:
                    self.module_paths.discard(before.path)
                    self._let_go(before, event)
                for _, tensor in event.parameters:
                    self.modules_of.setdefault(tensor, set()).add(event.id)
                if event.path not in ("", event.kind):
                    self.module_paths.add(event.path)
                    for name, tensor in event.parameters:
                        told = self.parameter_names.get(tensor)
                        if told is None or (before is not None and told == f"{before.path}.{name}"):
                            self.parameter_names[tensor] = f"{event.path}.{name}"
            case Optimizer():
                self.optimizers[event.id] = event
            case Source():
                self.sources[event.path] = event.text
            case _:
                pass

    def _let_go(self, before: Module, now: Module) -> None:
        """A module was written again: what it holds no more is not called by its path."""
        kept = {tensor for _, tensor in now.parameters}
        for name, tensor in before.parameters:
            if tensor not in kept:
                self.modules_of.get(tensor, set()).discard(now.id)
                if self.parameter_names.get(tensor) == f"{before.path}.{name}":
                    del self.parameter_names[tensor]

    def was_replaced(self, tensor: TensorId) -> bool:
        """Whether a module held the tensor, holds another one in its place, and nothing ever happened to its buffer."""
        return self.modules_of.get(tensor) == set() and tensor not in self.buffers and tensor not in self.folded

    def is_stepped(self, tensor: TensorId) -> bool:
        """Whether an optimizer holds the tensor."""
        return any(tensor in group.parameters for held in self.optimizers.values() for group in held.groups)

    def main_path(self, program: str) -> str:
        """The source that is the program: the one so named, else one that ends in its name, else the first."""
        if program in self.sources:
            return program
        tail = os.sep + program.removeprefix("." + os.sep)
        return next((path for path in self.sources if path.endswith(tail)), next(iter(self.sources), program))


_INDEXED = frozenset(
    {
        GradWritten, GradReset, GradChanged, Tensor, Node, Named, Site, BackwardBegan, RequiresGradChanged,
        StepsFolded, Module, Optimizer, Source,
    }
)  # fmt: skip


def _shortened(code: str) -> str:
    flat = " ".join(code.split())
    return flat if len(flat) <= CODE_LIMIT else flat[: CODE_LIMIT - 1] + "…"
