"""The common backward, short and quick: all leaves wanted, no graph of the gradients, no hook on the way.

`flow` does the rest (hooks, `inputs=`, `autograd.grad`, `create_graph`); a test holds that both agree.
"""

from __future__ import annotations

import sys
from heapq import heappop, heappush, heapreplace
from typing import Any

import numpy as np

from . import kernels
from .graph import FREED_TEXT, Output, SavedOutput, changed_in_place, unpack
from .tensor import Tensor, brackets, wrap
from .views import CopySlices, release

_CAN_TELL = sys.implementation.name == "cpython" and sys.version_info < (3, 14)
"""Whether the reference count says that an array is ours alone; from 3.14 on, borrowed references hide some holders."""


def count(edges: list[Any]) -> tuple[dict[Any, int], bool]:
    """How many gradients each node and leaf will get, and whether anything on the way is watched by a hook."""
    waiting: dict[Any, int] = {}
    stack = []
    watched = False
    for edge in edges:
        node = edge.node if edge.__class__ is Output else edge
        if node in waiting:
            waiting[node] += 1
        else:
            waiting[node] = 1
            stack.append(node)
    while stack:
        node = stack.pop()
        if isinstance(node, Tensor):
            if node._hooks or node._post_hooks or node._acc_pre or node._acc_post:
                watched = True
            continue
        if node.watched:
            watched = True
        for edge in node.edges:
            if edge is None:
                continue
            if edge.__class__ is Output:
                edge = edge.node
            if edge in waiting:
                waiting[edge] += 1
            else:
                waiting[edge] = 1
                stack.append(edge)
    return waiting, watched


def sweep(edges: list[Any], values: list[Any], waiting: dict[Any, int], keep: bool) -> None:
    """Send bare arrays from the roots to the leaves."""
    arrived: dict[Any, Any] = {}
    ready: list[Any] = []
    node: Any = None
    following: Any = None
    """A node that is complete, and what has arrived at it: taken without the detour through the heap."""
    results: tuple[Any, ...] = tuple(values)
    values.clear()
    g: Any = None
    args: Any = None
    while True:
        for index, edge in enumerate(edges):
            if edge is None:
                continue
            value = results[index]
            if isinstance(edge, Tensor):
                d = edge.dtype
                if value is not None and (value.__class__ is not d.scalar or edge._a.shape):
                    if value.shape != edge._a.shape:
                        value = fit(kernels, node, index, value, edge._a.shape)
                    if value.dtype is not d.storage:
                        value = kernels.cast(value, d)
                left = waiting[edge] - 1
                if left:
                    waiting[edge] = left
                    if value is not None:
                        old = arrived.get(edge)
                        arrived[edge] = value if old is None else old + value
                    continue
                if edge in arrived:
                    old = arrived.pop(edge)
                    value = old if value is None else old + value
                    old = None
                if value is not None and edge._rg:
                    accumulate(edge, value, _CAN_TELL and sys.getrefcount(value) <= 3)
                continue
            if edge.__class__ is Output:
                target, number = edge.node, edge.number
                shape, d = target.outputs[number]
            else:
                target, number = edge, 0
                shape, d = edge.shape, edge.dtype
                if shape is None:
                    shape, d = edge.outputs[0]
            if value is not None and (value.__class__ is not d.scalar or shape):
                if value.shape != shape:
                    value = fit(kernels, node, index, value, shape)
                if value.dtype is not d.storage:
                    value = kernels.cast(value, d)
            left = waiting[target] - 1
            if target.outputs is not None:
                if value is not None:
                    slots = arrived.get(target)
                    if slots is None:
                        slots = arrived[target] = [None] * len(target.outputs)
                    slots[number] = value if slots[number] is None else slots[number] + value
                if left:
                    waiting[target] = left
                    continue
                value = arrived.pop(target, None)
            elif left:
                waiting[target] = left
                if value is not None:
                    old = arrived.get(target)
                    arrived[target] = value if old is None else old + value
                continue
            elif target in arrived:
                old = arrived.pop(target)
                value = old if value is None else old + value
            if following is None:
                following = (-target.seq, target, value)
            else:
                heappush(ready, (-target.seq, target, value))
        results = value = g = old = None  # type: ignore[assignment]
        if following is None:
            if not ready:
                return
            _, node, g = heappop(ready)
        elif ready and ready[0][0] < following[0]:
            _, node, g = heapreplace(ready, following)
        else:
            _, node, g = following
        following = None
        edges = node.edges
        if g is None:
            results = (None,) * len(edges)
            continue
        saved = node.saved
        if saved is None:
            raise RuntimeError(FREED_TEXT)
        versions = node.versions
        if not node.raw or (node.outputs is None and not node.dtype.plain):
            results = apply_on_tensors(node, g, saved)
        elif versions is None:
            results = node.rule(kernels, node, g, *saved)
        else:
            args = []
            for index, s in enumerate(saved):
                if isinstance(s, Tensor):
                    version = versions[index]
                    if version is not None and s._vc is not None and s._vc[0] != version:
                        raise changed_in_place(node, index, s)
                    args.append(s._a)
                elif s.__class__ is SavedOutput:
                    if s.counter is not None and s.counter[0] != s.version:
                        raise changed_in_place(node, index, s)
                    args.append(s.array)
                else:
                    args.append(s)
            results = node.rule(kernels, node, g, *args)
            args = saved = None
        if not keep:
            if versions is not None:
                node.saved = None
            elif node.__class__ is CopySlices:
                release(node)
        if results.__class__ is not tuple:
            results = (results,)


def accumulate(leaf: Tensor, g: Any, alone: bool = False) -> None:
    """Set `.grad` to memory of its own, or add into the buffer that is there."""
    old = leaf._grad
    if old is None:
        if isinstance(g, np.ndarray) and not (alone and _is_own(g)):
            g = np.array(g, order="C")
        leaf._grad = wrap(g, leaf.dtype)
        return
    a = old._a
    if old.dtype.plain:
        if isinstance(a, np.ndarray):
            a += g
        else:
            old._a = a + g
        if old._vc is not None:
            old._vc[0] += 1
    else:
        old.add_(wrap(g, leaf.dtype))


def _is_own(g: Any) -> bool:
    """Whether the memory of an array that only we hold is nobody else's: its own, or all of what only it shows."""
    if not g.flags.c_contiguous:
        return False
    base = g.base
    return base is None or (
        base.__class__ is np.ndarray and base.base is None and base.size == g.size and sys.getrefcount(base) <= 3
    )


def fit(F: Any, node: Any, index: int, value: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over the dimensions that were broadcast."""
    if kernels.expandable(shape, tuple(value.shape)):
        return F.sum_to(value, shape)
    raise RuntimeError(
        f"Function {node.name()} returned an invalid gradient at index {index} - got {brackets(value.shape)} but "
        "expected shape "
        f"compatible with {brackets(shape)}"
    )


def apply_on_tensors(node: Any, g: Any, saved: tuple[Any, ...]) -> Any:
    """For rules that need tensors (custom functions) and types that NumPy does not compute in."""
    from . import differentiable

    if node.outputs is None:
        lifted: Any = wrap(g, node.dtype)
    else:
        lifted = [None if v is None else wrap(v, node.outputs[i][1]) for i, v in enumerate(g)]
    results = node.rule(differentiable, node, lifted, *[unpack(node, i, s) for i, s in enumerate(saved)])
    if isinstance(results, tuple):
        return tuple(r._a if isinstance(r, Tensor) else r for r in results)
    return results._a if isinstance(results, Tensor) else results
