"""Modules of the user's own are compiled by a transform as they are imported; all others as ever.

Only `SourceFileLoader.get_code` is replaced: specs, loaders and `__cached__` stay as they are, nothing transformed
is written to a `.pyc`, and where the transform cannot be used Python's own `get_code` does its work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from importlib import util
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from whygrad.execute.silence import silent_compiler

Transform = Callable[[bytes | str, str], CodeType]
Lost = Callable[[str, str], None]

INSTALLED = ("site-packages", "dist-packages")
ENGINES = frozenset({"torch", "torchgen", "functorch", "torchvision", "torchaudio", "numpy", "whygrad"})
"""Never the user's own, even where the program runs in a checkout of theirs."""


class OwnFiles:
    """Which files are the user's own: those below the program's folder or the working directory that are neither
    installed nor part of Python or of an environment."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = tuple(dict.fromkeys(_folder(root) for root in roots))
        self._others = _libraries() + tuple(
            folder
            for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix)
            if not any(root.startswith(folder := _folder(prefix)) for root in self._roots)
        )
        self._environments: dict[str, bool] = {}
        self._folders: dict[str, bool] = {}

    def __contains__(self, path: str) -> bool:
        if os.path.islink(path):
            path = os.path.realpath(path)
        folder = os.path.dirname(path)
        if not os.path.isabs(folder):
            return self._is_own(folder)
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._is_own(folder)
        return known

    def _is_own(self, folder: str) -> bool:
        real = _folder(folder)
        root = next((root for root in self._roots if real.startswith(root)), None)
        if root is None or any(real.startswith(other) for other in self._others):
            return False
        below = real[len(root) :].split(os.sep)[:-1]
        if any(name in INSTALLED for name in below):
            return False
        folders = (root + os.sep.join(below[:count]) for count in range(1, len(below) + 1))
        return not any(self._is_environment(folder) for folder in folders)

    def _is_environment(self, folder: str) -> bool:
        known = self._environments.get(folder)
        if known is None:
            known = self._environments[folder] = os.path.exists(os.path.join(folder, "pyvenv.cfg"))
        return known


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")


def _libraries() -> tuple[str, ...]:
    """Python's own library, and this package."""
    return _folder(os.path.dirname(os.__file__)), _folder(os.path.dirname(os.path.dirname(__file__)))


class OwnImports:
    """The replacement of `get_code`. `ready` holds code that is compiled already, by path."""

    def __init__(self, transform: Transform, lost: Lost, own: OwnFiles, ready: dict[str, CodeType]) -> None:
        self._transform = transform
        self._lost = lost
        self._own = own
        self._ready = ready
        self._seen: set[str] = set()

    def install(self) -> None:
        """From here on. It is not taken back: threads and exit handlers of the program may still import."""
        SourceFileLoader.get_code = _GetCode(self, SourceFileLoader.get_code)  # type: ignore[method-assign, assignment]

    def code(self, loader: SourceFileLoader) -> CodeType | None:
        """The transformed code of a module of the user's own; None leaves the module to Python."""
        name, path = loader.name, loader.path
        try:
            ready = self._ready.pop(path, None)
            if ready is not None:
                return ready
            if not isinstance(path, str) or name.partition(".")[0] in ENGINES or path not in self._own:
                return None
            if _reads_its_own_way(loader):
                self._lost(path, "it is imported by a loader that compiles in a way of its own")
                return None
            source = loader.get_data(path)
        except Exception:  # a file that cannot be read, a name that is not the loader's: Python says so better
            return None
        return self._compiled(source, path)

    def _compiled(self, source: bytes, path: str) -> CodeType | None:
        try:
            cached = _is_cached(path) or (path in self._seen and not sys.dont_write_bytecode)
            self._seen.add(path)
            with silent_compiler() if cached else nullcontext():  # Python would not compile, and so not warn
                return self._transform(source, path)
        except SyntaxError as error:
            if not _is_python(source, path):
                return None  # Python's own get_code raises it, with Python's own traceback
            fault: Exception = error
        except Exception as error:
            fault = error
        self._lost(path, f"it could not be prepared: {type(fault).__name__}: {fault}")
        return None


def await_import(name: str, imported: Callable[[ModuleType], None]) -> None:
    """Have `imported` called with the module once it is imported. No finder stands in the program's way meanwhile."""
    _AWAITED[name] = imported
    if not isinstance(vars(SourceFileLoader).get("get_code"), _GetCode):
        SourceFileLoader.get_code = _GetCode(None, SourceFileLoader.get_code)  # type: ignore[method-assign, assignment]


def await_no_more(name: str) -> None:
    _AWAITED.pop(name, None)


_AWAITED: dict[str, Callable[[ModuleType], None]] = {}


class _Awaited(ModuleSpec):
    """The spec of a module that is being imported. Python's last word on an import is that it is not initializing."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "_initializing" and not value:
            self.__class__ = ModuleSpec  # type: ignore[assignment]
            module = sys.modules.get(self.name)
            imported = None if module is None else _AWAITED.pop(self.name, None)  # None: the import failed
            if imported is not None and module is not None:
                imported(module)


def _watch(name: str) -> None:
    """A module that is awaited has begun."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if type(spec) is ModuleSpec:
        spec.__class__ = _Awaited


class _GetCode:
    """`SourceFileLoader.get_code`. It decides when it is looked up, so that no frame of ours is there when it is
    called: Python's own method raises what there is to raise."""

    def __init__(self, own: OwnImports | None, original: Callable[[Any, str], CodeType | None]) -> None:
        self._own = own
        self._original = original

    def __get__(self, loader: SourceFileLoader | None, kind: type) -> Callable[..., CodeType | None]:
        if loader is not None and _AWAITED and loader.name in _AWAITED:
            _watch(loader.name)
        if loader is not None and self._own is not None:
            code = self._own.code(loader)
            if code is not None:
                return {loader.name: code}.__getitem__
        return self._original.__get__(loader, kind)  # type: ignore[no-any-return]


def _is_python(source: bytes, path: str) -> bool:
    try:
        with silent_compiler():
            compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _reads_its_own_way(loader: SourceFileLoader) -> bool:
    kind = type(loader)
    return kind is not SourceFileLoader and any(
        getattr(kind, name) is not getattr(SourceFileLoader, name) for name in ("source_to_code", "get_data")
    )


def _is_cached(path: str) -> bool:
    """Whether Python has a `.pyc` that fits the source, by its size and time as Python compares them."""
    try:
        with open(util.cache_from_source(path), "rb") as cached:
            head = cached.read(16)
        source = os.stat(path)
    except (OSError, NotImplementedError):
        return False
    if len(head) != 16 or head[:4] != util.MAGIC_NUMBER or head[4:8] != b"\0\0\0\0":
        return head[:4] == util.MAGIC_NUMBER
    return head[8:12] == _four_bytes(source.st_mtime) and head[12:16] == _four_bytes(source.st_size)


def _four_bytes(number: float) -> bytes:
    return (int(number) & 0xFFFFFFFF).to_bytes(4, "little")
