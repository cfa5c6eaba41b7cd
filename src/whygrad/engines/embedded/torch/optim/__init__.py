"""`torch.optim`."""

from __future__ import annotations

from typing import Any

from ... import catalogue
from ...errors import not_covered
from ...optim.algorithms import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop
from ...optim.lbfgs import LBFGS
from ...optim.optimizer import Optimizer
from . import lr_scheduler, optimizer


def __getattr__(name: str) -> Any:
    if name in catalogue.OPTIM:
        not_covered(f"torch.optim.{name}")
    raise AttributeError(f"module 'torch.optim' has no attribute '{name}'")


__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "lr_scheduler",
    "optimizer",
]
