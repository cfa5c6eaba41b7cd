"""The ledger as rules ask it: events by kind, what made a tensor and what used it, passes, graphs, owners.

One pass reads the ledger; everything else is computed when a rule first asks, and shared by all rules. A very long
ledger is read up to `EVENT_LIMIT` events: `partial` says so, and rules then must not conclude from absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import msgspec

from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    AnyEvent,
    BackwardBegan,
    BackwardEnded,
    BackwardId,
    DataChanged,
    Environment,
    Event,
    GradReset,
    GradReturned,
    GradWritten,
    Module,
    ModuleCalled,
    ModuleId,
    Node,
    NodeId,
    Operand,
    Operation,
    Optimizer,
    OptimizerId,
    OptimizerStepped,
    Raised,
    RequiresGradChanged,
    Site,
    SiteId,
    StepsFolded,
    Tensor,
    TensorId,
)
from whygrad.ledger.ledger import History
from whygrad.ledger.values import Value
from whygrad.rules.finding import Evidence, Place
from whygrad.rules.source import Source

if TYPE_CHECKING:
    from whygrad.answers.why.flow import Flow

EVENT_LIMIT = 1_000_000

Kind = TypeVar("Kind", bound=Event)

Maker: TypeAlias = Operation | ModuleCalled
"""What gives tensors: an expression of the user's, or the call of a module."""


class Pass(msgspec.Struct, frozen=True):
    """A backward pass: how it began and ended (None: it did not), and the buffers that it wrote, in order."""

    began: BackwardBegan
    ended: BackwardEnded | None
    written: tuple[GradWritten, ...]
    returned: tuple[GradReturned, ...]

    @property
    def id(self) -> BackwardId:
        return self.began.id


class Owner(msgspec.Struct, frozen=True):
    """A module that holds a parameter under `name`."""

    module: ModuleId
    name: str


