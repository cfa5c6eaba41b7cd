"""`torch.autograd.function`."""

from ... import function as _function
from ...function import BackwardCFunction, Function, FunctionCtx, once_differentiable

__file__ = _function.__file__
"""Where the frames of `apply` are, as in PyTorch's module of this name."""

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "once_differentiable"]
