"""What a learner has answered, in SQLite below the platform's folder for data."""

from __future__ import annotations

import os
import sqlite3
import time
from types import TracebackType

import msgspec

from whygrad.errors import BadInput
from whygrad.practice.bank import digest
from whygrad.practice.problem import Problem

TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    problem TEXT NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
    answer TEXT NOT NULL, is_right INTEGER NOT NULL, hints INTEGER NOT NULL
)
"""


class Standing(msgspec.Struct, frozen=True):
    """How a learner stands with a problem as it is now: `right` is None if it was not answered."""

    right: bool | None = None
    tries: int = 0
    hints: int = 0


def default_file() -> str:
    import platformdirs

    return os.path.join(platformdirs.user_data_dir("whygrad"), "progress.sqlite")


class Progress:
    """The answers in one file. Every answer is written at once; two processes may write at a time."""

    def __init__(self, path: str) -> None:
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            self._file = sqlite3.connect(path, timeout=10, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute(TABLE)
        except (OSError, sqlite3.Error) as error:
            raise BadInput(f"{path}: cannot keep the progress: {error}.") from None

    def answered(self, problem: Problem, answer: str, *, is_right: bool, hints: int) -> None:
        """Keep one answer."""
        row = (problem.front.id, digest(problem), time.time(), answer, int(is_right), hints)
        self._file.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", row)

    def standing(self, problem: Problem) -> Standing:
        """The last answer to a problem; answers to an earlier form of it do not count."""
        rows = self._file.execute(
            "SELECT is_right, hints FROM answers WHERE problem = ? AND digest = ? ORDER BY at, rowid",
            (problem.front.id, digest(problem)),
        ).fetchall()
        if not rows:
            return Standing()
        return Standing(bool(rows[-1][0]), len(rows), rows[-1][1])

    def reset(self) -> None:
        """Forget everything."""
        self._file.execute("DELETE FROM answers")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
