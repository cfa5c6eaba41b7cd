"""The recorder of a program on this engine: PyTorch's recorder, told where the insides differ.

The engine is Python, so everything that the recorder listens to is a Python function here too, and is probed in the
same way: a program that nobody records pays nothing. Only what lies below the API is read otherwise: numbers come
straight from the arrays, what a node saved from its slots, and a backward is one function of this engine.
"""

from __future__ import annotations

from typing import Any

from whygrad.engines.pytorch.graph import Graph, Kind, Label
from whygrad.engines.pytorch.recorder import Recorder
from whygrad.engines.pytorch.values import Reader
from whygrad.engines.pytorch.wiring import Wiring
from whygrad.ledger.events import Saved
from whygrad.ledger.values import WHOLE_LIMIT, Value, whole

from .graph import AccumulateGrad, SavedOutput
from .tensor import Tensor


class ArrayReader(Reader):
    """Reads values without a tensor in between, so that a scalar stays a scalar."""

    def inside_transform(self) -> bool:
        return False

    def visible(self) -> bool:
        return False

    def read(self, tensor: Any, limit: int = WHOLE_LIMIT) -> Value:
        a = tensor._a
        if a.size <= limit:
            return whole(a.shape, self._names[tensor.dtype], [a.item()] if a.ndim == 0 else a.ravel().tolist())
        return self._statistics(tensor)

    def scalar(self, tensor: Any) -> float | None:
        if type(tensor) is not Tensor or tensor._a.size != 1:
            return None
        item = tensor._a.item()
        return item if type(item) is float else None

    def _opaque(self, tensor: Any) -> bool:
        return False

    def _array(self, tensor: Any) -> Any:
        if tensor.dtype not in self._arrays:
            return None
        return tensor.detach().numpy()


class NodeGraph(Graph):
    """The graph, with what this engine's nodes keep."""

    def saves(self, node: Any) -> tuple[str, ...]:
        """The names of what a node keeps; "" stands for a node that keeps something under no name of PyTorch's."""
        return node.saved_names or (() if node.versions is None else ("",))

    def _kind(self, node: Any) -> Kind:
        kind = self._kinds.get(type(node))
        if kind is None:
            accumulates = isinstance(node, AccumulateGrad)
            kind = self._kinds[type(node)] = Kind((), accumulates, isinstance(node, self._python))
        return kind

    def _saved(self, held: Any, slot: str, label: Label) -> Saved | None:
        if held is None:
            return None
        inside = held.held
        if isinstance(inside, SavedOutput):
            for result in label.results:
                original = self.tensors.alive(result.tensor)
                if original is not None and original._vc is inside.counter:
                    return Saved(slot, result.tensor, result.shape, result.version)
            return Saved(slot, None, tuple(inside.array.shape))
        if isinstance(inside, Tensor):
            return self._held(slot, inside, label)
        return None


class EmbeddedWiring(Wiring):
    """Which of this engine's functions tell what."""

    def _backwards(self) -> tuple[Any, Any, Any]:
        """A backward is `run` of this engine, which takes all it is given by position."""
        enter, leave, failed = super()._backwards()

        def run(roots: Any, gradients: Any, keep: bool, create: bool, inputs: Any, accumulate: bool, *_: Any) -> None:
            enter(roots, (gradients, keep, create, inputs), {"accumulate_grad": accumulate})

        return run, leave, failed

    def _compiling(self) -> None:
        """`torch.compile` is refused by this engine: nothing to leave alone."""


class EmbeddedRecorder(Recorder):
    """Records one program on this engine."""

    reads = ArrayReader
    walks = NodeGraph
