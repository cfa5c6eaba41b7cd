"""Nodes of the backward graph: what made a tensor, from what, and what its backward rule needs.

An *edge* is where a gradient goes next: a `Node` (its output 0), an `Output` (a node's other outputs) or a leaf
`Tensor`, whose gradient is accumulated. A tensor that needs no gradient has the edge None.
"""

# mypy: no-warn-return-any
from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from . import dtypes

if TYPE_CHECKING:
    from .tensor import Tensor

sequence = itertools.count()
"""Numbers nodes in the order of their making: backward runs them from the last to the first."""


def upcoming() -> int:
    """The number that the next node will get."""
    return int(repr(sequence)[len("count(") : -1])  # looks without taking it


FREED_TEXT = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class Node:
    """One operation that was recorded.

    `rule(F, node, grad, *saved)` gives the gradients of its inputs, in the order of `edges`. `F` is a namespace of
    functions: NumPy kernels on arrays when gradients are only numbers, differentiable functions on tensors under
    `create_graph=True`; a rule is written once for both.

    `saved` holds tensors, saved outputs and plain constants; `versions` the version that each saved tensor had, or
    None if the rule needs no tensor (such a node can run backward any number of times).
    """

    __slots__ = ("__dict__", "__weakref__", "dtype", "edges", "saved", "seq", "shape", "versions")

    edges: tuple[Any, ...]
    saved: tuple[Any, ...] | None
    versions: tuple[Any, ...] | None
    shape: tuple[int, ...] | None
    dtype: dtypes.dtype
    seq: int

    rule: Any = None
    raw = True
    """Whether the rule may be run on bare arrays."""
    outputs: Any = None
    tensor_hooks: dict[int, Any] | None = None
    retains: dict[int, Any] | None = None
    pre_hooks: Any = None
    post_hooks: Any = None
    stack: Any = None
    watched = False
    """Whether a hook or `retain_grad` waits here."""

    def name(self) -> str:
        return type(self).__name__

    def _sequence_nr(self) -> int:
        return self.seq

    @property
    def metadata(self) -> dict[Any, Any]:
        return self.__dict__.setdefault("_metadata", {})

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple(public(edge) for edge in self.edges)

    @property
    def requires_grad(self) -> bool:
        return True

    def register_hook(self, hook: Any) -> RemovableHandle:
        self.watched = True
        if self.post_hooks is None:
            self.post_hooks = OrderedDict()
        return RemovableHandle(self.post_hooks, hook)

    def register_prehook(self, hook: Any) -> RemovableHandle:
        self.watched = True
        if self.pre_hooks is None:
            self.pre_hooks = OrderedDict()
        return RemovableHandle(self.pre_hooks, hook)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return self._saved(name[len("_saved_") :])
        if name.startswith("_raw_saved_"):
            return SavedTensor(self, name[len("_raw_saved_") :])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    saved_names: tuple[str, ...] = ()

    def _saved(self, name: str) -> Any:
        if name in self.saved_names:
            if self.saved is None:
                raise RuntimeError(FREED_TEXT)
            index = self.saved_names.index(name)
            return unpack(self, index, self.saved[index])
        if name in self.__dict__.get("constants", {}):
            return self.__dict__["constants"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '_saved_{name}'")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Output:
    """The edge to output `number` (not 0) of a node with several outputs."""

    __slots__ = ("node", "number")

    def __init__(self, node: Node, number: int):
        self.node = node
        self.number = number


class SavedOutput:
    """An operation's own result, kept without keeping the tensor (which keeps the node)."""

    __slots__ = ("array", "counter", "dtype", "number", "version")

    def __init__(self, result: Tensor, number: int = 0):
        self.array = result._a
        self.counter = result._vc
        self.version = result._vc[0] if result._vc is not None else 0
        self.dtype = result.dtype
        self.number = number


class SavedTensor:
    """A slot of a node, unopened: what lies in it can be looked at (`data`) although its version moved on."""

    unpack_hook = None

    def __init__(self, node: Node, slot: str):
        if slot not in node.saved_names:
            raise AttributeError(f"'{type(node).__name__}' object has no attribute '_raw_saved_{slot}'")
        self.held = None if node.saved is None else node.saved[node.saved_names.index(slot)]

    @property
    def data(self) -> Any:
        """The tensor itself, or one on a saved result's memory; None for a slot that holds no tensor."""
        from .tensor import Tensor, wrap

        held = self.held
        if isinstance(held, Tensor):
            return held
        if not isinstance(held, SavedOutput):
            return None
        out = wrap(held.array, held.dtype)
        out._vc = held.counter
        return out


class AccumulateGrad(Node):
    """What a leaf looks like from the graph: made only when somebody looks."""

    __slots__ = ("variable",)
    variable: Tensor

    def __init__(self, variable: Tensor):
        self.variable = variable
        self.edges = ()
        self.saved = ()
        self.versions = None
        self.seq = (1 << 64) - 1
        self.shape = tuple(variable.shape)
        self.dtype = variable.dtype

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, hook: Any) -> RemovableHandle:
        return RemovableHandle(self.variable.__dict__.setdefault("_acc_post", OrderedDict()), hook)

    def register_prehook(self, hook: Any) -> RemovableHandle:
        return RemovableHandle(self.variable.__dict__.setdefault("_acc_pre", OrderedDict()), hook)


