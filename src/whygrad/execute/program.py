"""What the user asked to run, found and read: a script, a module, code, standard input, a notebook or a Markdown file.

Nothing runs here. What cannot be run is refused with one sentence (`BadInput`).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from whygrad.errors import BadInput

NOTEBOOKS = (".ipynb",)
DOCUMENTS = (".md", ".markdown")


class Kind(Enum):
    """How a program was given. A `FOLDER` is a directory or a zip file with a `__main__.py` in it."""

    SCRIPT = "script"
    MODULE = "module"
    FOLDER = "folder"
    CODE = "code"
    STDIN = "stdin"
    NOTEBOOK = "notebook"
    MARKDOWN = "markdown"


class Cell(msgspec.Struct, frozen=True):
    """A piece of source that is compiled as one; `path` is the file name in tracebacks and sites."""

    source: bytes | str
    path: str


class Program(msgspec.Struct, frozen=True):
    """A program that can be run.

    `name` is what the user called it; `argv` what it will find in `sys.argv`; `cells` its own source, in order.
    `search` is what Python puts in front of `sys.path` for it. A module or a folder has a `module` name, and its
    cell, if its source is a file, is what Python will import under that name. `notes` say what was left out.
    """

    kind: Kind
    name: str
    argv: tuple[str, ...]
    cells: tuple[Cell, ...]
    search: str
    module: str = ""
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The file of the program's own source, as tracebacks spell it; a notebook's file for a notebook."""
        if self.kind is Kind.NOTEBOOK or not self.cells:
            return os.path.abspath(self.name)
        return self.cells[0].path

    def with_sources(self, replaced: Mapping[str, bytes]) -> Program:
        """The same program, with another text for the files of these real paths."""
        if not replaced:
            return self
        cells = (Cell(replaced.get(os.path.realpath(cell.path), cell.source), cell.path) for cell in self.cells)
        return msgspec.structs.replace(self, cells=tuple(cells))


def file(name: str, arguments: Sequence[str] = ()) -> Program:
    """The program in a file: a script, or by its extension a notebook or a Markdown document.

    A directory or a zip file is run by its `__main__.py`, as Python does.
    """
    extension = os.path.splitext(name)[1].lower()
    if os.path.isdir(name) or _is_archive(name):
        return _folder(name, arguments)
    source = read(name)
    path = name if os.path.isabs(name) else os.path.join(os.getcwd(), name)  # as Python: made absolute, else as typed
    search = os.path.dirname(os.path.realpath(name))
    argv = (name, *arguments)
    if extension in NOTEBOOKS:
        from whygrad.execute import notebook

        cells, notes = notebook.cells(name, path, source)
        return Program(Kind.NOTEBOOK, name, argv, cells, search, notes=notes)
    if extension in DOCUMENTS:
        from whygrad.execute import markdown

        return Program(Kind.MARKDOWN, name, argv, (markdown.cell(name, path, source),), search)
    return Program(Kind.SCRIPT, name, argv, (Cell(_checked(name, source), path),), search)


def code(source: str, arguments: Sequence[str] = ()) -> Program:
    """The program given by `-c`."""
    if "\0" in source:
        raise BadInput("-c: the code holds a NUL character, which no Python source may.")
    return Program(Kind.CODE, "-c", ("-c", *arguments), (Cell(source + "\n", "<string>"),), "")


def standard_input(arguments: Sequence[str] = ()) -> Program:
    """The program on standard input, which is read to its end as Python does."""
    try:
        source = sys.stdin.buffer.read()
    except (AttributeError, OSError, ValueError) as error:  # closed, or not a real stream
        raise BadInput(f"-: standard input cannot be read: {error}.") from None
    return Program(Kind.STDIN, "-", ("-", *arguments), (Cell(_checked("-", source), "<stdin>"),), "")


def module(name: str, arguments: Sequence[str] = ()) -> Program:
    """The program that `-m name` runs: a module, or the `__main__` of a package. Imports nothing of it."""
    search = os.getcwd()
    spec = _spec(name, search)
    if spec.submodule_search_locations is not None and name.rpartition(".")[2] != "__main__":
        try:
            spec = _spec(f"{name}.__main__", search)
        except BadInput:
            raise BadInput(f"-m {name}: is a package without a __main__ module, so it cannot be run.") from None
    return Program(Kind.MODULE, name, ("-m", *arguments), _module_cells(spec), search, module=name)


