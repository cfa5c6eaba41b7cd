"""The namespace that answers to `import torch`: names only; what they mean is in the packages around this one.

Submodules are loaded when they are first used, so that a script pays for what it touches.
"""

# mypy: no-warn-return-any
from __future__ import annotations

import importlib
import math
import sys
from typing import Any

from .. import backward as _backward
from .. import catalogue, dtypes, modes, random
from ..autocast import autocast, get_autocast_dtype, is_autocast_enabled
from ..dtypes import (
    Size,
    bfloat16,
    channels_last,
    complex64,
    complex128,
    contiguous_format,
    device,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    layout,
    memory_format,
    preserve_format,
    set_default_dtype,
    strided,
    uint8,
)
from ..errors import not_covered
from ..modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ..ops import (
    activation,
    again,
    arithmetic,
    attention,
    bags,
    compare,
    convert,
    convolution,
    decompositions,
    diagonals,
    extrema,
    factories,
    index,
    join,
    losses,
    normalise,
    norms,
    order,
    parts,
    places,
    pointwise,
    pooling,
    recurrent,
    reduce,
    resize,
    sampling,
    shape,
)
from ..ops import (
    linalg as _linalg_ops,
)
from ..ops.define import TORCH as _TORCH
from ..printing import set_printoptions
from ..random import Generator, default_generator
from ..tensor import Tensor

__version__ = "2.13.0+whygrad"

float = float32
double, half, short, int, long = float64, float16, int16, int32, int64
cfloat, cdouble = complex64, complex128
bool = dtypes.bool_
globals().update(_TORCH)

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None

for _d in dtypes.ALL:
    globals()[f"{_d.legacy}Tensor"] = factories.typed_constructor(_d)

_SUBMODULES = frozenset(
    [
        "_C",
        "nn",
        "optim",
        "autograd",
        "linalg",
        "func",
        "utils",
        "cuda",
        "backends",
        "distributions",
        "random",
        "version",
        "amp",
        "special",
        "jit",
        "fft",
        "testing",
        "mps",
        "overrides",
        "types",
        "return_types",
        "compiler",
        "distributed",
        "multiprocessing",
        "sparse",
        "onnx",
    ]
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            not_covered(f"torch.{name}")
    if name in catalogue.TORCH:
        not_covered(f"torch.{name}")
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


_threads = {"within": 1, "between": 1}


def set_num_threads(n: Any) -> None:
    """Accepted: NumPy's own threads are set by the environment."""
    if not isinstance(n, _int_type) or isinstance(n, _bool_type):
        raise TypeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _threads["within"] = n


_int_type, _bool_type = type(1), type(True)  # noqa: UP003 - `int` and `bool` are dtypes here


def get_num_threads() -> Any:
    return _threads["within"]


def set_num_interop_threads(n: Any) -> None:
    _threads["between"] = n


def get_num_interop_threads() -> Any:
    return _threads["between"]


_flags = {"deterministic": False, "warn_only": False, "precision": "highest"}


def use_deterministic_algorithms(mode: Any, *, warn_only: Any = False) -> None:
    """This engine is deterministic either way."""
    _flags["deterministic"], _flags["warn_only"] = mode, warn_only


def are_deterministic_algorithms_enabled() -> Any:
    return _flags["deterministic"]


def set_float32_matmul_precision(precision: Any) -> None:
    _flags["precision"] = precision


def get_float32_matmul_precision() -> Any:
    return _flags["precision"]


def set_default_device(where: Any) -> None:
    factories.on_cpu(where)


def get_default_device() -> Any:
    return dtypes.CPU


def set_default_tensor_type(t: Any) -> None:
    not_covered("torch.set_default_tensor_type")


def is_storage(obj: Any) -> Any:
    return False


def typename(obj: Any) -> str:
    cls = obj if isinstance(obj, type) else type(obj)
    if isinstance(obj, Tensor):
        return obj.type()
    return f"{cls.__module__}.{cls.__qualname__}"


def compile(model: Any = None, **kwargs: Any) -> Any:
    not_covered("torch.compile")


def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    not_covered("torch.save")


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    not_covered("torch.load")


sys.modules[__name__].Tensor = Tensor  # type: ignore[attr-defined]

__all__ = [n for n in globals() if not n.startswith("_") and n not in ("annotations", "importlib", "sys", "Any")]
