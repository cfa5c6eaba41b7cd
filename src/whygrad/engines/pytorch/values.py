"""Read a tensor's value for the ledger without the program noticing.

Nothing is read where reading would be seen or would not mean anything: inside `torch.func` transforms, under
a dispatch mode of the program's own, while its profiler counts operations, on meta and fake tensors.
"""

from __future__ import annotations

import math
from typing import Any

from whygrad.ledger.values import WHOLE_LIMIT, Number, Value, number, whole

EXTREMES_LIMIT = 65_536
"""Of larger tensors whose elements are all finite, the norm alone is taken: two passes less over the memory."""

FINITE_LIMIT = 65_536
ALERT_LIMIT = 4_000_000
"""Results up to so many elements are looked through for values that are not finite: the second once there was one."""


class _Lent:
    """A tensor's memory as NumPy takes it (the DLPack protocol of the Python array API standard)."""

    __slots__ = ("_capsule", "_tensor")

    def __init__(self, capsule: Any, tensor: Any) -> None:
        self._capsule = capsule
        self._tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule(self._tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _is_freed(tensor: Any) -> bool:
    """Whether the program gave the tensor's memory back: reading it would end the process."""
    try:
        return not tensor.untyped_storage().nbytes() and tensor.numel() > 0
    except NotImplementedError:  # a wrapper of a torch.func transform has no storage of its own
        return False


class Reader:
    """Reads values of tensors of one torch module. `alert`: a loss or a gradient was not finite."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self._names = {dtype: str(dtype).removeprefix("torch.") for dtype in set(_dtypes(torch))}
        self._half = {torch.bfloat16, torch.float16}
        self._arrays = {torch.float32, torch.float64}
        self._strided = torch.strided
        self._capsule = vars(torch._C).get("_to_dlpack")  # NumPy's own arrays need no lending
        self._transform = torch._C._functorch.peek_interpreter_stack
        self._dispatch_depth = torch._C._len_torch_dispatch_stack
        self._profiling = torch.autograd._profiler_enabled
        self._plain = {torch.Tensor, torch.nn.Parameter}
        self.alert = False

    def dtype(self, tensor: Any) -> str:
        return self._names.get(tensor.dtype) or str(tensor.dtype)

    def inside_transform(self) -> bool:
        """Whether a `torch.func` transform is running: tensors are wrappers without values of their own."""
        return self._transform() is not None

    def visible(self) -> bool:
        """Whether reading a value now would be counted by the program's own tools."""
        return self._dispatch_depth() > 0 or self._profiling() or self._transform() is not None

    def outline(self, tensor: Any) -> Value:
        """Shape and dtype alone."""
        return Value(shape=shape(tensor), dtype=self.dtype(tensor))

    def read(self, tensor: Any, limit: int = WHOLE_LIMIT) -> Value:
        """Every element up to `limit` of them, statistics beyond."""
        if self._opaque(tensor):
            return self.outline(tensor)
        count = tensor.numel()
        if count <= limit:
            items = tensor.detach().reshape(-1).tolist()
            return whole(tensor.shape, self.dtype(tensor), items)
        return self._statistics(tensor)

    def small(self, tensor: Any, limit: int = WHOLE_LIMIT) -> Value | None:
        """Every element if there are at most `limit`, else None."""
        return self.read(tensor, limit) if tensor.numel() <= limit else None

    def notable(self, tensor: Any) -> Value | None:
        """A small value, or one that is not finite; None for all others."""
        if tensor.numel() <= WHOLE_LIMIT:
            return self.read(tensor)
        return self.not_finite(tensor, ALERT_LIMIT if self.alert else FINITE_LIMIT)

    def not_finite(self, tensor: Any, limit: int) -> Value | None:
        """The value if it is not finite, as far as that is seen without waiting for another device."""
        if tensor.numel() > limit or not tensor.is_floating_point() or self._opaque(tensor):
            return None
        array = self._array(tensor)
        if array is None:
            if not self.alert or bool(self.torch.isfinite(tensor.detach()).all()):
                return None
        elif _is_finite(array):
            return None
        value = self.read(tensor)
        return value if value.nan or value.inf else None

    def norm(self, tensor: Any) -> Number:
        """The Euclidean norm; `nan` or `inf` as they come."""
        if self._opaque(tensor):
            return "nan"
        array = self._array(tensor)
        if array is None:
            with self.torch.no_grad():
                return number(float(self.torch.linalg.vector_norm(self._exact(tensor))))
        return number(_norm(array))

    def is_bad(self, roots: Any) -> bool:
        """Whether the loss that a pass begins with is not finite."""
        loss = self.scalar(roots[0]) if len(roots) == 1 else None
        return loss is not None and loss - loss != 0

    def scalar(self, tensor: Any) -> float | None:
        """The number in a one-element tensor of the CPU; None where reading would cost or be seen."""
        if type(tensor) is not self.torch.Tensor or tensor.numel() != 1 or not tensor.is_cpu or self.visible():
            return None
        item = tensor.item()
        return item if type(item) is float else None

    def copy(self, tensor: Any, into: Any = None) -> Any:
        """The data now, to be compared later, in the memory of an earlier copy `into`. None: it cannot be read."""
        if self._opaque(tensor):
            return None
        array = self._array(tensor)
        if array is None:
            return tensor.detach().clone()
        if isinstance(into, type(array)) and into.shape == array.shape and into.dtype == array.dtype:
            into[...] = array
            return into
        return array.copy()

    def moved(self, before: Any, tensor: Any) -> tuple[Number, Number, bool]:
        """(norm of the change since `copy`, norm of the data, whether any bit moved). Uses up `before`."""
        array = self._array(tensor)
        if array is not None and not isinstance(before, self.torch.Tensor):
            import numpy as np

            same = array.size < 1024 and array.tobytes() == before.tobytes()
            with np.errstate(all="ignore"):
                np.subtract(array, before, out=before)
                change, size = _quiet_norm(before), _quiet_norm(array)
            return number(change), number(size), not same and change != 0
        with self.torch.no_grad():
            now = self._exact(tensor)
            change = float(self.torch.linalg.vector_norm(now - self._exact(before)))
            size = float(self.torch.linalg.vector_norm(now))
            return number(change), number(size), change > 0 or not self.torch.equal(tensor.detach(), before)

    def _exact(self, tensor: Any) -> Any:
        """The data in a dtype that norms can be taken of without loss."""
        now = tensor.detach()
        return now if now.dtype in self._arrays or now.is_complex() else now.float()

    def _opaque(self, tensor: Any) -> bool:
        if self.visible():
            return True
        if type(tensor) not in self._plain and not _same_as_plain(tensor, self.torch):
            return True
        if tensor.is_meta or tensor.layout is not self._strided or tensor.is_quantized or tensor.is_nested:
            return True
        return self._capsule is not None and _is_freed(tensor)

    def _array(self, tensor: Any) -> Any:
        """A NumPy view of a real tensor of the CPU, else None.

        `Tensor.numpy` would forbid the program to resize the tensor's storage from then on.
        """
        if not tensor.is_cpu or tensor.dtype not in self._arrays or tensor.is_neg():
            return None
        if self._capsule is None:
            return tensor.detach().numpy()
        import numpy as np

        return np.from_dlpack(_Lent(self._capsule, tensor.detach()))

    def _statistics(self, tensor: Any) -> Value:
        shape, dtype = tuple(tensor.shape), self.dtype(tensor)
        if tensor.is_complex() or tensor.is_quantized:
            return Value(shape=shape, dtype=dtype)
        array = self._array(tensor)
        if array is not None:
            import numpy as np

            norm = _norm(array)
            if math.isfinite(norm):
                if array.size > EXTREMES_LIMIT:
                    return Value(shape, dtype, norm=norm)
                return Value(shape, dtype, norm=norm, low=float(array.min()), high=float(array.max()))
            nan = int(np.isnan(array).sum())
            inf = int(np.isinf(array).sum())
            with np.errstate(all="ignore"):
                low, high = float(array.min()), float(array.max())
            return Value(shape, dtype, norm=number(norm), low=number(low), high=number(high), nan=nan, inf=inf)
        torch = self.torch
        with torch.no_grad():
            now = tensor.detach()
            if not now.is_floating_point():
                low, high = (now.min().item(), now.max().item())
                return Value(shape, dtype, low=number(low), high=number(high))
            now = now.float() if now.dtype in self._half or now.element_size() < 4 else now
            low, high = torch.aminmax(now)
            nan, inf = int(now.isnan().sum()), int(now.isinf().sum())
            norm = float(torch.linalg.vector_norm(now))
            return Value(
                shape, dtype, norm=number(norm), low=number(low.item()), high=number(high.item()), nan=nan, inf=inf
            )


def shape(tensor: Any) -> tuple[int, ...]:
    """The shape; -1 for the ragged dimensions of a nested tensor."""
    try:
        return tuple(tensor.shape)
    except RuntimeError:
        return (tensor.size(0), *[-1] * (tensor.dim() - 1))


def is_zero(value: Value) -> bool:
    """Whether every element is zero."""
    if value.items is not None:
        return all(item == 0 for item in value.items)
    return value.norm == 0 and value.nan == 0


def _is_finite(array: Any) -> bool:
    """Whether the sum of the elements is finite: one pass over the memory. A sum that overflows is none the better."""
    import numpy as np

    with np.errstate(all="ignore"):
        return math.isfinite(np.add.reduce(array, axis=None))


def _norm(array: Any) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return _quiet_norm(array)


def _quiet_norm(array: Any) -> float:
    """The norm; NumPy may warn."""
    flat = array.ravel()
    square = float(flat.dot(flat))
    if not math.isfinite(square) or square == 0:  # the squares overflowed or vanished, perhaps
        wide = flat.astype("float64")
        square = float(wide.dot(wide))
    return math.sqrt(square) if square >= 0 else math.nan


def _same_as_plain(tensor: Any, torch: Any) -> bool:
    """Whether a subclass keeps its data as a plain tensor does."""
    kind = type(tensor)
    return (
        kind.__torch_function__ is torch._C._disabled_torch_function_impl
        or getattr(kind.__torch_function__, "__func__", None) is torch.Tensor.__torch_function__.__func__
    ) and kind.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl


def _dtypes(torch: Any) -> list[Any]:
    return [value for value in vars(torch).values() if isinstance(value, torch.dtype)]
