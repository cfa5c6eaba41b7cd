"""What stopped a backward: the node that raised, the pass that had freed it, the line that wrote into what it saved."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from whygrad.engines.pytorch.graph import Graph, Label, Walk
from whygrad.engines.pytorch.tensors import Tensors, version
from whygrad.engines.pytorch.writes import Writes
from whygrad.ledger.events import BackwardId, SiteId, TensorId

VERSION_ERROR = re.compile(r"is at version (\d+); expected version (\d+)")
NAMED_NODE = re.compile(r"Function '(\w+)' returned")


class Culprit(msgspec.Struct, frozen=True, eq=False):
    """What is known of the cause; None for what is not."""

    label: Label | None = None
    freed_by: BackwardId | None = None
    written: TensorId | None = None
    written_by: SiteId | None = None


class Blame:
    """Finds the culprit in what the pass could reach."""

    def __init__(self, torch: Any, tensors: Tensors, graph: Graph, writes: Writes) -> None:
        self.torch = torch
        self.tensors = tensors
        self.graph = graph
        self.writes = writes

    def find(self, walk: Walk, error: BaseException | None, text: str) -> Culprit:
        if "second time" in text:
            for _, label in self._in_order(walk):
                if label.freed_by is not None:
                    return Culprit(label, label.freed_by)
        versions = VERSION_ERROR.search(text)
        if versions is not None:
            return self._writer(walk, found=int(versions[1]), expected=int(versions[2]))
        return Culprit(self._python_node(walk, error) or self._named_node(walk, text))

    def _in_order(self, walk: Walk) -> list[tuple[Any, Label]]:
        """The nodes in the order in which the engine takes them: the last made first."""
        return sorted(walk.nodes, key=lambda item: -item[0]._sequence_nr())

    # --- versions -----------------------------------------------------------------------------------

    def _writer(self, walk: Walk, *, found: int, expected: int) -> Culprit:
        nodes = self._in_order(walk)
        for node, label in nodes:
            for tensor in self._changed(node, found, expected):
                base = tensor if tensor._base is None else tensor._base
                known = self.tensors.find(tensor) or self.tensors.find(base) or self._result(label, tensor)
                written = None if known is None else known.id
                return Culprit(label, None, written, self.writes.writer(tensor, expected))
        for _, label in nodes:
            for used in (*label.operands, *label.results):
                if used is None or used.version != expected:
                    continue
                tensor = self.tensors.alive(used.tensor)
                if tensor is not None and version(tensor) == found:
                    return Culprit(label, None, used.tensor, self.writes.writer(tensor, expected))
        return Culprit()

    def _changed(self, node: Any, found: int, expected: int) -> list[Any]:
        """The saved tensors of `node` that give this very error when they are taken out."""
        changed = []
        for slot in self.graph.saves(node):
            raw = getattr(node, f"_raw_saved_{slot}", None)
            for one in raw if isinstance(raw, tuple) else (raw,):
                if not hasattr(one, "unpack_hook") or one.unpack_hook is not None:
                    continue  # empty, or packed by a hook of the program's, which is not run here
                tensor = one.data
                if tensor is None or version(tensor) != found:
                    continue
                if self._expected(node, slot) == (found, expected):
                    changed.append(tensor)
        return changed

    def _expected(self, node: Any, slot: str) -> tuple[int, int] | None:
        """(version, expected version) that PyTorch names when the slot is read."""
        try:
            getattr(node, "saved_tensors" if slot == "tensors" else f"_saved_{slot}")
        except RuntimeError as error:
            versions = VERSION_ERROR.search(str(error))
            return None if versions is None else (int(versions[1]), int(versions[2]))
        return None

    def _result(self, label: Label, tensor: Any) -> Any:
        for result in label.results:
            original = self.tensors.alive(result.tensor)
            if original is not None and original.data_ptr() == tensor.data_ptr():
                return self.tensors.find(original)
        return None

    # --- nodes that raised ----------------------------------------------------------------------------

    def _python_node(self, walk: Walk, error: BaseException | None) -> Label | None:
        """The custom `autograd.Function` whose backward raised: the object that its `apply` runs for."""
        path = self.torch.autograd.function.__file__
        trace = None if error is None else error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename == path and code.co_name.startswith("apply"):
                context = trace.tb_frame.f_locals.get("self")
                for node, label in walk.nodes:
                    if node is context:
                        return label
            trace = trace.tb_next
        return None

    def _named_node(self, walk: Walk, text: str) -> Label | None:
        """The only node with the name in the error's text."""
        named = NAMED_NODE.search(text)
        if named is None:
            return None
        labels = [label for node, label in walk.nodes if str(node.name()).rsplit("::", 1)[-1] == named[1]]
        return labels[0] if len(labels) == 1 else None
