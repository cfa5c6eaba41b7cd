"""Backward in full: hooks, `inputs=`, `autograd.grad`, `create_graph`, anomaly mode. `sweep` is the plain case.

When the gradients are only numbers they flow as bare arrays (`kernels`), under `create_graph=True` as tensors
(`differentiable`); the same rules serve both.
"""

# mypy: no-warn-return-any
from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from . import kernels
from .graph import FREED_TEXT, Node, Output, SavedOutput, changed_in_place, public, unpack
from .modes import modes
from .sweep import accumulate, apply_on_tensors, fit
from .tensor import Tensor, wrap
from .views import release
from .warn import warn


class Flow:
    """One backward: what each node still waits for and what has arrived."""

    __slots__ = (
        "F",
        "accumulate",
        "arrived",
        "captured",
        "captures",
        "create",
        "inputs",
        "keep",
        "leaves",
        "needed",
        "ready",
        "waiting",
    )

    def __init__(
        self, edges: list[Any], waiting: dict[Any, int], keep: bool, create: bool, inputs: Any, accumulate: bool
    ):
        self.keep, self.create, self.inputs, self.accumulate = keep, create, inputs, accumulate
        if create:
            from . import differentiable

            self.F: Any = differentiable
        else:
            self.F = kernels
        self.waiting = waiting
        self.arrived: dict[Any, Any] = {}
        self.ready: list[Any] = []
        self.leaves: list[Tensor] = []
        self.captures: dict[Any, Any] = {}
        self.captured: dict[Any, Any] = {}
        self.needed: set[Any] | None = None
        if inputs is not None:
            self._find_needed(edges)

    def _find_needed(self, edges: list[Any]) -> None:
        """The nodes that lie between the roots and `inputs`."""
        targets: set[Any] = set()
        for t in self.inputs:
            if self.accumulate:
                targets.add(t if t._edge is None else public(t._edge)[0])
            else:
                edge = t if t._edge is None else t._edge
                node, number = (edge, 0) if isinstance(edge, Tensor) else public(edge)
                self.captures.setdefault(node, {}).setdefault(
                    number, edge if isinstance(edge, Tensor) else (node, number)
                )
        needed: set[Any] = set(targets)
        ordered = sorted((n for n in self.waiting if not isinstance(n, Tensor)), key=_sequence)
        for node in ordered:  # from the first made to the last: inputs before users
            for edge in node.edges:
                target = edge.node if edge.__class__ is Output else edge
                if target is not None and (target in needed or target in self.captures):
                    needed.add(node)
                    break
        self.needed = needed

    def start(self, edges: list[Any], gradients: tuple[Any, ...]) -> None:
        for edge, g in zip(edges, gradients, strict=False):
            target, number = (edge.node, edge.number) if edge.__class__ is Output else (edge, 0)
            shape, d = _metadata(target, number)
            value: Any = g if self.create else g._a
            if g.dtype is not d:
                value = self.F.cast(value, d)
            if g._a.shape != shape:
                value = self.F.sum_to(value, shape)
            self._arrive(target, number, value)
        self._process()

    def _arrive(self, target: Any, number: int, value: Any) -> None:
        """Add a gradient to what has arrived for an output; run a leaf as soon as it is complete."""
        left = self.waiting[target] - 1
        self.waiting[target] = left
        if value is not None:
            arrived = self.arrived
            if isinstance(target, Tensor) or target.outputs is None:
                old = arrived.get(target)
                arrived[target] = value if old is None else old + value
            else:
                slots = arrived.get(target)
                if slots is None:
                    slots = arrived[target] = [None] * len(target.outputs)
                slots[number] = value if slots[number] is None else slots[number] + value
        if left == 0:
            if isinstance(target, Tensor):
                self.leaves.append(target)
            else:
                heapq.heappush(self.ready, (-target.seq, target))

    def _process(self) -> None:
        ready, needed, arrived = self.ready, self.needed, self.arrived
        while ready or self.leaves:
            if self.leaves:
                leaves, self.leaves = self.leaves, []
                for leaf in leaves:
                    g = arrived.pop(leaf, None)
                    if g is not None:
                        self._leaf(leaf, g)
                continue
            node = heapq.heappop(ready)[1]
            g = arrived.pop(node, None)
            if g is None or (needed is not None and node not in needed and node not in self.captures):
                self._skip(node)
            else:
                self._node(node, g)

    def _skip(self, node: Node) -> None:
        """Nothing flows through this node: tell those behind it not to wait."""
        for edge in node.edges:
            if edge is not None:
                if edge.__class__ is Output:
                    self._arrive(edge.node, edge.number, None)
                else:
                    self._arrive(edge, 0, None)

    def _node(self, node: Any, g: Any) -> None:
        if node.tensor_hooks is not None or node.retains is not None or node.pre_hooks:
            g = self._before_node(node, g)
        if self.captures and node in self.captures:
            self._capture(node, g)
        if self.needed is not None and node not in self.needed:
            self._skip(node)
            return
        results = apply_rule(self.F, node, g)
        if node.post_hooks:
            results = self._after_node(node, results, g)
        if not self.keep:
            release(node)
        edges = node.edges
        if len(edges) == 1 and results.__class__ is not tuple:
            results = (results,)
        if modes.anomaly and modes.anomaly_check_nan:
            _refuse_nan(node, results)
        for index, edge in enumerate(edges):
            if edge is None:
                continue
            value = results[index]
            if edge.__class__ is Output:
                target, number = edge.node, edge.number
                shape, d = target.outputs[number]
            else:
                target, number = edge, 0
                if isinstance(edge, Tensor):
                    shape, d = edge._a.shape, edge.dtype
                else:
                    shape, d = edge.shape, edge.dtype
                    if shape is None:
                        shape, d = edge.outputs[0]
            if value is not None:
                if value.shape != shape:
                    value = fit(self.F, node, index, value, shape)
                if value.dtype is not (d if self.create else d.storage):
                    value = self.F.cast(value, d)
            self._arrive(target, number, value)

    # --- hooks and captures: values become tensors ------------------------------------------------------------

    def _lift(self, value: Any, d: Any) -> Any:
        return value if self.create or value is None else wrap(value, d)

    def _lower(self, value: Any) -> Any:
        return value if self.create or value is None else value._a

    def _before_node(self, node: Any, g: Any) -> Any:
        several = node.outputs is not None
        kinds = node.outputs if several else [(node.shape, node.dtype)]
        values = [self._lift(v, kinds[i][1]) for i, v in enumerate(g if several else [g])]
        for number, hooks in (node.tensor_hooks or {}).items():
            values[number] = _run_hooks(hooks, values[number])
        for number, reference in (node.retains or {}).items():
            tensor = reference()
            if tensor is not None and values[number] is not None:
                _store_retained(tensor, values[number], self.create)
        if node.pre_hooks:
            for hook in list(node.pre_hooks.values()):
                changed = hook(tuple(values))
                if changed is not None:
                    values = list(changed) if isinstance(changed, tuple) else [changed]
        lowered = [self._lower(v) for v in values]
        return lowered if several else lowered[0]

    def _as_hooks_see_it(self, node: Any, index: int, value: Any, edge: Any) -> Any:
        """A gradient in the shape and type of what it belongs to."""
        shape, d = _metadata(*_target(edge))
        if value.shape != shape:
            value = fit(self.F, node, index, value, shape)
        return self._lift(self.F.cast(value, d) if value.dtype is not (d if self.create else d.storage) else value, d)

    def _after_node(self, node: Any, results: Any, g: Any) -> Any:
        results = results if isinstance(results, tuple) else (results,)
        tensors = tuple(
            None if edge is None or r is None else self._as_hooks_see_it(node, index, r, edge)
            for index, (r, edge) in enumerate(zip(results, node.edges, strict=False))
        )
        several = node.outputs is not None
        made = node.outputs if several else [(node.shape, node.dtype)]
        outputs = tuple(self._lift(v, made[i][1]) for i, v in enumerate(g if several else [g]))
        for hook in list(node.post_hooks.values()):
            changed = hook(tensors, outputs)
            if changed is not None:
                tensors = changed if isinstance(changed, tuple) else (changed,)
        return tuple(self._lower(t) for t in tensors)

    def _capture(self, node: Any, g: Any) -> None:
        for number, key in self.captures[node].items():
            value = g if isinstance(node, Tensor) or node.outputs is None else g[number]
            if value is not None:
                d = node.dtype if isinstance(node, Tensor) or node.outputs is None else node.outputs[number][1]
                self.captured[key] = self._lift(value, d)

    def captured_in_order(self) -> tuple[Any, ...]:
        if self.accumulate or self.inputs is None:
            return ()
        return tuple(self.captured.get(t if t._edge is None else public(t._edge)) for t in self.inputs)

    # --- leaves -----------------------------------------------------------------------------------------------

    def _leaf(self, leaf: Tensor, g: Any) -> None:
        if self.needed is not None and leaf not in self.needed and leaf not in self.captures:
            return
        if leaf._hooks or leaf._acc_pre:
            value = self._lift(g, leaf.dtype)
            if leaf._hooks:
                value = _run_hooks(leaf._hooks, value)
            for hook in list((leaf._acc_pre or {}).values()):
                changed = hook((value,))
                if changed is not None:
                    value = changed[0] if isinstance(changed, tuple) else changed
            g = self._lower(value)
        if leaf in self.captures:
            self._capture(leaf, g)
            if self.needed is None or leaf not in self.needed:
                return
        if not leaf._rg:
            return
        if self.create:
            _accumulate_tensor(leaf, g)
        else:
            accumulate(leaf, g)
        if leaf._post_hooks:
            for hook in list(leaf._post_hooks.values()):
                hook(leaf)
        if leaf._acc_post:
            for hook in list(leaf._acc_post.values()):
                hook((), (self._lift(g, leaf.dtype),))