def public(edge: Any) -> tuple[Any, int]:
    """An edge as `next_functions` shows it."""
    if edge is None:
        return (None, 0)
    if isinstance(edge, Node):
        return (edge, 0)
    if isinstance(edge, Output):
        return (edge.node, edge.number)
    return (accumulator(edge), 0)


_accumulators: weakref.WeakValueDictionary[int, AccumulateGrad] = weakref.WeakValueDictionary()


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The leaf's AccumulateGrad node: one and the same as long as somebody holds it."""
    node = _accumulators.get(id(leaf))
    if node is None or node.variable is not leaf:
        node = _accumulators[id(leaf)] = AccumulateGrad(leaf)
    return node


class RemovableHandle:
    """What registering a hook returns: `remove()` takes it away; a context manager too."""

    __module__ = "torch.utils.hooks"
    next_id = 0

    def __init__(self, hooks: Any, hook: Any = None, *, extra_dict: Any = None, prepend: bool = False):
        self.hooks_dict_ref = weakref.ref(hooks) if type(hooks) is not dict else lambda: hooks
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra = extra_dict or ()
        if hook is not None:
            hooks[self.id] = hook
            if prepend:
                hooks.move_to_end(self.id, last=False)

    def remove(self) -> None:
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)
        for other in self.extra if isinstance(self.extra, (list, tuple)) else (self.extra,):
            other.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def node_class(
    name: str, rule: Any, saved_names: tuple[str, ...] = (), raw: bool = True, base: type[Node] = Node
) -> type[Node]:
    """A node type for one operation, named as PyTorch names it."""
    namespace = {"__slots__": (), "rule": staticmethod(rule), "saved_names": saved_names, "raw": raw}
    return type(name, (base,), namespace)


def changed_in_place(node: Node, index: int, saved: Any) -> RuntimeError:
    """PyTorch's text for a saved tensor whose version moved on."""
    if isinstance(saved, SavedOutput):
        now, kind, shape = saved.counter[0], saved.dtype, saved.array.shape
        then = saved.version
        where = f", which is output {saved.number} of {_short(node)},"
    else:
        assert node.versions is not None
        now, kind, shape, then = saved._vc[0], saved.dtype, saved._a.shape, node.versions[index]
        edge = saved.__dict__.get("_edge_when_saved") or saved._edge
        where = ""
        if saved._view is not None:
            where = ", which is output 0 of AsStrided,"  # PyTorch reads a written base's views anew before it reports
        elif edge is not None:
            maker, number = public(edge)
            where = f", which is output {number} of {_short(maker)},"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{kind.legacy}Tensor [{', '.join(map(str, shape))}]]{where} is at version {now}; expected version "
        f"{then} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def _short(node: Node) -> str:
    """PyTorch 2.13 speaks of `Sigmoid` where the node is a SigmoidBackward0."""
    name = node.name()
    head, found, tail = name.rpartition("Backward")
    return head if found and (tail == "" or tail.isdigit()) else name


def unpack(node: Node, index: int, saved: Any) -> Any:
    """A saved value as a tensor with its history, its version checked."""
    from .tensor import Tensor, wrap

    if isinstance(saved, SavedOutput):
        if saved.counter is not None and saved.counter[0] != saved.version:
            raise changed_in_place(node, index, saved)
        out = wrap(saved.array, saved.dtype)
        out._vc = saved.counter
        out._edge = node if saved.number == 0 else Output(node, saved.number)
        out._rg = True
        return out
    if isinstance(saved, Tensor):
        version = node.versions[index] if node.versions is not None else None
        if version is not None and saved._vc[0] != version:
            raise changed_in_place(node, index, saved)
    return saved