class Facts:
    """What happened in one run."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.events: tuple[AnyEvent, ...] = tuple(islice(iter(ledger), EVENT_LIMIT))
        self.partial = len(self.events) == EVENT_LIMIT
        self._by_kind: dict[type[Event], list[AnyEvent]] = {}
        for event in self.events:
            self._by_kind.setdefault(type(event), []).append(event)
        self._sources: dict[str, Source] = {}

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Every event of one kind, in order."""
        return cast("list[Kind]", self._by_kind.get(kind, []))

    def between(self, kind: type[Kind], after: int, before: int) -> Iterator[Kind]:
        """The events of one kind with a number between two others."""
        return (event for event in self.of(kind) if after < event.seq < before)

    # --- places, names, evidence ------------------------------------------------------------------

    def site(self, site: SiteId | None) -> Site | None:
        return self.ledger.site(site)

    def place(self, site: SiteId | None) -> Place:
        """Where a site is; an empty path where it is not recorded."""
        known = self.ledger.site(site)
        if known is None:
            return Place("", 0, "", self.ledger.where(site), site)
        return Place(known.path, known.line, known.code, self.ledger.where(site), site)

    def line(self, path: str, line: int) -> Place:
        """A line of a source file, also one that recorded nothing."""
        text = self.source(path).line(line).strip()
        where = f"line {line}" if path == self.ledger.main_path() else f"{path.rpartition('/')[2]}:{line}"
        return Place(path, line, text, where)

    def source(self, path: str) -> Source:
        """The text of a file of the user's and its syntax tree (empty where it was not recorded)."""
        if path not in self._sources:
            self._sources[path] = Source(path, self.ledger.source(path) or "")
        return self._sources[path]

    def source_of(self, site: SiteId | None) -> Source:
        return self.source(self.place(site).path)

    def evidence(self, event: AnyEvent, text: str) -> Evidence:
        return Evidence(event.seq, text, self.place(event.site) if event.site is not None else None)

    def name(self, tensor: TensorId | None) -> str:
        """The best name of a tensor; empty if it has none."""
        return self.ledger.name(tensor)

    def describe(self, tensor: TensorId | None) -> str:
        """Its name, or how a person would point at it."""
        return self.ledger.describe(tensor)

    # --- tensors ------------------------------------------------------------------------------------

    @cached_property
    def tensors(self) -> dict[TensorId, Tensor]:
        return {tensor.id: tensor for tensor in self.of(Tensor)}

    @cached_property
    def makers(self) -> dict[TensorId, Maker]:
        """What first gave each tensor: the innermost expression, or the module call, that has it as a result."""
        made: dict[TensorId, Maker] = {}
        for event in self.events:
            if isinstance(event, Operation):
                if not event.in_place:
                    for output in event.outputs:
                        made.setdefault(output, event)
            elif isinstance(event, ModuleCalled):
                for shape in event.outputs:
                    if shape.tensor is not None:
                        made.setdefault(shape.tensor, event)
        return made

    @cached_property
    def users(self) -> dict[TensorId, list[Maker]]:
        """The operations and module calls that took each tensor, in order."""
        used: dict[TensorId, list[Maker]] = {}
        for event in self.events:
            if isinstance(event, (Operation, ModuleCalled)):
                for tensor in inputs_of(event):
                    used.setdefault(tensor, []).append(event)
        return used

    @cached_property
    def flow(self) -> Flow:
        """How values went from tensor to tensor, whether or not autograd followed them."""
        from whygrad.answers.why.flow import Flow

        return Flow(self.ledger, self.events[-1].seq if self.events else 0)

    @cached_property
    def _values(self) -> dict[TensorId, list[tuple[int, Value | None]]]:
        known: dict[TensorId, list[tuple[int, Value | None]]] = {}
        for event in self.events:
            written = isinstance(event, (DataChanged, OptimizerStepped))
            for tensor, value in _values_in(event):
                if value is not None or written:
                    known.setdefault(tensor, []).append((event.seq, value))
        return known

    def value(self, tensor: TensorId | None, before: int | None = None) -> Value | None:
        """A tensor's value now, or just before an event; None where it was not kept since the last write."""
        told = self._values.get(tensor, []) if tensor is not None else []
        return next((value for seq, value in reversed(told) if before is None or seq < before), None)

    @cached_property
    def reached_leaves(self) -> frozenset[TensorId]:
        """The leaves that ever got a gradient from a pass, folded steps included."""
        found = {write.tensor for write in self.of(GradWritten)}
        found |= {back.tensor for back in self.of(GradReturned) if back.value is not None}
        found |= {fold.tensor for folded in self.of(StepsFolded) for fold in folded.buffers if fold.writes}
        return frozenset(found)

    @cached_property
    def trained(self) -> dict[TensorId, OptimizerStepped]:
        """The tensors held by an optimizer that stepped, each with the first step that had it."""
        found: dict[TensorId, OptimizerStepped] = {}
        for step in self.of(OptimizerStepped):
            for tensor in (*(update.tensor for update in step.updates), *step.skipped):
                found.setdefault(tensor, step)
        return found

    @cached_property
    def _by_site(self) -> dict[SiteId, list[Operation]]:
        found: dict[SiteId, list[Operation]] = {}
        for operation in self.of(Operation):
            if operation.site is not None:
                found.setdefault(operation.site, []).append(operation)
        return found

    def of_site(self, site: SiteId | None) -> list[Operation]:
        """The operations of one expression, in order."""
        return self._by_site.get(site, []) if site is not None else []

    def frozen(self, tensor: TensorId) -> bool:
        """Whether the last switch of a tensor's requires_grad was to False."""
        told = [change.to for change in self.of(RequiresGradChanged) if change.tensor == tensor]
        return bool(told) and not told[-1]

    def was_expected(self, ended: BackwardEnded) -> bool:
        """Whether the program caught the exception that stopped a pass."""
        return any(
            raised.caught is not None and raised.text[:60] in ended.error
            for raised in self.of(Raised)
            if raised.seq > ended.seq - 1
        )

    @cached_property
    def default_dtype(self) -> str:
        """The dtype of floats that nothing else was said of, at the end of the run."""
        return next((told.default_dtype for told in reversed(self.of(Environment))), "float32")

    @cached_property
    def _giving(self) -> dict[TensorId, list[Operation]]:
        found: dict[TensorId, list[Operation]] = {}
        for operation in self.of(Operation):
            for output in operation.outputs:
                found.setdefault(output, []).append(operation)
        return found

    def giving(self, tensor: TensorId) -> list[Operation]:
        """Every operation that gave a tensor or wrote into it, in order."""
        return self._giving.get(tensor, [])

    def upstream(self, tensor: TensorId, limit: int = 2000) -> Iterator[tuple[TensorId, Maker]]:
        """What a tensor was computed from, nearest first, through cuts too: each with what made it."""
        seen = {tensor}
        queue = [tensor]
        for current in queue:
            maker = self.makers.get(current)
            if maker is None:
                continue
            yield current, maker
            for given in inputs_of(maker):
                if given not in seen and len(seen) < limit:
                    seen.add(given)
                    queue.append(given)

    # --- the graph ----------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> dict[NodeId, Node]:
        return {node.id: node for node in self.of(Node)}

    def reached(self, root: NodeId | None) -> dict[NodeId, Node]:
        """The recorded nodes that a pass from `root` goes through, the root first."""
        if root is None or root not in self.nodes:
            return {}
        found = {root: self.nodes[root]}
        queue = [root]
        for current in queue:
            for edge in self.nodes[current].edges:
                if edge.node is not None and edge.node not in found and edge.node in self.nodes:
                    found[edge.node] = self.nodes[edge.node]
                    queue.append(edge.node)
        return found

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        ended = {event.id: event for event in self.of(BackwardEnded)}
        written: dict[BackwardId, list[GradWritten]] = {}
        returned: dict[BackwardId, list[GradReturned]] = {}
        for write in self.of(GradWritten):
            written.setdefault(write.backward, []).append(write)
        for back in self.of(GradReturned):
            returned.setdefault(back.backward, []).append(back)
        return tuple(
            Pass(began, ended.get(began.id), tuple(written.get(began.id, ())), tuple(returned.get(began.id, ())))
            for began in self.of(BackwardBegan)
        )

    def history(self, tensor: TensorId) -> list[History]:
        """Writes, resets and changes of a tensor's grad buffer, in order."""
        return list(self.ledger.history(tensor))

    # --- modules and optimizers -----------------------------------------------------------------------

    @cached_property
    def modules(self) -> dict[ModuleId, Module]:
        """Each module as last described."""
        return {module.id: module for module in self.of(Module)}

    @cached_property
    def owners(self) -> dict[TensorId, tuple[Owner, ...]]:
        """The modules that hold each parameter."""
        found: dict[TensorId, list[Owner]] = {}
        for module in self.modules.values():
            for name, tensor in module.parameters:
                found.setdefault(tensor, []).append(Owner(module.id, name))
        return {tensor: tuple(owners) for tensor, owners in found.items()}

    @cached_property
    def optimizers(self) -> dict[OptimizerId, tuple[Optimizer, ...]]:
        """Each optimizer's descriptions in order: when built, then whenever a group was added or a name given."""
        found: dict[OptimizerId, list[Optimizer]] = {}
        for optimizer in self.of(Optimizer):
            found.setdefault(optimizer.id, []).append(optimizer)
        return {key: tuple(told) for key, told in found.items()}

    @cached_property
    def held(self) -> dict[TensorId, tuple[OptimizerId, ...]]:
        """The optimizers that hold each tensor."""
        found: dict[TensorId, dict[OptimizerId, None]] = {}
        for optimizer in self.of(Optimizer):
            for group in optimizer.groups:
                for tensor in group.parameters:
                    found.setdefault(tensor, {})[optimizer.id] = None
        return {tensor: tuple(owners) for tensor, owners in found.items()}

    def steps_of(self, optimizer: OptimizerId) -> Iterator[OptimizerStepped]:
        return iter(self._stepped.get(optimizer, ()))

    @cached_property
    def _stepped(self) -> dict[OptimizerId, list[OptimizerStepped]]:
        found: dict[OptimizerId, list[OptimizerStepped]] = {}
        for step in self.of(OptimizerStepped):
            found.setdefault(step.optimizer, []).append(step)
        return found

    def resets_of(self, tensor: TensorId) -> Iterator[GradReset]:
        return (event for event in self.history(tensor) if isinstance(event, GradReset))


def inputs_of(maker: Maker) -> Iterator[TensorId]:
    """The tensors that an operation or a module call took, those in lists and tuples too."""
    if isinstance(maker, Operation):
        yield from _tensors_in(maker.inputs)
    else:
        yield from (shape.tensor for shape in maker.inputs if shape.tensor is not None)


def _values_in(event: AnyEvent) -> Iterator[tuple[TensorId, Value | None]]:
    """The values of tensors that an event tells."""
    if isinstance(event, Tensor):
        yield event.id, event.value
    elif isinstance(event, Operation):
        if event.outputs:
            yield event.outputs[0], event.value
    elif isinstance(event, ModuleCalled):
        if event.outputs and event.outputs[0].tensor is not None:
            yield event.outputs[0].tensor, event.value
    elif isinstance(event, DataChanged):
        yield event.tensor, event.after
    elif isinstance(event, OptimizerStepped):
        yield from ((update.tensor, update.after) for update in event.updates)


def _tensors_in(operands: Iterable[Operand]) -> Iterator[TensorId]:
    for operand in operands:
        if operand.tensor is not None:
            yield operand.tensor
        if operand.items is not None:
            yield from _tensors_in(operand.items)
