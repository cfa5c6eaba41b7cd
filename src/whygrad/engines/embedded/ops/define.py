"""How an operation is written down: its kernel, its node and rule, and the names it answers to.

`torch.NAME`, `Tensor.NAME` and `differentiable.NAME` (what backward rules call) are all made here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import differentiable, dtypes
from ..dtypes import dtype
from ..errors import NotInEmbeddedEngine, not_covered
from ..graph import Node, Output, SavedOutput, node_class, sequence
from ..modes import modes
from ..tensor import Tensor, share, wrap
from ..views import adopt, check_writable, view_of
from ..warn import user_stack

TORCH: dict[str, Any] = {}
"""What `torch.NAME` answers to."""

_new = object.__new__

INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


def record(
    cls: type[Node], out: Tensor, inputs: tuple[Any, ...], saved: tuple[Any, ...] = (), holds: bool = False
) -> Node:
    """Give `out` its node. `holds`: PyTorch saves a tensor here (a number it wrapped), so the node can be freed."""
    node: Node = _new(cls)
    node.edges = tuple([(t._edge or t) if t is not None and t._rg else None for t in inputs])
    node.saved = saved
    versions: Any = () if holds else None
    for index, s in enumerate(saved):
        if isinstance(s, Tensor):
            if s._vc is None:
                raise RuntimeError(INFERENCE_SAVED)
            versions = versions or ()
            versions = (*versions, *((None,) * (index - len(versions))), s._vc[0])
        elif s.__class__ is SavedOutput:
            versions = versions or ()
            versions = (*versions, *((None,) * (index - len(versions))), None)
    if versions is not None and len(versions) < len(saved):
        versions = (*versions, *((None,) * (len(saved) - len(versions))))
    node.versions = versions
    node.seq = next(sequence)
    node.shape = out._a.shape
    node.dtype = out.dtype
    out._edge = node
    out._rg = True
    if modes.anomaly:
        node.stack = user_stack()
    return node


def record_several(
    cls: type[Node], outs: Any, inputs: tuple[Any, ...], saved: tuple[Any, ...] = (), holds: bool = False
) -> Node:
    """One node for several outputs; those whose type has no gradient stay outside the graph."""
    node = record(cls, outs[0], inputs, saved, holds)
    node.outputs = [(o._a.shape, o.dtype) for o in outs]
    node.shape = None
    for number, o in enumerate(outs):
        if o.dtype.kind in "fc":
            o._rg = True
            o._edge = node if number == 0 else Output(node, number)
    return node


def tracking(*tensors: Any) -> bool:
    """Whether an operation on these is recorded."""
    return modes.grad and any([t is not None and t._rg for t in tensors])  # noqa: C419 - a list is quicker here


def bare(x: Tensor) -> Any:
    """The numbers in the type they are computed in."""
    return x._a if x.dtype.compute is x.dtype.storage else x._a.astype(x.dtype.compute)


def finished(a: Any, d: dtype) -> Tensor:
    """A tensor of `d` on freshly computed numbers."""
    return wrap(dtypes.store(a, d) if a.dtype is not d.storage or d is dtypes.bfloat16 else a, d)


_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
_OVERLOAD = "received an invalid combination of arguments"


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The public face of a function: wrong calls get PyTorch's errors, and `out=` is honoured, at no cost otherwise."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:
                raise
        return _second_try(name, function, args, kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "torch"
    return call


def _second_try(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call does not fit the signature: NumPy's names for arguments, `out=`, or a mistake."""
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    renamed = {
        _NUMPY_NAMES[k] if k not in parameters and _NUMPY_NAMES.get(k) in parameters else k: v
        for k, v in kwargs.items()
    }
    if renamed != kwargs and set(renamed) - set(kwargs):
        return guarded(name, function)(*args, **renamed)
    if "out" in kwargs and "out" not in parameters:
        out = kwargs.pop("out")
        result = guarded(name, function)(*args, **kwargs)
        return result if out is None else _into(name, out, result, (*args, *kwargs.values()))
    required = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    missing = [n for n in required[len(args) :] if n not in kwargs]
    if missing:
        quoted = ", ".join(f'"{n}"' for n in missing)
        raise TypeError(f"{name}() missing {len(missing)} required positional arguments: {quoted}")
    for k in kwargs:
        if k not in parameters and not takes_any:
            not_covered(f"the argument `{k}` of {name}")
    not_covered(f"this combination of arguments of {name}")


def _into(name: str, out: Any, result: Any, inputs: tuple[Any, ...]) -> Any:
    """Write a result into `out=`."""
    if isinstance(result, tuple):
        for o, r in zip(out, result, strict=True):
            _into(name, o, r, inputs)
        return result.__class__(*out) if hasattr(result, "_fields") else tuple(out)
    if modes.grad and (out._rg or any(isinstance(i, Tensor) and i._rg for i in inputs)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if not dtypes.can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"result type {result.dtype.legacy} can't be cast to the desired output type {out.dtype.legacy}"
        )
    if out._a.shape != result._a.shape:
        if out._a.size:
            not_covered(f"out= of another shape than the result in {name}")
        out._a = np.zeros(result._a.shape, out.dtype.storage)
    adopt(out, result.detach())
    return out


def register(
    name: str, function: Callable[..., Any], *, method: bool = True, torch: bool = True, F: str | None = None
) -> None:
    """Publish a function as `torch.name`, as a method of tensors and to backward rules."""
    public = guarded(name, function)
    if torch:
        TORCH[name] = public
    if method:
        setattr(Tensor, name, public)
    if F is not None:
        setattr(differentiable, F, function)


def op(*names: str, method: bool = True, torch: bool = True, F: str | None = None) -> Callable[[Any], Any]:
    """Decorator form of `register`."""

    def publish(function: Any) -> Any:
        for name in names or (function.__name__.rstrip("_"),):
            register(name, function, method=method, torch=torch, F=F)
        if F is None and names:
            setattr(differentiable, names[0], function)
        return function

    return publish


def in_place(name: str, function: Callable[..., Any], cast: bool = False) -> None:
    """`Tensor.name_`: compute out of place, then let the tensor adopt the result and its history."""
    public = name + "_"

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(self)
        return adopt(self, function(self, *args, **kwargs), cast)

    method.__name__ = method.__qualname__ = public
    setattr(Tensor, public, method)
    TORCH.setdefault(public, method)


def check_tensor(name: str, value: Any, position: int = 1, argument: str = "input") -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )


def view_operation(cls: type[Node], x: Tensor, a: Any, *saved: Any, kind: str = "plain") -> Tensor:
    """A view of `x` on `a`, recorded."""
    out = view_of(x, a, kind)
    if x._rg and modes.grad:
        record(cls, out, (x,), saved)
    return out


__all__ = [
    "TORCH",
    "NotInEmbeddedEngine",
    "SavedOutput",
    "Tensor",
    "adopt",
    "bare",
    "check_tensor",
    "check_writable",
    "differentiable",
    "finished",
    "guarded",
    "in_place",
    "node_class",
    "not_covered",
    "op",
    "record",
    "record_several",
    "register",
    "share",
    "tracking",
    "view_of",
    "view_operation",
    "wrap",
]
