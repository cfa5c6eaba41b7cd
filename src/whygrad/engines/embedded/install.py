"""`import torch` resolves to this engine, and only while asked to."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_OURS = "whygrad.engines.embedded.torch"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch.x.y` as this engine's module of that name."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "torch" or name.startswith("torch."):
            try:
                importlib.import_module(_OURS + name[len("torch") :])
            except ModuleNotFoundError as error:
                if error.name is None or not error.name.startswith(_OURS):
                    raise
                if name.count(".") >= 1:
                    from .errors import not_covered

                    not_covered(f"the module {name}")
                return None
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        module = sys.modules[_OURS + spec.name[len("torch") :]]
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # the import system has just put the borrowed name's spec there


@contextmanager
def answering_to_torch() -> Iterator[None]:
    """Inside, `import torch` (and its submodules) gives this engine; outside, what was there before."""
    before = {n: m for n, m in sys.modules.items() if n == "torch" or n.startswith("torch.")}
    for n in before:
        del sys.modules[n]
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for n in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
            del sys.modules[n]
        sys.modules.update(before)
