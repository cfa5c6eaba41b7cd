"""Changes are written where the old text can be had back, and nowhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from whygrad.answers.fix import Guard, check_writable, write
from whygrad.answers.fix.sources import SourceText, load
from whygrad.errors import BadInput


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text("bad = 1\n")
    _git(tmp_path, "init")
    _git(tmp_path, "add", "program.py")
    _git(tmp_path, "commit", "-m", "all")
    return path


def _write(path: Path, guard: Guard) -> None:
    before = load(str(path))
    write([before], [SourceText(before.path, "good = 1\n")], guard)


def test_a_committed_file_is_written(committed: Path) -> None:
    committed.chmod(0o755)
    _git(committed.parent, "commit", "-am", "mode")
    _write(committed, Guard.GIT)
    assert committed.read_text() == "good = 1\n"
    assert committed.stat().st_mode & 0o777 == 0o755


def test_a_file_with_changes_is_refused(committed: Path) -> None:
    committed.write_text("bad = 2\n")
    with pytest.raises(BadInput, match="changes that are not committed; commit them or add --backup"):
        check_writable(str(committed), Guard.GIT)


def test_a_file_that_git_does_not_know_is_refused(committed: Path) -> None:
    other = committed.with_name("other.py")
    other.write_text("bad = 1\n")
    with pytest.raises(BadInput, match="is not committed in git"):
        check_writable(str(other), Guard.GIT)


def test_an_ignored_file_is_refused(committed: Path) -> None:
    committed.with_name(".gitignore").write_text("other.py\n")
    other = committed.with_name("other.py")
    other.write_text("bad = 1\n")
    with pytest.raises(BadInput, match="is not committed in git"):
        check_writable(str(other), Guard.GIT)


def test_a_file_outside_a_repository_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("bad = 1\n")
    with pytest.raises(BadInput, match="not in a git repository"):
        check_writable(str(path), Guard.GIT)


def test_a_backup_keeps_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("bad = 1\n")
    _write(path, Guard.BACKUP)
    assert (path.read_text(), (tmp_path / "program.py.orig").read_text()) == ("good = 1\n", "bad = 1\n")


def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("bad = 1\n")
    (tmp_path / "program.py.orig").write_text("older\n")
    with pytest.raises(BadInput, match="exists already"):
        _write(path, Guard.BACKUP)
    assert path.read_text() == "bad = 1\n"


def test_a_file_that_changed_meanwhile_is_left_alone(committed: Path) -> None:
    before = SourceText(str(committed), "something else\n")
    with pytest.raises(BadInput, match="was changed while the fixes were tried"):
        write([before], [SourceText(before.path, "good = 1\n")], Guard.GIT)
    assert committed.read_text() == "bad = 1\n"
