"""Runs jobs for a check: on the engine asked for, once for each different job, and not again if its result is kept."""

from __future__ import annotations

import hashlib
import os
import platform
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from types import TracebackType

import msgspec

from whygrad import __version__
from whygrad.execute.children import Runs, children
from whygrad.execute.jobs import Job, Result

Progress = Callable[[int, int], None]
"""Told how many of how many jobs are done."""


class Runner:
    """Children of each engine, started when they are needed, and a cache of what they gave.

    A result is kept under the whole job (its source, files, seed, threads, limits), the engine, its version and
    ours, Python's, and the order of hashes.
    """

    def __init__(self, kept: str | None = None, progress: Progress | None = None) -> None:
        self._runs: dict[tuple[str, int], Runs] = {}
        self._cache = _Cache(kept) if kept else None
        self._progress = progress or _silent
        self.fresh = 0

    def run(self, jobs: Sequence[Job], engine: str = "pytorch", hash_seed: int = 0) -> list[Result]:
        """The results in the order of the jobs."""
        keys = [_key(job, engine, hash_seed) for job in jobs]
        known: dict[bytes, Result] = {}
        if self._cache is not None:
            known = self._cache.find(keys)
        wanted = {key: job for key, job in zip(keys, jobs, strict=True) if key not in known}
        done = 0
        self._progress(0, len(wanted))
        if wanted:
            order = list(wanted)
            for index, result in self._children(engine, hash_seed).run_all([wanted[key] for key in order]):
                known[order[index]] = result
                self.fresh += 1
                if self._cache is not None and result.stopped not in ("time", "signal"):
                    self._cache.keep(order[index], result)
                done += 1
                self._progress(done, len(wanted))
        return [known[key] for key in keys]

    def _children(self, engine: str, hash_seed: int) -> Runs:
        key = (engine, hash_seed)
        if key not in self._runs:
            self._runs[key] = children(engine, hash_seed=hash_seed)
        return self._runs[key]

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for runs in self._runs.values():
            runs.close()
        if self._cache is not None:
            self._cache.close()


def _key(job: Job, engine: str, hash_seed: int) -> bytes:
    ours = _state_of("execute") + (_state_of("engines") + _state_of("ledger") if job.records else "")
    facts = (
        engine, engine_version(engine), __version__, ours, platform.python_version(), platform.machine(), hash_seed,
    )  # fmt: skip
    return hashlib.sha256(msgspec.msgpack.encode((facts, job))).digest()


def engine_version(engine: str) -> str:
    """The version of an engine, without importing it. That of the embedded one is the state of its files."""
    if engine == "pytorch":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("torch")
        except PackageNotFoundError:
            return ""
    return _state_of("engines")


@cache
def _state_of(folder: str) -> str:
    """Changes when a file of the package changes, so that nobody who works on it is shown an old result."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    newest, size = 0, 0
    for here, _, names in os.walk(os.path.join(home, folder)):
        for name in names:
            if name.endswith(".py"):
                facts = os.stat(os.path.join(here, name))
                newest, size = max(newest, facts.st_mtime_ns), size + facts.st_size
    return f"{newest}-{size}"


def cache_file() -> str:
    """Where results are kept: below the platform's folder for caches."""
    import platformdirs

    return os.path.join(platformdirs.user_cache_dir("whygrad"), "checks.sqlite")


def _silent(_done: int, _of: int) -> None:
    return None


class _Cache:
    """Results in SQLite. A cache that cannot be used is none."""

    def __init__(self, path: str) -> None:
        self._file: sqlite3.Connection | None = None
        with suppress(OSError, sqlite3.Error):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = sqlite3.connect(path, timeout=5, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=OFF")
            self._file.execute("CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, result BLOB) WITHOUT ROWID")

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Result]:
        found: dict[bytes, Result] = {}
        if self._file is None:
            return found
        for key in set(keys):
            with suppress(sqlite3.Error, msgspec.MsgspecError):
                row = self._file.execute("SELECT result FROM results WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = msgspec.msgpack.decode(row[0], type=Result)
        return found

    def keep(self, key: bytes, result: Result) -> None:
        if self._file is not None:
            with suppress(sqlite3.Error):
                kept = (key, msgspec.msgpack.encode(result))
                self._file.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", kept)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
