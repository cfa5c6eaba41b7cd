"""Where problems come from: the bank that is part of the package, or folders and files that are named."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from whygrad.errors import BadInput
from whygrad.practice.parse import is_problem, read
from whygrad.practice.problem import Problem


def own_bank() -> str:
    """The folder of the bank: beside the package where it is installed, at the root of a checkout otherwise."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (os.path.join(package, "bank"), os.path.join(package, "..", "..", "problems")):
        if os.path.isdir(folder):
            return os.path.normpath(folder)
    raise BadInput("the bank of problems is not installed; name a folder of problems.")


def problems(paths: Sequence[str] = ()) -> list[Problem]:
    """The problems in these files and folders, or those of the bank, in a fixed order."""
    found = []
    for path in paths or [own_bank()]:
        if not os.path.exists(path):
            raise BadInput(f"{path}: there is no such file.")
        files = sorted(Path(path).rglob("*.md")) if os.path.isdir(path) else [Path(path)]
        found += [read(str(file)) for file in files if is_problem(file.read_text(encoding="utf-8-sig"))]
    if not found:
        raise BadInput(f"{' '.join(paths)}: holds no problem.")
    return found


def digest(problem: Problem) -> str:
    """Changes when what is asked, or its key, changes; not when the file is only moved."""
    plain = msgspec.structs.replace(problem, path="")
    return hashlib.sha256(msgspec.msgpack.encode(plain)).hexdigest()[:16]
