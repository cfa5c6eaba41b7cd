"""The tensor: a NumPy array or scalar with a dtype, a version counter shared by its views, and its place in the graph.

A tensor without dimensions holds a NumPy scalar, which computes five times quicker than a 0-d array, until something
shares its memory. Operations live in `ops/` and attach themselves to the class.
"""

# mypy: no-warn-return-any
from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes
from .dtypes import CPU, Size, dtype
from .errors import not_covered
from .graph import Node, Output, RemovableHandle, public
from .modes import modes
from .warn import warn, warn_once

_new = object.__new__
SCALAR_WARNING = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)


class Tensor:
    """A multi-dimensional array that remembers how it was computed."""

    __slots__ = ("__dict__", "__weakref__", "_a", "_edge", "_rg", "_vc", "dtype")
    __module__ = "torch"
    __hash__ = object.__hash__
    __array_priority__ = 1000

    _a: Any
    """The numbers: an ndarray, or a NumPy scalar if there are no dimensions."""
    dtype: dtypes.dtype
    _vc: Any
    """The version, then weak references to views; shared by all tensors of one memory. None: an inference tensor."""
    _edge: Any
    """The node that made this tensor (or `Output`); None for a leaf."""
    _rg: bool

    if TYPE_CHECKING:  # operators attach themselves in `ops`
        __eq__: Any
        __ne__: Any
        __add__: Any
        __radd__: Any
        __sub__: Any
        __rsub__: Any
        __mul__: Any
        __rmul__: Any
        __truediv__: Any
        __rtruediv__: Any
        __floordiv__: Any
        __mod__: Any
        __pow__: Any
        __rpow__: Any
        __matmul__: Any
        __neg__: Any
        __invert__: Any
        __and__: Any
        __or__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any
        __getitem__: Any
        __setitem__: Any

    _grad: Tensor | None = None
    _view: Any = None
    _hooks: Any = None
    _post_hooks: Any = None
    _retained: bool = False
    _acc_post: Any = None
    _acc_pre: Any = None
    _backward_hooks = property(lambda self: self._hooks)
    _post_accumulate_grad_hooks = property(lambda self: self._post_hooks)
    is_cuda = is_sparse = is_quantized = is_mkldnn = is_meta = is_mps = is_nested = is_xpu = is_sparse_csr = False
    is_cpu = True
    layout = dtypes.strided
    name: str | None = None
    names = property(lambda self: (None,) * self._a.ndim)
    device = property(lambda _: CPU)

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        from .ops.factories import legacy_constructor

        return legacy_constructor(cls, *args, **kwargs)

    # --- what it is -------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return Size(self._a.shape)

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return Size(self._a.shape)
        return self._a.shape[wrap_dim(dim, self._a.ndim)]

    def dim(self) -> int:
        return int(self._a.ndim)

    ndimension = dim
    ndim = property(lambda self: self._a.ndim)

    def numel(self) -> int:
        return int(self._a.size)

    nelement = numel

    def element_size(self) -> int:
        return self.dtype.itemsize

    itemsize = property(element_size)
    nbytes = property(lambda self: self._a.size * self.dtype.itemsize)

    def __len__(self) -> int:
        if self._a.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self._a.shape[0])

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        return self._vc is None

    def is_conj(self) -> bool:
        return False

    is_neg = is_conj

    def get_device(self) -> int:
        return -1

    def is_pinned(self) -> bool:
        return False

    def is_shared(self) -> bool:
        return False

    # --- its place in the graph -------------------------------------------------------------------------------

    @property
    def grad_fn(self) -> Node | None:
        if self._view is not None:
            self._refresh_view()
        edge = self._edge
        return None if edge is None else edge if isinstance(edge, Node) else edge.node

    def _refresh_view(self) -> None:
        """A view whose base was written since reads from it anew (what no_grad writes leave undone)."""
        view = self._view
        if self._rg and self._vc is not None and view.version != self._vc[0] and view.base._rg and view.kind == "plain":
            from .views import AsStridedBackward0

            self._edge = AsStridedBackward0.make(view.base, self)
            view.version = self._vc[0]

    @property
    def output_nr(self) -> int:
        return self._edge.number if isinstance(self._edge, Output) else 0

    @property
    def is_leaf(self) -> bool:
        return self._edge is None

    @property
    def requires_grad(self) -> bool:
        return self._rg

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if self._edge is not None:
            if not value:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return
        if value and self.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self._set_leaf_flag(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        if self._edge is not None and not requires_grad:
            self.requires_grad = False
        if requires_grad and self.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if self._edge is None:
            self._set_leaf_flag(requires_grad)
        return self

    def _set_leaf_flag(self, value: bool) -> None:
        if value and self._vc is None and not modes.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._rg = value

    @property
    def _version(self) -> int:
        if self._vc is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return int(self._vc[0])

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._view is not None

    @property
    def grad(self) -> Tensor | None:
        if self._edge is not None and not self._retained and self._grad is None:
            warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                "attribute won't "
                "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a "
                "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead. See "
                "github.com/pytorch/pytorch/pull/30531 for more information."
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            self._grad = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{cpp_name(value.dtype)}' to a tensor with grad_dtype "
                f"'{self.dtype.legacy}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
                "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any "
                "dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
                "downstream systems that assume they match."
            )
        if value._a.shape != self._a.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{brackets(value._a.shape)}' to a tensor of size "
                f"'{brackets(self._a.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    grad_dtype = property(lambda self: self.dtype)

    def detach(self) -> Tensor:
        """The same memory, outside the graph: cuts the history."""
        share(self)
        out = wrap(self._a, self.dtype)
        out._vc = self._vc
        return out

    def detach_(self) -> Tensor:
        if self._view is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        self._edge = None
        self._rg = False
        return self

    @property
    def data(self) -> Tensor:
        """The same memory with a version counter of its own: writes through it are not seen by autograd."""
        share(self)
        out = wrap(self._a, self.dtype)
        if self._vc is None:
            out._vc = None
        return out

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._rg and value.dtype.kind not in "fc":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        share(value)
        self._a = value._a
        self.dtype = value.dtype

    def retain_grad(self) -> None:
        if not self._rg:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._edge is None or self._retained:
            return
        self._retained = True
        node, number = public(self._edge)
        node.watched = True
        if node.retains is None:
            node.retains = {}
        node.retains[number] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        return self._retained

    def register_hook(self, hook: Any) -> RemovableHandle:
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._edge is None:
            if self._hooks is None:
                self._hooks = OrderedDict()
            return RemovableHandle(self._hooks, hook)
        node, number = public(self._edge)
        node.watched = True
        if node.tensor_hooks is None:
            node.tensor_hooks = {}
        return RemovableHandle(node.tensor_hooks.setdefault(number, OrderedDict()), hook)

    def register_post_accumulate_grad_hook(self, hook: Any) -> RemovableHandle:
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._edge is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_hooks is None:
            self._post_hooks = OrderedDict()
        return RemovableHandle(self._post_hooks, hook)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        run_backward((self,), gradient, retain_graph, create_graph, inputs)

    # --- leaving the engine -----------------------------------------------------------------------------------

    def item(self) -> Any:
        a = self._a
        if a.size != 1:
            raise RuntimeError(f"a Tensor with {a.size} elements cannot be converted to Scalar")
        return a.item()

    def tolist(self) -> Any:
        return self._a.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if self._rg and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.dtype is dtypes.bfloat16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        share(self)
        return self._a

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        a = self.numpy()
        return a if dtype is None else a.astype(dtype, copy=False)

    def __bool__(self) -> bool:
        a = self._a
        if a.size != 1:
            if a.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(a)

    def _number(self, name: str) -> Any:
        if self._a.size != 1:
            if name == "float" or name == "int" or name == "complex":
                raise ValueError("only one element tensors can be converted to Python scalars")
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return self._a.item()

    def __float__(self) -> float:
        number = self._number("float")
        if self._rg:
            warn_once(SCALAR_WARNING)
        return float(number)

    def __int__(self) -> int:
        return int(self._number("int"))

    def __complex__(self) -> complex:
        number = self._number("complex")
        if self._rg:
            warn_once(SCALAR_WARNING)
        return complex(number)

    def __index__(self) -> int:
        if self._a.size != 1 or self.dtype.kind not in "ib":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._a.item())

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, bool, complex)):
            return bool((self == element).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __iter__(self) -> Any:
        if self._a.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .printing import tensor_str

        return tensor_str(self)

    def __format__(self, spec: str) -> str:
        if self._a.ndim == 0 and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return [n for n in object.__dir__(self) if n not in ("_a", "_vc", "_rg", "_edge")]

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._edge is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment.  If you were attempting to deepcopy a module, this may be because of a torch.nn.utils."
                "weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        out = wrap(np.array(self._a, order="K") if isinstance(self._a, np.ndarray) else self._a, self.dtype)
        memo[id(self)] = out
        out._become(type(self))
        out._rg = self._rg
        if self._grad is not None:
            out._grad = self._grad.__deepcopy__(memo)
        for key, value in self.__dict__.items():
            if not key.startswith("_") and key != "name":
                import copy

                out.__dict__[key] = copy.deepcopy(value, memo)
        return out

    def __copy__(self) -> Tensor:
        out = self.detach()
        out._become(type(self))
        out._rg = self._rg
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._edge is not None:
            raise RuntimeError("Cannot pickle a non-leaf Tensor; detach() it first")
        return _rebuild, (type(self), np.asarray(self._a), self.dtype, self._rg)

    def _become(self, cls: type) -> None:
        if cls is not Tensor:
            self.__class__ = cls

    def __getattr__(self, name: str) -> Any:
        from .catalogue import TENSOR

        if name in TENSOR:
            not_covered(f"Tensor.{name}")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setstate__(self, state: Any) -> None:
        not_covered("unpickling tensors of PyTorch")


run_backward: Any = None
"""`backward.backward`, which puts itself here."""


def _rebuild(cls: type, array: Any, d: dtype, requires_grad: bool) -> Tensor:
    out = wrap(array if array.ndim else array[()], d)
    out._rg = requires_grad
    out._become(cls)
    return out


def wrap(a: Any, d: dtype) -> Tensor:
    """A fresh leaf around an array that nobody else holds."""
    out: Tensor = _new(Tensor)
    out._a = a
    out.dtype = d
    out._vc = None if modes.inference else [0]
    out._edge = None
    out._rg = False
    return out


def share(t: Tensor) -> None:
    """Give a tensor without dimensions memory that an alias can see."""
    if not isinstance(t._a, np.ndarray):
        t._a = np.array(t._a)


def wrap_dim(dim: Any, ndim: int) -> int:
    """A dimension counted from the front; PyTorch lets a 0-d tensor have dimension 0 and -1."""
    n = ndim or 1
    if dim.__class__ is not int:
        dim = dim.__index__()
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def brackets(shape: Any) -> str:
    return f"[{', '.join(map(str, shape))}]"


_CPP = {
    "Byte": "unsigned char",
    "Char": "signed char",
    "Short": "short",
    "Int": "int",
    "Long": "long",
    "Half": "c10::Half",
    "BFloat16": "c10::BFloat16",
    "Float": "float",
    "Double": "double",
    "Bool": "bool",
    "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
}


def cpp_name(d: dtype) -> str:
    """The C++ name of a type, which some of PyTorch's texts use."""
    return _CPP[d.legacy]


dtypes.Size.__torch_size__ = True  # type: ignore[attr-defined]