def _sequence(node: Node) -> int:
    return node.seq


def _target(edge: Any) -> tuple[Any, int]:
    return (edge.node, edge.number) if edge.__class__ is Output else (edge, 0)


def _metadata(target: Any, number: int) -> tuple[Any, Any]:
    """Shape and type that a gradient must have."""
    if isinstance(target, Tensor):
        return target._a.shape, target.dtype
    if target.outputs is not None:
        return target.outputs[number]
    return target.shape, target.dtype


def apply_rule(F: Any, node: Any, g: Any) -> Any:
    """Run a node's rule on bare arrays if gradients are arrays and the rule and the type allow it, else on tensors."""
    saved = node.saved
    if saved is None:
        raise RuntimeError(FREED_TEXT)
    versions = node.versions
    if F is kernels:
        if not node.raw or (node.outputs is None and not node.dtype.plain):
            return apply_on_tensors(node, g, saved)
        if versions is None:
            return node.rule(F, node, g, *saved)
        values = []
        for index, s in enumerate(saved):
            if isinstance(s, Tensor):
                version = versions[index]
                if version is not None and s._vc is not None and s._vc[0] != version:
                    raise changed_in_place(node, index, s)
                values.append(s._a)
            elif s.__class__ is SavedOutput:
                if s.counter is not None and s.counter[0] != s.version:
                    raise changed_in_place(node, index, s)
                values.append(s.array)
            else:
                values.append(s)
        return node.rule(F, node, g, *values)
    return node.rule(F, node, g, *[unpack(node, i, s) for i, s in enumerate(saved)])


