"""Imports go down the floors only, and the first second of a run stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"

FLOORS = {
    "errors": 1, "outputs": 1, "ledger": 1,
    "engines": 2, "execute": 2,
    "rules": 3, "answers": 3,
    "watch": 4, "practice": 4, "check": 4, "report": 4,
    "cli": 5, "web": 5, "notebook": 5, "session": 5,
}  # fmt: skip
ROOF = 6
"""`whygrad/__init__.py` and `__main__.py`: they may reach for anything."""


def _modules() -> list[Path]:
    return sorted((SRC / "whygrad").rglob("*.py"))


def _name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _floor(module: str) -> int:
    parts = module.split(".")
    if parts == ["whygrad"] or parts[1] == "__main__":
        return ROOF
    assert parts[1] in FLOORS, f"{module} is on no floor: give it one in design and in this test"
    return FLOORS[parts[1]]


def _imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """The modules of ours that a file imports anywhere, with their lines; relative names are made whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".") if is_package else module.split(".")[:-1]
                parts = package[: len(package) - node.level + 1] + ([base] if base else [])
                base = ".".join(parts)
            if base == "whygrad":
                for alias in node.names:
                    part = SRC / "whygrad" / alias.name
                    is_module = part.is_dir() or part.with_suffix(".py").exists()
                    yield node.lineno, f"whygrad.{alias.name}" if is_module else "whygrad"
            else:
                yield node.lineno, base


def _upward(path: Path) -> list[str]:
    module = _name(path)
    own = _floor(module)
    faults = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for line, imported in _imported(tree, module, path.name == "__init__.py"):
        parts = imported.split(".")
        if parts[0] != "whygrad" or imported == "whygrad":  # the package itself: for `__version__` only
            continue
        if _floor(imported) > own:
            faults.append(f"{path.relative_to(SRC)}:{line}: floor {own} imports {imported}, floor {_floor(imported)}")
    return faults


@pytest.mark.parametrize("path", _modules(), ids=_name)
def test_imports_go_down_only(path: Path) -> None:
    assert _upward(path) == []


def test_an_upward_import_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SRC", tmp_path)
    folder = tmp_path / "whygrad" / "ledger"
    folder.mkdir(parents=True)
    (tmp_path / "whygrad" / "cli").mkdir()
    for text in (
        "import whygrad.cli",
        "from whygrad import cli",
        "from ..cli import main",
        "def f():\n import whygrad.cli",
    ):
        path = folder / "store.py"
        path.write_text(text)
        assert len(_upward(path)) == 1, text


HEAVY = ("torch", "numpy", "rich", "jinja2", "sympy", "markdown_it", "IPython")


@pytest.mark.parametrize("module", ["whygrad", "whygrad.ledger", "whygrad.cli", "whygrad.errors", "whygrad.outputs"])
def test_importing_it_brings_no_heavy_library(module: str) -> None:
    program = f"import sys, {module}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
