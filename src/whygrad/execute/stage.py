"""Makes the interpreter look as `python program` makes it: `__main__`, `sys.argv`, `sys.path`; and keeps what of
ours was imported out of the program's way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import BuiltinImporter, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from whygrad.execute.program import Kind, Program, is_path_safe

STARTED = frozenset({
    "__main__", "abc", "codecs", "encodings", "genericpath", "io", "ntpath", "os", "posixpath", "site",
    "sitecustomize", "stat", "usercustomize", "zipimport", "_collections_abc", "_sitebuiltins",
})  # fmt: skip
"""What the interpreter has imported before it runs a program."""

OURS = frozenset({"click", "msgspec", "markdown_it", "mdurl"})
"""What we have imported by then and a program has not. A program that uses them gets copies of its own."""


def main_module(program: Program) -> ModuleType:
    """A fresh `__main__` with what the interpreter puts into it before the program's first line."""
    main = ModuleType("__main__")
    names: dict[str, Any] = vars(main)
    main.__loader__ = BuiltinImporter
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    names["__builtins__"] = sys.modules["builtins"]
    if program.kind is Kind.SCRIPT:
        main.__loader__ = SourceFileLoader("__main__", program.path)
    if program.kind in (Kind.SCRIPT, Kind.STDIN):
        main.__file__ = program.path
        if sys.version_info < (3, 15):
            names["__cached__"] = None
    return main


def forget_file(main: ModuleType) -> None:
    """What the interpreter does once a script's last line has run."""
    vars(main).pop("__file__", None)
    vars(main).pop("__cached__", None)


class Stage:
    """Sets `sys` up for the program, and lets us import our own modules afterwards as if it had never run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._path = list(sys.path)
        self._ours: dict[str, ModuleType] = {}
        self._folder = ""
        self._replaced: ModuleType | None = None

    def set(self) -> ModuleType:
        """The program's turn: returns its `__main__`."""
        program = self._program
        main = main_module(program)
        self._replaced = sys.modules["__main__"]  # C still holds its names, without owning them
        sys.modules["__main__"] = main
        sys.orig_argv = _command(program)
        sys.argv = list(program.argv)
        if not is_path_safe():
            sys.path[0] = program.search
        elif program.kind is Kind.FOLDER:
            sys.path.insert(0, program.search)
        self._folder = program.search or here()
        self._ours = _take_out(_offered(self._folder) | OURS, self._folder, inside=False)
        return main

    @contextmanager
    def ours_again(self) -> Iterator[None]:
        """Imports find what they found before the program came, whatever it named its own files."""
        hook, sys.excepthook = getattr(sys, "excepthook", None), sys.__excepthook__  # modules look for it
        path, theirs = sys.path, _take_out(_offered(self._folder), self._folder, inside=True)
        sys.path = self._path[0 if is_path_safe() else 1 :]
        sys.modules.update(self._ours)
        try:
            yield
        finally:
            self._ours = {}
            sys.path = path
            sys.modules.update(theirs)
            if hook is not None:
                sys.excepthook = hook


def here() -> str:
    """The working directory."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.curdir


def _offered(folder: str) -> set[str]:
    """The names of imported modules under which a folder offers a module of its own."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return set()
    imported = {name.partition(".")[0] for name in sys.modules}
    names = {entry.partition(".")[0] for entry in entries} & imported
    names = names.difference(STARTED, sys.builtin_module_names, ("whygrad",))
    return {name for name in names if _is_module(name, folder)}


def _is_module(name: str, folder: str) -> bool:
    spec = PathFinder.find_spec(name, [folder])
    return spec is not None and spec.loader is not None


def _take_out(names: set[str], folder: str, *, inside: bool) -> dict[str, ModuleType]:
    """Make the imported modules of these names that come from the folder (or do not) be forgotten; returns them."""
    start = os.path.join(folder, "")
    names = {
        name
        for name in names
        if name in sys.modules and (getattr(sys.modules[name], "__file__", None) or "").startswith(start) is inside
    }
    found = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in names}
    for name in found:
        del sys.modules[name]
    return found


def _command(program: Program) -> list[str]:
    """`sys.orig_argv` as it would be: the interpreter and its own options, then the program."""
    given = sys.orig_argv
    ours = max(len(given) - len(sys.argv), 1)
    if given[ours - 1] in ("-m", "-c"):
        ours -= 1
    words = list(program.argv)
    if program.kind is Kind.MODULE:
        words.insert(1, program.module)
    elif program.kind is Kind.CODE:
        words.insert(1, str(program.cells[0].source)[:-1])
    return [*given[: max(ours, 1)], *words]
