"""Ways of looking at a training loop, other than ours: what each costs is measured on the same program.

Each is a context around the loop, and is asked for by its name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


def looking(way: str, model: torch.nn.Module) -> AbstractContextManager[Any]:
    """The context of the way of that name; none for an empty name."""
    return globals()[way](model) if way else nullcontext()


def anomaly_mode(_: torch.nn.Module) -> AbstractContextManager[Any]:
    return torch.autograd.set_detect_anomaly(True)


@contextmanager
def accumulation_hooks(model: torch.nn.Module) -> Iterator[None]:
    """A hook on each parameter, called when its gradient has been added."""
    seen = [0]

    def hook(_: torch.Tensor) -> None:
        seen[0] += 1

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
    yield


@contextmanager
def saved_tensor_hooks(_: torch.nn.Module) -> Iterator[None]:
    """Told each tensor that a node saves, and each that it takes out again."""
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        yield


@contextmanager
def backward_hooks(model: torch.nn.Module) -> Iterator[None]:
    """A full backward hook on every module."""
    seen = [0]

    def hook(*_: Any) -> None:
        seen[0] += 1

    for module in model.modules():
        module.register_full_backward_hook(hook)
    yield


@contextmanager
def line_tracing(_: torch.nn.Module) -> Iterator[None]:
    """`sys.settrace`, for the lines of the program's own file."""
    lines = [0]
    own = sys._getframe(2).f_code.co_filename

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != own:
            return None
        if event == "line":
            lines[0] = frame.f_lineno
        return trace

    sys.settrace(trace)
    sys._getframe(2).f_trace = trace
    yield
    sys.settrace(None)


def function_mode(_: torch.nn.Module) -> AbstractContextManager[Any]:
    return Calls()


def dispatch_mode(_: torch.nn.Module) -> AbstractContextManager[Any]:
    return Kernels()


class Calls(TorchFunctionMode):
    """Sees each call of a function of torch's, and the line that made it."""

    line = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.line = sys._getframe(1).f_lineno
        return func(*args, **(kwargs or {}))


class Kernels(TorchDispatchMode):
    """Sees each operation that reaches a kernel, in the backward too."""

    seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def torchlens_trace(model: torch.nn.Module) -> Iterator[None]:
    """TorchLens traces each call of the model: one more forward, all of its results kept."""
    import torchlens

    inside = [False]

    def hook(module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        if not inside[0]:
            inside[0] = True
            torchlens.trace(module, args)
            inside[0] = False

    model.register_forward_pre_hook(hook)
    yield


@contextmanager
def wandb_watch(model: torch.nn.Module) -> Iterator[None]:
    """`wandb.watch` of gradients in every step, without a server."""
    import tempfile

    os.environ["WANDB_SILENT"] = "true"
    import wandb

    with tempfile.TemporaryDirectory() as folder, wandb.init(mode="offline", project="benchmark", dir=folder) as run:
        run.watch(model, log="gradients", log_freq=1)
        model.register_forward_pre_hook(lambda *_: run.log({"step": 1}))
        yield
