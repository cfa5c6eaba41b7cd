"""Views and in-place writes: shared memory, shared versions, and how a write rewrites the history of its aliases.

PyTorch's rules: a write into a base gives each of its views a new history (AsStrided of the base), a write into a view
gives the base one (CopySlices: the old base with a slice replaced), and some writes are refused.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from .graph import Node, Output, SavedOutput, public, sequence
from .modes import modes
from .tensor import Tensor, brackets, share, wrap

as_strided_array = np.lib.stride_tricks.as_strided


class View:
    """Whose memory a tensor shows: always the tensor that owns it, never another view."""

    __slots__ = ("base", "kind", "maker", "version")

    def __init__(self, base: Tensor, kind: str, maker: Any):
        self.base = base
        self.version = base._vc[0] if base._vc is not None else 0
        self.kind = kind
        """`plain`, `no_grad` (made without a graph), `several` (one of several outputs), `inference` or `custom`."""
        self.maker = maker


def view_of(x: Tensor, a: Any, kind: str = "plain", d: Any = None) -> Tensor:
    """A tensor on `a`, a NumPy view of `x`'s memory, without history yet."""
    out = wrap(a, d or x.dtype)
    counter = out._vc = x._vc
    if counter is None:
        return out
    base = x if x._view is None else x._view.base
    if not modes.grad and kind != "custom":
        kind = "inference" if modes.inference else "no_grad"
        out._rg = x._rg  # without a node: a leaf of its own
    elif x._view is not None and x._view.kind != "plain" and kind == "plain":
        kind = x._view.kind
    out._view = View(base, kind, None)
    if len(counter) > 64:
        counter[1:] = [r for r in counter[1:] if r() is not None]
    counter.append(weakref.ref(out))
    return out


