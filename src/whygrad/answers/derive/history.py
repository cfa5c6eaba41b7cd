"""What each tensor held when: from which event its value came, and which later events wrote over it.

One forward pass over the ledger's events feeds it. It knows nothing of derivatives.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from whygrad.ledger.events import (
    AnyEvent,
    BackwardBegan,
    BackwardEnded,
    BackwardId,
    DataChanged,
    DepthChanged,
    GradChanged,
    Module,
    ModuleCalled,
    ModuleId,
    NodeId,
    Operation,
    OptimizerStepped,
    SiteId,
    Tensor,
    TensorId,
)
from whygrad.ledger.values import Value

Maker: TypeAlias = Operation | ModuleCalled

VIEWS = frozenset({
    "view", "reshape", "view_as", "reshape_as", "flatten", "ravel", "unflatten", "squeeze", "unsqueeze", "transpose",
    "swapaxes", "swapdims", "t", "T", "mT", "permute", "movedim", "moveaxis", "expand", "expand_as", "broadcast_to",
    "getitem", "select", "narrow", "split", "chunk", "unbind", "diagonal", "detach", "data", "real", "alias", "numpy",
})  # fmt: skip
"""Operations whose result may share its data with their first operand."""

SAME_DATA = frozenset({"detach", "data", "alias"})
"""Those among them whose result is the same data in the same shape."""

SHARING_LIMIT = 64
"""So many tensors that share their data are followed at once."""

ELSEWHERE = "it was written through another view of its data"
UNRECORDED = "it was written in place while no graph was recorded"


class Version(msgspec.Struct, frozen=True):
    """What a tensor held from event `seq` on: made by `maker` (as its output number `position`), or just seen.

    `value` is what was recorded of it. `lost` says why nothing is known: it was written by something whose
    result was not recorded, or which autograd does not see as the program's data does.
    """

    seq: int
    site: SiteId | None
    maker: Maker | None = None
    position: int = 0
    value: Value | None = None
    lost: str = ""


class History(msgspec.Struct):
    """The versions of every tensor, in order."""

    tensors: dict[TensorId, Tensor] = {}
    versions: dict[TensorId, list[Version]] = {}
    backwards: dict[BackwardId, BackwardBegan] = {}
    hidden_writes: dict[TensorId, list[Version]] = {}
    _buffers: list[TensorId] = []
    _nodes: set[NodeId] = set()
    _changed: list[DataChanged] = []
    _sharing: dict[TensorId, dict[TensorId, None]] = {}
    _same: dict[TensorId, TensorId] = {}
    _unseen: set[TensorId] = set()
    _writing: set[ModuleId] = set()

    def add(self, event: AnyEvent) -> None:
        match event:
            case Tensor():
                self.tensors[event.id] = event
                self.versions.setdefault(event.id, []).append(Version(event.seq, event.site, value=event.value))
                if event.origin == "grad":
                    self._buffers.append(event.id)
            case Operation():
                self._operation(event)
            case ModuleCalled():
                self._module(event)
            case DataChanged():
                self._data_changed(event)
            case OptimizerStepped():
                self._stepped(event)
            case Module() if "inplace=True" in event.config:
                self._writing.add(event.id)
            case BackwardBegan():
                self.backwards[event.id] = event
            case BackwardEnded() | GradChanged():
                for buffer in self._buffers:  # a grad buffer that the program holds is written to unseen
                    self._append(buffer, Version(event.seq, event.site, lost="a backward may have added to it"))
                self._buffers.clear()
            case DepthChanged(depth="light"):
                self._look_away(event)
            case _:
                pass

    def at(self, tensor: TensorId, seq: int) -> int | None:
        """The number of the version that the tensor held just before event `seq`."""
        if tensor not in self.tensors:
            return None
        versions = self.versions[tensor]
        return next((number for number in range(len(versions) - 1, -1, -1) if versions[number].seq < seq), None)

    def hidden_write(self, tensor: TensorId, after: int, before: int) -> Version | None:
        """A write that autograd cannot see (through `.data`), between two events."""
        return next((write for write in self.hidden_writes.get(tensor, ()) if after < write.seq < before), None)

    # --- results --------------------------------------------------------------------------------------

    def _operation(self, event: Operation) -> None:
        name = event.function.rsplit(".", 1)[-1]
        for position, tensor in enumerate(event.outputs):
            value = event.value if position == 0 else None
            if event.in_place and position == 0:
                self._write(tensor, event, value)
            elif self._is_new(tensor):
                self._append(tensor, Version(event.seq, event.site, event, position, value))
                source = event.inputs[0].tensor if event.inputs else None
                if name in VIEWS and source is not None and source != tensor:
                    self._share(source, tensor, name, event.seq)
        if event.node is not None:
            self._nodes.add(event.node)

    def _module(self, event: ModuleCalled) -> None:
        for position, output in enumerate(event.outputs):
            if output.tensor is None:
                continue
            written = event.module in self._writing and any(output.tensor == shape.tensor for shape in event.inputs)
            if self._is_new(output.tensor) or written:
                value = event.value if position == 0 else None
                latest = self.versions[output.tensor][-1]
                if written and any(change.seq == latest.seq for change in self._changed):
                    self.versions[output.tensor].pop()  # the same write, seen by the version counter first
                self._append(output.tensor, Version(event.seq, event.site, event, position, value))

    def _is_new(self, tensor: TensorId) -> bool:
        """Whether its maker is still to come: it was only just met, as a result."""
        known = self.tensors.get(tensor)
        if known is None:
            return False
        only_seen = all(version.maker is None and not version.lost for version in self.versions[tensor])
        whole = known.value is not None and known.value.items is not None
        return only_seen and (known.origin == "result" or not whole)

    # --- writes in place ------------------------------------------------------------------------------

    def _write(self, tensor: TensorId, event: Operation, value: Value | None) -> None:
        """An operation wrote into its operand: a new version, made from the one before."""
        self._changed = [change for change in self._changed if change.site == event.site]
        for change in self._changed:  # the same write, seen by the version counters first
            versions = self.versions[change.tensor]
            if versions[-1].seq != change.seq:
                continue
            if change.tensor == tensor:
                versions.pop()
                value = value or change.after
            elif event.node is not None:  # another tensor got a part in the graph with it
                versions[-1] = Version(change.seq, change.site, lost=ELSEWHERE)
        if event.node is not None and event.node in self._nodes:
            self._append(tensor, Version(event.seq, event.site, lost=UNRECORDED))
        else:
            self._append(tensor, Version(event.seq, event.site, event, 0, value))
        self._spread(tensor, event, value)

    def _data_changed(self, event: DataChanged) -> None:
        if event.tensor not in self.versions:
            return
        if event.hidden:
            self._hide(event.tensor, event.seq, event.site)
        latest = self.versions[event.tensor][-1]
        if isinstance(latest.maker, Operation) and latest.maker.in_place and latest.site == event.site:
            return
        lost = "" if event.after is not None else f"`{event.by}` wrote into it"
        self._append(event.tensor, Version(event.seq, event.site, value=event.after, lost=lost))
        self._changed = [*(change for change in self._changed if change.site == event.site), event]

    def _stepped(self, event: OptimizerStepped) -> None:
        for update in event.updates:
            if update.changed:
                lost = "" if update.after is not None else "the optimizer's step changed it"
                self._append(update.tensor, Version(event.seq, event.site, value=update.after, lost=lost))

    def _look_away(self, event: DepthChanged) -> None:
        """From here on steps may change parameters unseen."""
        for tensor, known in self.tensors.items():
            if known.leaf and (known.requires_grad or known.origin == "parameter"):
                self._append(tensor, Version(event.seq, event.site, lost="steps that were recorded lightly changed it"))

    def _append(self, tensor: TensorId, version: Version) -> None:
        self.versions.setdefault(tensor, []).append(version)

    # --- tensors that share their data ----------------------------------------------------------------

    def _share(self, source: TensorId, view: TensorId, name: str, seq: int) -> None:
        group = self._sharing.setdefault(source, {source: None})
        group[view] = None
        self._sharing[view] = group
        if len(group) > SHARING_LIMIT:  # a long loop: the oldest view is given up
            oldest = next(tensor for tensor in group if tensor != source)
            del group[oldest], self._sharing[oldest]
            self._append(oldest, Version(seq, None, lost=ELSEWHERE))
        if name in SAME_DATA:
            self._same[view] = self._same.get(source, source)
        if name == "data":
            self._unseen.add(view)

    def _spread(self, tensor: TensorId, event: Operation, value: Value | None) -> None:
        """A write reaches every tensor that shares the data: an alias gets the value, other views lose theirs."""
        for other in self._sharing.get(tensor, ()):
            if other == tensor:
                continue
            same = self._same.get(other, other) == self._same.get(tensor, tensor)
            known = same and event.node is None and value is not None and value.items is not None
            version = Version(event.seq, event.site, value=value if known else None, lost="" if known else ELSEWHERE)
            self._append(other, version)
            if tensor in self._unseen or other in self._unseen:
                self._hide(other, event.seq, event.site)

    def _hide(self, tensor: TensorId, seq: int, site: SiteId | None) -> None:
        self.hidden_writes.setdefault(tensor, []).append(Version(seq, site))
