"""Writes changed files in place of the user's, where the old text can be had back: from git, or from a backup."""

from __future__ import annotations

import enum
import os
import shutil
import subprocess
from collections.abc import Iterable

from whygrad import outputs
from whygrad.answers.fix.sources import SourceText, load
from whygrad.errors import BadInput

BACKUP = ".orig"


class Guard(enum.Enum):
    """What brings the old text back: the commit that holds it, or a copy beside the file."""

    GIT = "git"
    BACKUP = "backup"


def check_writable(path: str, guard: Guard) -> None:
    """Raise `BadInput` if `path` could not be changed under the guard; touches nothing."""
    if not os.access(path, os.W_OK):
        raise BadInput(f"{path}: cannot be written: permission denied.")
    if guard is Guard.BACKUP:
        if os.path.lexists(path + BACKUP):
            raise BadInput(f"{path}{BACKUP}: exists already; move it away, so that the backup overwrites nothing.")
        outputs.check(path + BACKUP)
        return
    state = _git(path, "status", "--porcelain", "--ignored", "--")
    if state is None:
        raise BadInput(f"{path}: is not in a git repository, so nothing could bring it back; --backup keeps a copy.")
    if state.startswith(("??", "!!")):
        raise BadInput(f"{path}: is not committed in git, so nothing could bring it back; commit it or add --backup.")
    if state:
        raise BadInput(f"{path}: has changes that are not committed; commit them or add --backup.")
    if _git(path, "ls-files", "--error-unmatch", "--") is None:
        raise BadInput(f"{path}: is not tracked by git, so nothing could bring it back; --backup keeps a copy.")


def write(before: Iterable[SourceText], after: Iterable[SourceText], guard: Guard) -> None:
    """Write the files, each whole or not at all. Raises `BadInput` before the first if one is not what was run."""
    pairs = list(zip(before, after, strict=True))
    for old, _ in pairs:
        check_writable(old.path, guard)
        if load(old.path).text != old.text:
            raise BadInput(f"{old.path}: was changed while the fixes were tried; nothing is written.")
    for old, new in pairs:
        if guard is Guard.BACKUP:
            shutil.copy2(old.path, old.path + BACKUP)
        outputs.replace(old.path, new.data)


def _git(path: str, *words: str) -> str | None:
    """What git says about a file; None where it refuses, or there is no git."""
    folder, name = os.path.split(os.path.realpath(path))
    try:
        done = subprocess.run(["git", "-C", folder, *words, name], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