def check_writable(x: Tensor, allow_leaf: bool = False) -> None:
    """Refuse the in-place writes that PyTorch refuses."""
    view = x._view
    if modes.grad and not allow_leaf:
        if view is not None:
            if view.kind == "several" and (x._rg or view.base._rg):
                name, number = view.maker
                raise RuntimeError(
                    f"Output {number} of {name} is a view and is being modified inplace. This view is the output of a "
                    "function that returns multiple views. Such functions do not allow the output views to be "
                    "modified inplace. You should replace the inplace operation by an out-of-place one."
                )
            if view.kind == "no_grad" and (x._rg or view.base._rg):
                raise RuntimeError(
                    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given "
                    "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
                    "moving both the view and the inplace either both inside the no_grad block (if you don't want the "
                    "inplace to be tracked) or both outside (if you want the inplace to be tracked)."
                )
            if view.kind == "custom" and (x._rg or view.base._rg):
                name, number = view.maker
                raise RuntimeError(
                    f"Output {number} of {name} is a view and is being modified inplace. This view was created inside "
                    "a custom Function (or because an input was returned as-is) and the autograd logic to handle "
                    "view+inplace would override the custom backward associated with the custom Function, leading to "
                    "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
                    "custom Function."
                )
            if view.base._edge is None and view.base._rg:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
        if x._rg and x._edge is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def check_overlap(x: Tensor) -> None:
    a = x._a
    if a.ndim and a.size and any(stride == 0 and size > 1 for stride, size in zip(a.strides, a.shape, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def write(x: Tensor, a: Any) -> None:
    """Put numbers into a tensor's memory and count the write."""
    if isinstance(x._a, np.ndarray):
        x._a[...] = a
    else:
        x._a = x.dtype.scalar(a)
    bump(x)


def bump(x: Tensor) -> None:
    """Count a write. PyTorch refuses one into an inference tensor only here, when the numbers are already written."""
    if x._vc is not None:
        x._vc[0] += 1
    elif not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def adopt(x: Tensor, result: Tensor, cast: bool = False) -> Tensor:
    """Make `x` hold `result`, which was computed from it out of place: its numbers and its history."""
    from .dtypes import can_cast, store

    a = result._a
    if a.shape != x._a.shape:
        raise RuntimeError(
            f"output with shape {brackets(x._a.shape)} doesn't match the broadcast shape {brackets(a.shape)}"
        )
    check_overlap(x)
    if result.dtype is not x.dtype:
        if not cast and not can_cast(result.dtype, x.dtype):
            raise RuntimeError(
                f"result type {result.dtype.legacy} can't be cast to the desired output type {x.dtype.legacy}"
            )
        a = store(a, x.dtype)
    if not result._rg:
        write(x, a)
        return x
    node, _number = public(result._edge)
    saved = node.saved
    if saved:
        node.saved = tuple(_before_write(s, x) if s is x else s for s in saved)
        if node.versions is not None:
            node.versions = tuple(0 if s is x else version for s, version in zip(saved, node.versions, strict=True))
    write(x, a)
    for s in saved or ():
        if s.__class__ is SavedOutput:
            s.counter = x._vc
            s.version = x._vc[0] if x._vc is not None else 0
            s.array = x._a
    set_history(x, result._edge)
    return x


def _before_write(saved: Any, x: Tensor) -> Tensor:
    """PyTorch saves a copy of an operand that the operation itself overwrites."""
    copy = wrap(np.array(x._a, copy=True) if isinstance(x._a, np.ndarray) else x._a, x.dtype)
    copy._rg = x._rg
    copy._edge = x._edge
    return copy


def set_history(x: Tensor, edge: Any) -> None:
    """`x` was overwritten by the operation behind `edge`: rewrite its history and that of its aliases."""
    node, _ = public(edge)
    if x._retained and x._edge is not None:
        _move_retained(x, node)
    if node.shape is not None:
        node.shape, node.dtype = x._a.shape, x.dtype
    view = x._view
    if view is None:
        x._edge, x._rg = edge, True
        refresh_views(x)
        return
    base = view.base
    slices = CopySlices.make(base, x, node)
    base._edge, base._rg = slices, True
    refresh_views(base)


def refresh_views(base: Tensor) -> None:
    """Each live view of a rewritten base reads from the base's new history."""
    if base._vc is None or len(base._vc) == 1:
        return
    for reference in base._vc[1:]:
        view = reference()
        if view is not None and view._view.base is base and view._view.kind in ("plain", "several"):
            old = view._edge
            view._edge = AsStridedBackward0.make(base, view)
            view._view.version = base._vc[0]
            view._rg = True
            if view._retained and old is not None:
                _move_retained(view, view._edge)


def _move_retained(x: Tensor, node: Node) -> None:
    old, number = public(x._edge)
    if old.retains:
        old.retains.pop(number, None)
    node.watched = True
    node.retains = {**(node.retains or {}), 0: weakref.ref(x)}


def edge_of(x: Tensor) -> Any:
    if not x._rg:
        return None
    return x if x._edge is None else x._edge


def positions(base: Tensor, view: Tensor) -> Any:
    """For each element of the view, its place in the base counted row by row."""
    share(base)
    a = base._a
    order = np.empty_like(a, dtype=np.int64, order="K")
    order[...] = np.arange(a.size).reshape(a.shape)
    offset = (view._a.__array_interface__["data"][0] - a.__array_interface__["data"][0]) // a.itemsize
    # numbers lie in `order` as they lie in the base
    start = _origin(order)
    strides = tuple(s // a.itemsize * 8 for s in view._a.strides)
    return as_strided_array(start[offset:], view._a.shape, strides).copy()


def _origin(order: Any) -> Any:
    """The memory of a dense array as a line."""
    return as_strided_array(order, (order.size,), (8,))


class AsStridedBackward0(Node):
    """A view read again from its base after a write: gradients are added at the view's places."""

    __slots__ = ()
    retained_edge: Any = None

    @staticmethod
    def make(base: Tensor, view: Tensor) -> AsStridedBackward0:
        node = AsStridedBackward0()
        node.edges = (edge_of(base),)
        node.saved = (positions(base, view), base._a.shape)
        node.versions = None
        node.seq = next(sequence)
        node.shape, node.dtype = view._a.shape, view.dtype
        return node

    @staticmethod
    def rule(F: Any, node: Node, g: Any, places: Any, shape: Any) -> Any:
        return F.scatter_flat(g, places, shape)


class CopySlices(Node):
    """A base of which a slice was overwritten: the gradient splits into the slice's and the rest's."""

    __slots__ = ()
    inner: Any

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    @staticmethod
    def make(base: Tensor, view: Tensor, inner: Node) -> CopySlices:
        node = CopySlices()
        node.edges = (edge_of(base), *inner.edges[1:])
        node.saved = (positions(base, view), base._a.shape)
        node.versions = None
        node.seq = next(sequence)
        node.shape, node.dtype = base._a.shape, base.dtype
        node.inner = inner
        return node

    @staticmethod
    def rule(F: Any, node: Any, g: Any, places: Any, shape: Any) -> Any:
        from .flow import apply_rule

        inner = node.inner
        part = F.gather_flat(g, places)
        results = apply_rule(F, inner, part)
        rest = F.clear_flat(g, places)
        if results[0] is not None:
            rest = rest + F.scatter_flat(F.expand(F.sum_to(results[0], places.shape), places.shape), places, shape)
        return (rest, *results[1:])

    def release(self) -> None:
        release(self.inner)


def release(node: Node) -> None:
    """Drop what a node saved, so that a second backward through it is refused."""
    if node.versions is not None:
        node.saved = None
    if isinstance(node, CopySlices):
        node.release()


__all__ = ["Output", "View", "adopt", "bump", "check_overlap", "check_writable", "view_of", "write"]
