"""Changing type, copying into, filling."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from .. import differentiable, dtypes
from ..dtypes import dtype
from ..graph import Node, node_class
from ..modes import modes
from ..tensor import Tensor, brackets, wrap
from ..views import adopt, check_writable, write
from .define import finished, not_covered, op, record, register, tracking
from .factories import on_cpu
from .shape import usual_order

ToCopyBackward0 = node_class("ToCopyBackward0", lambda F, node, g: g)


def cast(x: Tensor, d: dtype) -> Tensor:
    """The same numbers in another type; itself if there is nothing to change."""
    if x.dtype is d:
        return x
    return _copy_as(x, d)


def _copy_as(x: Tensor, d: dtype) -> Tensor:
    a = x._a
    if d.kind == "b":
        a = a != 0
    elif x.dtype is d:
        a = np.array(a)[()]
    out = finished(np.array(a)[()] if x.dtype is dtypes.bfloat16 and d is dtypes.float32 else a, d)
    if tracking(x) and d.kind in "fc":
        record(ToCopyBackward0, out, (x,))
    return out


differentiable.cast = cast


@op("to", torch=False)
def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Another type (the device can only be the CPU)."""
    for position, arg in enumerate(args):
        if isinstance(arg, dtypes.dtype):
            dtype = arg
        elif isinstance(arg, Tensor):
            other = arg
        elif isinstance(arg, bool):
            copy = copy or (arg and position == 2)
        elif isinstance(arg, (str, dtypes.device, int)):
            device = arg
        elif arg is not None:
            raise TypeError(
                "to() received an invalid combination of arguments - got "
                f"({', '.join(_type_name(a) for a in args)}), but expected one of:\n * (torch.device device = None, "
                "torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format "
                "memory_format = None)\n * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
                "torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking = False, bool copy = "
                "False, *, torch.memory_format memory_format = None)\n"
            )
    on_cpu(device)
    usual_order(memory_format)
    d = other.dtype if other is not None else dtype or self.dtype
    return _copy_as(self, d) if copy or d is not self.dtype else self


def _type_name(a: Any) -> str:
    return "Tensor" if isinstance(a, Tensor) else type(a).__name__


def _converter(name: str, d: dtype) -> None:
    def apply(self: Tensor, memory_format: Any = None) -> Tensor:
        return cast(self, d)

    apply.__name__ = name
    setattr(Tensor, name, apply)


for _name, _d in {**dtypes.ALIASES, "bfloat16": dtypes.bfloat16, "byte": dtypes.uint8, "char": dtypes.int8}.items():
    _converter(_name, _d)

Tensor.type_as = lambda self, other: cast(self, other.dtype)  # type: ignore[attr-defined]
Tensor.cpu = lambda self, memory_format=None: self  # type: ignore[attr-defined]


def _cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    raise AssertionError("Torch not compiled with CUDA enabled")


Tensor.cuda = _cuda  # type: ignore[attr-defined]


@op("type", torch=False)
def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The legacy type's name, or a conversion to it."""
    if dtype is None:
        return f"torch.{self.dtype.legacy}Tensor"
    if isinstance(dtype, dtypes.dtype):
        return cast(self, dtype)
    name = dtype if isinstance(dtype, str) else f"torch.{dtype.__name__}"
    for d in dtypes.ALL:
        if name == f"torch.{d.legacy}Tensor":
            return cast(self, d)
    raise ValueError(f"invalid type: '{name}'")


# --- writing ------------------------------------------------------------------------------------------------------


class _Copy(Node):
    """The node of `copy_`, whose name PyTorch spells in full."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::CopyBackwards"


CopyBackwards = node_class(
    "CopyBackwards", lambda F, node, g: (None if node.edges[0] is None else F.zeros_like(g), g), base=_Copy
)
FillBackward0 = node_class("FillBackward2", lambda F, node, g: F.zeros_like(g))
FillBackward1 = node_class(
    "FillBackward3", lambda F, node, g: (None if node.edges[0] is None else F.zeros_like(g), F.sum(g))
)
ZeroBackward0 = node_class("ZeroBackward0", lambda F, node, g: F.zeros_like(g))


@op("copy_", torch=False)
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwrite with another tensor's numbers, broadcast and converted."""
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    check_writable(self)
    a = self._a
    if src._a.shape != a.shape:
        try:
            np.broadcast_to(src._a, a.shape)
        except ValueError:
            _refuse_broadcast(a.shape, src._a.shape)
    if not modes.grad or not (self._rg or src._rg):
        from ..views import check_overlap

        check_overlap(self)
        write(self, dtypes.store(src._a, self.dtype))
        return self
    out = wrap(np.broadcast_to(dtypes.store(src._a, self.dtype), a.shape), self.dtype)
    record(CopyBackwards, out, (self, src))
    return adopt(self, out)


def _refuse_broadcast(to: tuple[int, ...], from_: tuple[int, ...]) -> None:
    if len(from_) > len(to):
        extra = f"expand(torch.FloatTensor{{{brackets(from_)}}}, size={brackets(to)}): "
        raise RuntimeError(
            f"{extra}the number of sizes provided ({len(to)}) must be greater or equal to the number of "
            "dimensions in the "
            f"tensor ({len(from_)})"
        )
    for i in range(len(to) - 1, -1, -1):
        j = i - (len(to) - len(from_))
        if j >= 0 and from_[j] not in (1, to[i]):
            raise RuntimeError(
                f"The size of tensor a ({to[i]}) must match the size of tensor b ({from_[j]}) at non-singleton "
                f"dimension {i}"
            )


def _overwrite(self: Tensor, a: Any, cls: type[Node], inputs: tuple[Any, ...]) -> Tensor:
    check_writable(self)
    if not tracking(*inputs):
        from ..views import check_overlap

        check_overlap(self)
        write(self, a)
        return self
    out = wrap(np.broadcast_to(a, self._a.shape), self.dtype)
    record(cls, out, inputs)
    return adopt(self, out)


@op("fill_", method=True, torch=True)
def fill_(self: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        if value._a.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value._a.ndim} dimensions."
            )
        return _overwrite(self, dtypes.store(value._a, self.dtype), FillBackward1, (self, value))
    return _overwrite(self, dtypes.store(np.asarray(value), self.dtype), FillBackward0, (self,))


@op("fill", method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    return input.clone().fill_(value)


@op("zero_", torch=True)
def zero_(self: Tensor) -> Tensor:
    return _overwrite(self, self.dtype.scalar(0), ZeroBackward0, (self,))


@op("fill_diagonal_", torch=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    if wrap:
        not_covered("fill_diagonal_(wrap=True)")
    self.diagonal().fill_(fill_value)
    return self


@op("set_", torch=False)
def set_(self: Tensor, source: Any = None) -> Tensor:
    not_covered("Tensor.set_")


@op("resize_", torch=False)
def resize_(self: Tensor, *sizes: Any) -> Tensor:
    not_covered("Tensor.resize_")


@op("apply_", torch=False)
def apply_(self: Tensor, callable: Any) -> Tensor:
    if self._rg and modes.grad:
        raise RuntimeError("Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.")
    write(self, np.reshape([callable(v) for v in np.ravel(self._a).tolist()], self._a.shape))
    return self


register("detach", lambda input: input.detach(), method=False)
register("detach_", lambda input: input.detach_(), method=False)
