"""What is named on the command line, file by file: problems, documents, notebooks, modules, plain text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from whygrad.errors import BadInput

MARKDOWN = (".md", ".markdown", ".qmd")
TEXT = (".txt", ".text")
READ = (*MARKDOWN, *TEXT, ".ipynb", ".rst", ".py")
IN_FOLDERS = (*MARKDOWN, ".ipynb", ".rst")
"""What a folder is searched for; other files are named one by one."""

LEFT_OUT = frozenset({"node_modules", "__pycache__", "build", "dist", "site-packages"})


def files(paths: Iterable[str]) -> list[str]:
    """Every file that is meant, once, in the order of the names. Raises BadInput."""
    found: dict[str, None] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = list(_walk(path))
            if not inside:
                raise BadInput(f"{path}: holds no Markdown, reStructuredText or notebook.")
            found.update(dict.fromkeys(inside))
        elif not os.path.exists(path):
            raise BadInput(f"{path}: there is no such file.")
        elif Path(path).suffix.lower() not in READ:
            raise BadInput(f"{path}: cannot be checked; what can: {', '.join(READ)}.")
        else:
            found[path] = None
    return list(found)


def _walk(folder: str) -> Iterator[str]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in LEFT_OUT)
        for name in sorted(names):
            if Path(name).suffix.lower() in IN_FOLDERS and not name.startswith("."):
                yield os.path.join(here, name)
