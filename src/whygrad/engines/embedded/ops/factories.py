"""Making tensors: from Python values, from NumPy, filled, counted."""

# mypy: no-warn-return-any
from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import CPU, Defaults, bool_, device, float64, int64
from ..errors import not_covered
from ..tensor import SCALAR_WARNING, Tensor, wrap
from ..warn import warn, warn_once
from .define import check_tensor, finished, op, register
from .shape import sizes_of


def on_cpu(where: Any) -> None:
    """Refuse any other device as a PyTorch without accelerators does."""
    if where is None or where is CPU:
        return
    d = device(where) if not isinstance(where, int) else device("cuda", where)
    if d.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    if d.type != "cpu":
        not_covered(f"device {d}")


def options(requires_grad: bool, d: dtypes.dtype, out: Tensor) -> Tensor:
    if requires_grad:
        if d.kind not in "fc":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        out._rg = True
    return out


# --- torch.tensor -------------------------------------------------------------------------------------------------


def _shape_of(data: Any) -> tuple[int, ...]:
    shape = []  # type: ignore[var-annotated]
    while (
        isinstance(data, (list, tuple)) or (isinstance(data, Tensor) and data._a.ndim) or isinstance(data, np.ndarray)
    ):
        if isinstance(data, (Tensor, np.ndarray)):
            return (*shape, *data.shape)
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    return tuple(shape)


def _fill(data: Any, shape: tuple[int, ...], at: int, flat: list[Any]) -> None:
    """Collect the numbers of nested sequences, checking that they are rectangular."""
    if at == len(shape):
        if isinstance(data, (Tensor, np.generic, np.ndarray)):
            data = data.item()
        if isinstance(data, (list, tuple)):
            raise TypeError(f"must be real number, not {type(data).__name__}")
        if data is None or isinstance(data, (str, dict, set)):
            if flat and isinstance(flat[0], (int, float)) and not isinstance(flat[0], bool):
                raise TypeError(f"must be real number, not {type(data).__name__}")
            raise (
                TypeError(f"new(): invalid data type '{type(data).__name__}'")
                if isinstance(data, str)
                else RuntimeError(f"Could not infer dtype of {type(data).__name__}")
            )
        if not isinstance(data, (bool, int, float, complex)):
            if hasattr(data, "__float__") or hasattr(data, "__index__"):
                data = data.__index__() if hasattr(data, "__index__") else float(data)
            else:
                raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        flat.append(data)
        return
    if not isinstance(data, (list, tuple, Tensor, np.ndarray)):
        raise TypeError("not a sequence")
    if len(data) != shape[at]:
        raise ValueError(f"expected sequence of length {shape[at]} at dim {at} (got {len(data)})")
    for item in data:
        _fill(item, shape, at + 1, flat)


def _scalar_type(data: Any) -> dtypes.dtype | None:
    """The type that a nested sequence infers: promoted over its elements."""
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return dtypes.FROM_NUMPY.get(data.dtype)
    if isinstance(data, (list, tuple)):
        found: dtypes.dtype | None = None
        for item in data:
            d = _scalar_type(item)
            if d is not None:
                found = d if found is None else dtypes.promote_types(found, d)
        return found
    if isinstance(data, (bool, int, float, complex)):
        return dtypes.of_scalar(data)
    return None


def build(data: Any, d: dtypes.dtype | None) -> Tensor:
    """A new tensor holding a copy of `data`."""
    if data.__class__ is float:
        d = d or Defaults.floating
        return wrap(d.scalar(data) if d.plain else dtypes.store(np.float64(data), d), d)
    if isinstance(data, Tensor):
        a = np.array(data._a) if isinstance(data._a, np.ndarray) else data._a
        d = d or data.dtype
        return wrap(dtypes.store(a, d) if d is not data.dtype else a, d)
    if isinstance(data, (np.ndarray, np.generic)):
        own = dtypes.FROM_NUMPY.get(data.dtype)
        if own is None:
            raise TypeError(
                f"can't convert np.ndarray of type numpy.{data.dtype}. The only supported types are: float64, float32, "
                "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
            )
        a = np.array(data)[()]
        d = d or own
        return wrap(dtypes.store(a, d) if d is not own else a, d)
    shape = _shape_of(data)
    flat: list[Any] = []
    _fill(data, shape, 0, flat)
    if d is None:
        d = _scalar_type(data) or Defaults.floating
    if d.kind == "i" and flat:
        flat = [int(v) if isinstance(v, (float, bool)) else v for v in flat]
        try:
            a = np.array(flat, np.int64).astype(d.storage)
        except OverflowError:
            raise RuntimeError("Overflow when unpacking long long") from None
    elif d.kind == "b":
        a = np.array([builtins.bool(v) for v in flat], bool)
    else:
        a = np.array(flat, np.complex128 if d.kind == "c" else np.float64)
        a = dtypes.store(a.astype(d.compute), d)
    a = a.reshape(shape)
    return wrap(a if shape else a[()], d)


