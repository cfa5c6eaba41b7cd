"""The code cells of a Jupyter notebook, read as JSON. Outputs and other cells are not looked at."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from whygrad.errors import BadInput
from whygrad.execute.program import Cell

FORMAT = 4
"""The notebook format that is read; Jupyter has written it since 2014."""

HARMLESS = frozenset(
    {"autoreload", "autosave", "colors", "config", "doctest_mode", "load_ext", "matplotlib", "precision", "reload_ext"}
)
"""Magics that set up the notebook and not the program: they are left out, and said to be."""

_MAGIC = re.compile(r"(?P<indent>\s*)(?P<sign>%%?|!|\?)\s*(?P<name>\w*)")
_ASSIGNED = re.compile(r"[\w\s,.\[\]]+=\s*[!%]")
_HELP = re.compile(r"\s*[\w.]+\?\??\s*$")


def cells(name: str, path: str, document: bytes) -> tuple[tuple[Cell, ...], tuple[str, ...]]:
    """The code cells in order, and what was left out of them.

    Cells are numbered as Jupyter does when it runs them all: code cells that are not empty, from 1.
    """
    sources = [source for source in _code(name, document) if source.strip()]
    if not sources:
        raise BadInput(f"{name}: has no code cell, so there is nothing to run.")
    notes: list[str] = []
    found = [
        Cell(_plain(f"{name}, cell {number}", source, notes), f"{path}[{number}]")
        for number, source in enumerate(sources, 1)
    ]
    return tuple(found), tuple(notes)


def _code(name: str, document: bytes) -> list[str]:
    """The source of each code cell."""
    try:
        notebook = json.loads(document.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        fault = "is cut off" if error.pos >= len(error.doc.rstrip()) else "is not a notebook"
        raise BadInput(f"{name}:{error.lineno}: {fault}: {error.msg}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{name}: is not a notebook: it is not UTF-8 text.") from None
    except RecursionError:
        raise BadInput(f"{name}: is not a notebook: it is nested too deeply.") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise BadInput(f"{name}: is not a notebook: it names no notebook format.")
    version = notebook["nbformat"]
    if version != FORMAT:
        raise BadInput(f"{name}: is in notebook format {version}, not {FORMAT}; open and save it in Jupyter.")
    language = _language(notebook.get("metadata"))
    if language != "python":
        raise BadInput(f"{name}: is a notebook in {language}, not in Python.")
    listed = notebook.get("cells")
    if not isinstance(listed, list):
        raise BadInput(f"{name}: is not a notebook: it has no list of cells.")
    return [source for position, cell in enumerate(listed, 1) if (source := _source(name, position, cell)) is not None]


def _language(metadata: Any) -> str:
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        known = metadata.get(part) if isinstance(metadata, dict) else None
        if isinstance(known, dict) and isinstance(known.get(key), str):
            return str(known[key]).lower()
    return "python"


def _source(name: str, position: int, cell: Any) -> str | None:
    """The source of a cell, None unless it is code. `position` counts all cells of the file."""
    where = f"{name}: item {position} of its cells"
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        raise BadInput(f"{where} is broken: it has no cell type.")
    if cell["cell_type"] != "code":
        return None
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    if not isinstance(source, str):
        raise BadInput(f"{where} is broken: its source is not text.")
    return source


def _plain(where: str, source: str, notes: list[str]) -> str:
    """The cell without its harmless magics, each replaced so that the lines keep their numbers."""
    lines = source.splitlines()
    while True:
        fault = _fault(lines)
        if fault is None or not fault.lineno or fault.lineno > len(lines):
            return "\n".join(lines) + "\n"  # a real syntax error is reported where all programs' are
        number = fault.lineno
        line = lines[number - 1]
        magic = _MAGIC.match(line)
        if magic is None and not _ASSIGNED.match(line) and not _HELP.match(line):
            return "\n".join(lines) + "\n"
        if magic is None or not _is_harmless(magic["sign"], magic["name"]):
            raise BadInput(f"{where}, line {number}: `{line.strip()}` is IPython's, not Python; it cannot be run here.")
        lines[number - 1] = f"{magic['indent']}pass"
        notes.append(f"{where}, line {number}: `{line.strip()}` was left out")


def _is_harmless(sign: str, name: str) -> bool:
    return (sign == "%" and name in HARMLESS) or (sign == "%%" and name == "time")


def _fault(lines: list[str]) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines) + "\n")
    except SyntaxError as error:
        return error
    except ValueError:  # a NUL: refused when it is compiled
        return None
    return None