def _module_cells(spec: Any) -> tuple[Cell, ...]:
    if spec.has_location and spec.origin.endswith(".py"):
        return (Cell(_checked(spec.origin, read(spec.origin)), spec.origin),)
    return ()


def _spec(name: str, search: str) -> Any:
    """The module's spec, found from package to package without importing any."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise BadInput(f"-m {name}: is not a module's name, such as package.module.")
    path = sys.path[1:]
    if not is_path_safe():
        path.insert(0, search)
    spec, below = None, path
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        partial = ".".join(parts[:count])
        spec = _found(partial, below, top=count == 1)
        if spec is None:
            missing = "" if count == len(parts) else f" (there is no {partial})"
            raise BadInput(f"-m {name}: there is no such module{missing}.")
        if count < len(parts):
            if spec.submodule_search_locations is None:
                raise BadInput(f"-m {name}: {partial} is a module, not a package.")
            below = list(spec.submodule_search_locations)
    return spec


def _found(name: str, path: list[str], *, top: bool) -> Any:
    """What the finders know; those that look in `sys.path` by themselves are shown the program's."""
    ours = sys.path
    sys.path = path if top else ours
    try:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, None if top else path) if find is not None else None
            if spec is not None:
                return spec
    finally:
        sys.path = ours
    return None


def _folder(name: str, arguments: Sequence[str]) -> Program:
    from importlib.machinery import PathFinder

    path = name if os.path.isabs(name) else os.path.join(os.getcwd(), name)
    spec = PathFinder.find_spec("__main__", [path])
    if spec is None:
        what = "is a directory" if os.path.isdir(name) else "is an archive"
        raise BadInput(f"{name}: {what} without a __main__.py, so there is nothing to run.")
    cells = _module_cells(spec) if os.path.isdir(name) else ()
    return Program(Kind.FOLDER, name, (name, *arguments), cells, path, module="__main__")


def _is_archive(name: str) -> bool:
    """Whether Python would look for a `__main__` in this file: a zip file, whatever its name."""
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            return False
        with open(name, "rb") as archive:
            if archive.read(2) not in (b"PK", b"#!"):
                return False
    except (OSError, ValueError):
        return False
    import zipimport

    try:
        zipimport.zipimporter(name)
    except zipimport.ZipImportError:
        return False
    return True


def is_path_safe() -> bool:
    """Whether Python was told not to put the program's folder in front of `sys.path` (`-P`, `-I`)."""
    return bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def read(name: str) -> bytes:
    """The bytes of a file; raises `BadInput` if it cannot be read."""
    try:
        with open(name, "rb") as source:
            return source.read()
    except FileNotFoundError:
        raise BadInput(f"{name}: there is no such file.") from None
    except ValueError as error:  # a NUL in the name
        raise BadInput(f"{name!r}: is not a file name: {error}.") from None
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror or error}.") from None


def _checked(name: str, source: bytes) -> bytes:
    """`source`, if it can be Python's: text in the encoding that it declares."""
    at = source.find(b"\0")
    if at >= 0:
        line = source.count(b"\n", 0, at) + 1
        raise BadInput(f"{name}:{line}: holds a NUL byte, so it is not Python source.")
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        _check_encoding(name, source, error)
    return source


def _check_encoding(name: str, source: bytes, fault: UnicodeDecodeError) -> None:
    """Source that is not UTF-8 must say in its first two lines what it is (`# coding: latin-1`)."""
    import io
    import tokenize

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError:  # the fault lies in the first two lines, or the encoding is unknown to Python
        encoding = "utf-8"
    if encoding.startswith("utf-8"):
        line = source.count(b"\n", 0, fault.start) + 1
        raise BadInput(f"{name}:{line}: is not UTF-8 text (byte 0x{source[fault.start]:02x}).")
    try:
        source.decode(encoding)
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{name}:{line}: is not {encoding} text, which it says it is.") from None