COPY_WARNING = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


def _holds_graph(data: Any) -> bool:
    if isinstance(data, Tensor):
        return data._rg
    return isinstance(data, (list, tuple)) and any(_holds_graph(x) for x in data)


@op("tensor", method=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A leaf holding a copy of `data`."""
    on_cpu(device)
    if isinstance(data, Tensor):
        warn(COPY_WARNING)
    elif _holds_graph(data):
        warn_once(SCALAR_WARNING)
    out = build(data, dtype)
    return options(requires_grad, out.dtype, out)


@op("as_tensor", method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` itself where it is a tensor or an array of that type, else a copy."""
    on_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None or dtype is data.dtype else data.to(dtype)
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.FROM_NUMPY.get(data.dtype) is dtype):
        return from_numpy(data)
    return build(data, dtype)


register("asarray", as_tensor, method=False)


@op("from_numpy", method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """The array's own memory as a tensor."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    d = dtypes.FROM_NUMPY.get(ndarray.dtype)
    if d is None:
        raise TypeError(
            f"can't convert np.ndarray of type {_numpy_name(ndarray.dtype)}. The only supported types are: float64, "
            "float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
            "and bool."
        )
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    return wrap(ndarray, d)


def _numpy_name(d: Any) -> str:
    return f"numpy.{d.type.__name__}"


@op("scalar_tensor", method=False)
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    return options(requires_grad, dtype or Defaults.floating, build(float(s) if dtype is None else s, dtype))


# --- filled -------------------------------------------------------------------------------------------------------


def _checked(size: tuple[Any, ...]) -> tuple[int, ...]:
    shape = sizes_of(size)
    for s in shape:
        if s < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: [{', '.join(map(str, shape))}]")
    return shape


def _allocate(maker: Any, shape: tuple[int, ...], d: dtypes.dtype) -> Any:
    try:
        a = maker(shape, d.storage)
    except (MemoryError, ValueError) as error:
        size = math.prod(shape) * d.itemsize
        if size >= 1 << 63:
            raise RuntimeError(
                f"Storage size calculation overflowed with sizes=[{', '.join(map(str, shape))}]"
            ) from error
        raise RuntimeError(
            f"[enforce fail at alloc_cpu.cpp:134] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
            f"allocate {size} bytes. Error code 12 (Cannot allocate memory)"
        ) from error
    return a if shape else a[()]


def _filled(name: str, maker: Any) -> Any:
    def apply(
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        on_cpu(device)
        d = dtype or Defaults.floating
        return options(requires_grad, d, wrap(_allocate(maker, _checked(size), d), d))

    def public(*size: Any, **kwargs: Any) -> Tensor:
        if "size" in kwargs:
            size = (kwargs.pop("size"),)
        return apply(*size, **kwargs)

    register(name, public, method=False)

    def like(
        input: Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        memory_format: Any = None,
    ) -> Tensor:
        check_tensor(f"{name}_like", input)
        on_cpu(device)
        d = dtype or input.dtype
        return options(requires_grad, d, wrap(_allocate(maker, input._a.shape, d), d))

    register(f"{name}_like", like, method=False, F=f"{name}_like")

    def new(self: Tensor, *size: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        return public(*size, dtype=dtype or self.dtype, **kwargs)

    setattr(Tensor, f"new_{name}", new)
    return apply


zeros = _filled("zeros", np.zeros)
ones = _filled("ones", np.ones)
empty = _filled("empty", np.zeros)


@op("full", method=False)
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
) -> Tensor:
    on_cpu(device)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    d = dtype or dtypes.of_scalar(fill_value)
    shape = _checked((size,))
    out = wrap(_allocate(lambda s, t: np.full(s, dtypes.store(np.asarray(fill_value), d), t), shape, d), d)
    return options(requires_grad, d, out)


@op("full_like", method=False)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return full(input._a.shape, fill_value, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


Tensor.new_full = lambda self, size, fill_value, dtype=None, **k: full(size, fill_value, dtype=dtype or self.dtype, **k)  # type: ignore[attr-defined]
Tensor.new_tensor = lambda self, data, dtype=None, device=None, requires_grad=False: tensor(  # type: ignore[attr-defined]
    data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad
)
Tensor.new = lambda self, *args: not_covered("Tensor.new")  # type: ignore[attr-defined]


def _empty_strided(size: Any, stride: Any, **kwargs: Any) -> Tensor:
    not_covered("torch.empty_strided")


register("empty_strided", _empty_strided, method=False)


# --- counted ------------------------------------------------------------------------------------------------------


def _number(v: Any) -> Any:
    return v.item() if isinstance(v, (Tensor, np.generic)) else v


@op("arange", method=False)
def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    on_cpu(device)
    if end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    if dtype is None:
        dtype = Defaults.floating if any(isinstance(v, float) for v in (start, end, step)) else int64
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(math.isfinite(v) for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    n = math.ceil((end - start) / step)
    if dtype.kind == "i":
        a = int(start) + int(step) * np.arange(n, dtype=np.int64)
    else:
        a = start + step * np.arange(n, dtype=np.float64)
    return options(requires_grad, dtype, finished(a.astype(dtype.compute), dtype))


@op("range", method=False)
def range_(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, **kwargs: Any) -> Tensor:
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    n = math.floor((end - start) / step) + 1
    d = dtype or Defaults.floating
    return finished((start + step * np.arange(n, dtype=np.float64)).astype(d.compute), d)


@op("linspace", method=False)
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
) -> Tensor:
    """Steps from both ends, computed as PyTorch does: from the start in the first half, from the end in the second."""
    on_cpu(device)
    sizes = [v._a.ndim if isinstance(v, Tensor) else 0 for v in (start, end)]
    if any(sizes):
        raise RuntimeError(
            f"linspace only supports 0-dimensional start and end tensors, but got start with {sizes[0]} "
            "dimension(s) and end with "
            f"{sizes[1]} dimension(s)."
        )
    start, end = _number(start), _number(end)
    if not isinstance(steps, int):
        raise TypeError(f"linspace(): argument 'steps' must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    d = dtype or Defaults.floating
    t = d.compute.type if d.kind in "fc" else np.float32
    if d.kind == "i":
        t = np.float64
    if steps == 1:
        a = np.full(1, start, d.compute)
    else:
        s, e = t(start), t(end)
        step = t((e - s) / t(max(steps - 1, 1)))
        i = np.arange(steps)
        a = np.where(i < steps // 2, s + step * i.astype(t), e - step * (steps - 1 - i).astype(t))
    if d.kind == "i":
        a = np.trunc(a)
    return options(requires_grad, d, finished(a.astype(d.compute), d))


@op("logspace", method=False)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    d = dtype or Defaults.floating
    points = linspace(start, end, steps, dtype=float64)
    return options(requires_grad, d, finished(np.power(base, points._a).astype(d.compute), d))


@op("eye", method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
) -> Tensor:
    on_cpu(device)
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if m is not None and m < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {m}")
    d = dtype or Defaults.floating
    return options(requires_grad, d, wrap(np.eye(n, m, dtype=d.storage), d))


@op("complex", method=False)
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    not_covered("torch.complex")


def legacy_constructor(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    """`torch.Tensor(2, 3)` is uninitialised memory of that shape, `torch.Tensor([...])` holds the values."""
    if kwargs.pop("device", None) not in (None, "cpu", CPU):
        not_covered("torch.Tensor(device=...)")
    if len(args) == 1 and isinstance(args[0], Tensor):
        out = args[0].detach()
    elif len(args) == 1 and not isinstance(args[0], int):
        out = build(args[0], Defaults.floating)
    elif not args:
        out = wrap(np.zeros((0,), Defaults.floating.storage), Defaults.floating)
    else:
        out = empty(*args)
    out._become(cls)
    return out


def typed_constructor(d: dtypes.dtype) -> type:
    """`torch.FloatTensor` and its kin: a type that makes tensors of one dtype and recognises them."""

    class _Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, Tensor) and instance.dtype is d

        def __call__(cls, *args: Any) -> Tensor:
            if not args:
                return wrap(np.zeros((0,), d.storage), d)
            if len(args) == 1 and not isinstance(args[0], int):
                return build(args[0], d)
            return empty(*args, dtype=d)

    return _Meta(f"{d.legacy}Tensor", (), {"__module__": "torch", "dtype": d})


def _indices_grid(tensors: Any, indexing: str | None) -> tuple[Tensor, ...]:
    from .shape import expand, reshape

    n = len(tensors)
    if not n:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in tensors:
        if x._a.ndim > 1:
            raise RuntimeError(f"Expected 0D or 1D tensor in the tensor list but got: {x.tolist()}")
    if indexing is None:
        from ..warn import warn_once

        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and n > 1
    order = list(tensors)
    if swap:
        order[0], order[1] = order[1], order[0]
    shape = tuple(x._a.size for x in order)
    grids = [expand(reshape(x, (1,) * i + (-1,) + (1,) * (n - 1 - i)), shape) for i, x in enumerate(order)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@op("meshgrid", method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    many = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return _indices_grid(many, indexing)


# What rules call (kernels has functions of the same names on arrays).
def _rule_zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return zeros(shape, dtype=like.dtype)


def _rule_ones(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return ones(shape, dtype=like.dtype)


def _rule_full(shape: tuple[int, ...], value: Any, like: Tensor) -> Tensor:
    return full(shape, value, dtype=like.dtype)


def _rule_constant(array: Any, like: Tensor) -> Tensor:
    return finished(np.asarray(array).astype(like.dtype.compute)[()], like.dtype)


from .. import differentiable  # noqa: E402

differentiable.zeros = _rule_zeros
differentiable.ones = _rule_ones
differentiable.full = _rule_full
differentiable.constant = _rule_constant
differentiable.detach = lambda x: x.detach()
__all__ = ["bool_", "build", "tensor", "typed_constructor"]
