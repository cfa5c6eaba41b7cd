"""Runs programs in children: forked from a server that has imported the engine, or spawned where there is no fork.

A program that crashes, loops, floods its output or forks without end costs its own result and nothing else.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Protocol

import msgspec

from whygrad.errors import WhygradError
from whygrad.execute.jobs import Done, Job, Result
from whygrad.execute.server import READY
from whygrad.execute.wire import Frames, framed

START_S = 120.0
"""How long a server may take to import its engine."""

PIECE = 1 << 16
ATTEMPTS = 2


class Runs(Protocol):
    """What runs jobs."""

    engine: str

    def run_all(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Result]]:
        """The results in the order in which they are ready, each with its job's index."""

    def close(self) -> None: ...


def children(engine: str = "pytorch", workers: int = 0, hash_seed: int = 0) -> Runs:
    """What runs jobs on this system: forked children where the system has them."""
    if hasattr(os, "fork") and sys.platform != "darwin":  # macOS' own libraries do not survive a fork
        return Children(engine, workers, hash_seed)
    from whygrad.execute.spawned import Spawned

    return Spawned(engine, workers, hash_seed)


class Children:
    """Jobs in forked children. The server starts with the first job and ends with `close`.

    >>> from whygrad.execute.jobs import Job, Step
    >>> with Children("embedded") as runs:
    ...     print(runs.run(Job((Step("print(6 * 7)"),))).printed, end="")
    42
    """

    def __init__(self, engine: str = "pytorch", workers: int = 0, hash_seed: int = 0) -> None:
        self.engine = engine
        self._workers = workers or max(2, os.cpu_count() or 1)
        self._hash_seed = hash_seed
        self._server: _Server | None = None

    def run(self, job: Job) -> Result:
        return next(result for _, result in self.run_all([job]))

    def run_all(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Result]]:
        """The results in the order in which they are ready, each with its job's index."""
        waiting = list(range(len(jobs)))[::-1]
        tried = dict.fromkeys(waiting, 0)
        running: set[int] = set()
        while waiting or running:
            try:
                server = self._started()
                while waiting and len(running) < self._workers:
                    index = waiting.pop()
                    running.add(index)
                    tried[index] += 1
                    server.send(index, jobs[index])
                index, result = server.receive()
            except _ServerLostError:
                self.close()
                for index in sorted(running, reverse=True):
                    running.discard(index)
                    if tried[index] < ATTEMPTS:
                        waiting.append(index)
                    else:
                        yield index, _without_server(jobs[index])
                continue
            running.discard(index)
            yield index, result

    def _started(self) -> _Server:
        if self._server is None:
            self._server = _Server(self.engine, self._hash_seed)
        return self._server

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _ServerLostError(Exception):
    """The server is gone, with all that it ran."""


class _Server:
    """The connection to a server process."""

    def __init__(self, engine: str, hash_seed: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                command("server", theirs.fileno(), engine),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment(hash_seed),
                start_new_session=True,
            )
        self._channel = ours
        self._frames = Frames()
        self._whole: list[bytes] = []
        ours.settimeout(START_S)
        try:
            said = self._next()
        except (_ServerLostError, TimeoutError):
            self.close()
            raise WhygradError(f"the process that runs programs on the {engine} engine did not start.") from None
        if said != READY:
            self.close()
            raise WhygradError(f"the {engine} engine cannot be imported: {said.decode()}.")
        ours.settimeout(None)

    def send(self, number: int, job: Job) -> None:
        try:
            self._channel.sendall(framed(msgspec.msgpack.encode((number, job))))
        except OSError:
            raise _ServerLostError from None

    def receive(self) -> tuple[int, Result]:
        return msgspec.msgpack.decode(self._next(), type=tuple[int, Result])

    def _next(self) -> bytes:
        while not self._whole:
            try:
                data = self._channel.recv(PIECE)
            except TimeoutError:
                raise
            except OSError:
                data = b""
            if not data:
                raise _ServerLostError
            self._whole += self._frames.feed(data)
        return self._whole.pop(0)

    def close(self) -> None:
        self._channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
            return
        self._process.kill()
        self._process.wait()


def _without_server(job: Job) -> Result:
    return Result(tuple(Done() for _ in job.steps), "signal", "it took the process that runs programs with it")


def command(module: str, *arguments: object) -> list[str]:
    """A Python that calls `main` of a module beside this one; the current folder is not on its path."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spelled = ", ".join(repr(argument) for argument in arguments)
    code = f"import sys; sys.path[0] = {home!r}; from whygrad.execute import {module}; {module}.main({spelled})"
    return [sys.executable, "-c", code]


def environment(hash_seed: int) -> dict[str, str]:
    """The environment of programs: no accelerator, a known order of hashes, no thread before it is asked for."""
    left_out = ("PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONINSPECT")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"PYTHONHASHSEED": str(hash_seed), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


def run_in_order(runs: Runs, jobs: Iterable[Job]) -> list[Result]:
    """The results in the order of the jobs."""
    wanted = list(jobs)
    found = dict(runs.run_all(wanted))
    return [found[index] for index in range(len(wanted))]
