"""Data types and their promotion, `Size`, `device` and the other small values that tensors carry.

A `dtype` says how values are stored in NumPy (`storage`) and computed (`compute`). NumPy has no bfloat16: such
values are kept in float32 arrays whose numbers are all representable in bfloat16.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class dtype:
    """One element type. `kind` is b, i, f or c; `rank` orders the types of one kind."""

    __slots__ = (
        "_name",
        "compute",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "kind",
        "legacy",
        "plain",
        "rank",
        "scalar",
        "storage",
    )
    __module__ = "torch"

    def __init__(self, name: str, storage: Any, kind: str, rank: int, size: int, legacy: str, compute: Any = None):
        self._name = name
        self.storage = np.dtype(storage)
        self.scalar = self.storage.type
        self.compute = np.dtype(compute or storage)
        self.kind = kind
        self.rank = rank
        self.itemsize = size
        self.legacy = legacy
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.is_signed = not (kind == "b" or storage in ("uint8", "uint16", "uint32", "uint64"))
        self.plain = kind == "f" and compute is None
        """Whether NumPy computes in it as PyTorch does (float32 and float64)."""

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name

    def to_complex(self) -> dtype:
        return complex128 if self is float64 else complex64

    def to_real(self) -> dtype:
        return float64 if self is complex128 else float32 if self is complex64 else self


uint8 = dtype("uint8", "uint8", "i", 0, 1, "Byte")
int8 = dtype("int8", "int8", "i", 0, 1, "Char")
int16 = dtype("int16", "int16", "i", 1, 2, "Short")
int32 = dtype("int32", "int32", "i", 2, 4, "Int")
int64 = dtype("int64", "int64", "i", 3, 8, "Long")
float16 = dtype("float16", "float16", "f", 0, 2, "Half", "float32")
bfloat16 = dtype("bfloat16", "float32", "f", 0, 2, "BFloat16", "float32")
float32 = dtype("float32", "float32", "f", 1, 4, "Float")
float64 = dtype("float64", "float64", "f", 2, 8, "Double")
complex64 = dtype("complex64", "complex64", "c", 1, 8, "ComplexFloat")
complex128 = dtype("complex128", "complex128", "c", 2, 16, "ComplexDouble")
bool_ = dtype("bool", "bool", "b", 0, 1, "Bool")

ALL = (uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128, bool_)
FROM_NUMPY = {d.storage: d for d in ALL if d is not bfloat16}
_KINDS = "bifc"

ALIASES = {
    "float": float32,
    "double": float64,
    "half": float16,
    "short": int16,
    "int": int32,
    "long": int64,
    "cfloat": complex64,
    "cdouble": complex128,
    "bool": bool_,
}


class Defaults:
    """The default floating type, as `torch.set_default_dtype` sets it."""

    floating = float32


def set_default_dtype(d: dtype) -> None:
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    Defaults.floating = d


def get_default_dtype() -> dtype:
    return Defaults.floating


_promoted: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest type that both convert to without losing their kind."""
    if a is b:
        return a
    found = _promoted.get((a, b))
    if found is None:
        found = _promoted[a, b] = _promote(a, b)
    return found


def _promote(a: dtype, b: dtype) -> dtype:
    if a.kind != b.kind:
        low, high = (a, b) if _KINDS.index(a.kind) < _KINDS.index(b.kind) else (b, a)
        if high is complex64 and low is float64:
            return complex128
        return high
    if a.rank == b.rank:  # uint8 with int8, float16 with bfloat16
        return int16 if a.kind == "i" else float32
    return a if a.rank > b.rank else b


def can_cast(from_: dtype, to: dtype) -> bool:
    return _KINDS.index(from_.kind) <= _KINDS.index(to.kind)


def of_scalar(value: Any) -> dtype:
    """The type a Python number has on its own: `torch.tensor(value).dtype`."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, complex):
        return Defaults.floating.to_complex()
    return Defaults.floating


def round_to_bfloat16(a: Any) -> Any:
    """The nearest bfloat16 of each float32 (ties to even), still stored as float32."""
    a = np.asarray(a, np.float32)
    bits = a.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) & np.uint32(0xFFFF0000)
    out = np.where(np.isnan(a), a, rounded.view(np.float32))
    return out if out.ndim else out[()]


def store(a: Any, d: dtype) -> Any:
    """`a` in the storage of `d`."""
    if d is bfloat16:
        return round_to_bfloat16(a)
    if a.dtype is d.storage or a.dtype == d.storage:
        return a
    if d.kind == "i" and a.dtype.kind == "f":
        return _float_to_int(a, d)
    if a.dtype.kind == "c" and d.kind != "c" and d.kind != "b":
        a = a.real
    return a.astype(d.storage)


def _float_to_int(a: Any, d: dtype) -> Any:
    """C's conversion as x86-64 does it: through int64 for the narrow types, so that 300.0 wraps to 44 in uint8."""
    wide = a.astype(np.int64) if d.itemsize == 8 else a.astype(np.int64 if d is uint8 else np.int32)
    return wide.astype(d.storage)


class Size(tuple[int, ...]):
    """The shape of a tensor."""

    __module__ = "torch"
    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(tuple.__add__(other, self))

    def __mul__(self, n: Any) -> Any:
        return Size(tuple.__mul__(self, n))


class device:
    """Where a tensor lives. Here always the CPU; `meta` and accelerators are refused where a tensor would be made."""

    __slots__ = ("index", "type")
    __module__ = "torch"

    def __init__(self, type: Any = "cpu", index: int | None = None):
        if isinstance(type, device):
            type, index = type.type, type.index  # type: ignore[has-type]
        elif isinstance(type, str) and ":" in type:
            type, _, number = type.partition(":")
            index = int(number)
        known = ("cpu", "cuda", "mps", "meta", "xpu", "hpu", "xla", "mkldnn", "ipu", "vulkan", "privateuseone")
        if type not in known:
            raise RuntimeError(
                "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, "
                f"vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {type}"
            )
        self.type = type
        self.index = index

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))


CPU = device("cpu")


class layout:
    """How elements lie in memory; only strided tensors exist here."""

    __module__ = "torch"

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


strided = layout("strided")


class memory_format(layout):
    """An order of dimensions in memory."""

    __module__ = "torch"


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")


class finfo:
    """Limits of a floating type."""

    __module__ = "torch"

    def __init__(self, d: dtype | None = None):
        d = d or Defaults.floating
        if d.kind not in "fc":
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d}'")
        d = d.to_real()
        self.dtype = d._name
        self.bits = d.itemsize * 8
        if d is bfloat16:
            self.eps, self.max, self.tiny = 0.0078125, 3.3895313892515355e38, 1.1754943508222875e-38
            self.resolution = 0.01
        else:
            info = np.finfo(d.storage)
            self.eps, self.max, self.tiny = float(info.eps), float(info.max), float(info.tiny)
            self.resolution = float(str(info.resolution))
        self.min = -self.max
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer type."""

    __module__ = "torch"

    def __init__(self, d: dtype):
        if d.kind != "i":
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{d}'")
        info = np.iinfo(d.storage)
        self.min, self.max, self.bits, self.dtype = int(info.min), int(info.max), d.itemsize * 8, d._name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
