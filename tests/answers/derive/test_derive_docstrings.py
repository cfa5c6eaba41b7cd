"""The examples in the docstrings are true, and importing the package stays cheap."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import whygrad.answers.derive as package

MODULES = [found.name for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_neither_torch_nor_sympy_is_imported() -> None:
    code = "import sys, whygrad.answers.derive; print(sorted({'torch', 'sympy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
