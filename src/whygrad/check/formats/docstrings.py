"""Sessions in the docstrings of a module, each with the module's names."""

from __future__ import annotations

import ast
import doctest
import os

from whygrad.check.block import Block, Page
from whygrad.errors import BadInput


def page(path: str, text: str) -> Page:
    """The docstrings of a module that hold a session."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise BadInput(f"{path}:{line}: is not Python: {getattr(error, 'msg', error)}.") from None
    root, module = _module(path)
    prelude = (
        f"import sys, importlib\nsys.path.insert(0, {root!r})\n"
        f"globals().update(vars(importlib.import_module({module!r})))\n"
    )
    blocks = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[0] if node.body else None
        if not isinstance(body, ast.Expr) or not isinstance(body.value, ast.Constant):
            continue
        string = body.value.value
        if isinstance(string, str) and doctest.DocTestParser().get_examples(string):
            blocks.append(Block(string, body.lineno, True, alone=True, prelude=prelude))
    return Page(path, tuple(sorted(blocks, key=lambda block: block.line)))


def _module(path: str) -> tuple[str, str]:
    """The folder that a module is imported from, and its dotted name."""
    path = os.path.abspath(path)
    folder, name = os.path.split(path)
    parts = [] if name == "__init__.py" else [name.removesuffix(".py")]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return folder, ".".join(parts)
