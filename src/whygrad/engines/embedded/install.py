"""`import torch` resolves to this engine, and only while asked to."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OURS = "whygrad.engines.embedded.torch"

Arrived = Callable[[ModuleType], None]


class Stand:
    """Stands for PyTorch between `enter` and `leave`; `arrived` hears of the first `import torch`.

    Nothing of the engine (nor NumPy) is imported before that.
    """

    def __init__(self, arrived: Arrived | None = None) -> None:
        self._finder = _Finder(self._import)
        self._arrived = arrived
        self._real: dict[str, ModuleType] = {}
        self._leave_quiet: Callable[[], None] | None = None

    def enter(self) -> None:
        self._real = _take_out()
        sys.meta_path.insert(0, self._finder)  # type: ignore[arg-type]

    def leave(self) -> None:
        """Put back what was there before."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)  # type: ignore[arg-type]
            _take_out()
            sys.modules.update(self._real)
        if self._leave_quiet is not None:
            self._leave_quiet()
            self._leave_quiet = None

    def _import(self, torch: ModuleType) -> None:
        """The module is in its place: nobody waits for it yet."""
        if self._leave_quiet is None:
            from .quiet import be_quiet

            self._leave_quiet = be_quiet()
            if self._arrived is not None:
                self._arrived(torch)


class _Finder:
    """Finds `torch.x.y` as this engine's module of that name.

    It has no base class: importing that takes 8 ms.
    """

    def __init__(self, imported: Arrived) -> None:
        self._imported = imported
        self._own: Any = None

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "torch" or name.startswith("torch."):
            try:
                importlib.import_module(_OURS + name[len("torch") :])
            except ModuleNotFoundError as error:
                if error.name is None or not error.name.startswith(_OURS):
                    raise
                from .errors import not_covered

                not_covered(f"the module {name}")
            return ModuleSpec(name, self)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> ModuleType:
        module = sys.modules[_OURS + spec.name[len("torch") :]]
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        name, module.__spec__ = module.__spec__.name, self._own  # type: ignore[union-attr]  # not the borrowed one
        if name == "torch":
            self._imported(module)


@contextmanager
def answering_to_torch() -> Iterator[None]:
    """Inside, `import torch` (and its submodules) gives this engine; outside, what was there before."""
    stand = Stand()
    stand.enter()
    try:
        yield
    finally:
        stand.leave()


def _take_out() -> dict[str, ModuleType]:
    found = {name: module for name, module in sys.modules.items() if name == "torch" or name.startswith("torch.")}
    for name in found:
        del sys.modules[name]
    return found