def _run_hooks(hooks: Any, value: Any) -> Any:
    for hook in list(hooks.values()):
        if value is None:
            return None
        changed = hook(value)
        if changed is not None:
            if not isinstance(changed, Tensor):
                raise TypeError(
                    f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect type of grad; expected a "
                    "Tensor or None"
                )
            if changed._a.shape != value._a.shape:
                raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value")
            value = changed
    return value


def _store_retained(tensor: Tensor, value: Tensor, create: bool) -> None:
    if tensor._grad is None:
        tensor._grad = value if create else _own(value)
    elif create:
        tensor._grad = tensor._grad + value
    else:
        tensor._grad = wrap(tensor._grad._a + value._a, tensor.dtype)


def _own(value: Tensor) -> Tensor:
    return wrap(np.array(value._a) if isinstance(value._a, np.ndarray) else value._a, value.dtype)


def _accumulate_tensor(leaf: Tensor, g: Tensor) -> None:
    """Under create_graph the buffer keeps its history, so it is never written in place."""
    if leaf._grad is not None:
        leaf._grad = leaf._grad + g
        return
    from .ops.convert import CopyBackwards
    from .ops.define import record

    leaf._grad = wrap(np.array(g._a)[()], g.dtype)
    if g._rg:
        record(CopyBackwards, leaf._grad, (None, g))


def _refuse_nan(node: Node, results: Any) -> None:
    for index, r in enumerate(results if isinstance(results, tuple) else (results,)):
        a = r._a if isinstance(r, Tensor) else r
        if a is not None and np.isnan(a).any():
            import sys

            if node.stack:
                warn(
                    f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
                    + "".join(node.stack)
                )
            else:
                warn(
                    f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly "
                    "during forward pass for more information."
                )
            sys.stderr.flush()
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {index}th output.")


__all__ = ["Flow", "apply_rule"]
