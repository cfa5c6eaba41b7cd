"""Programs in children where there is no fork: each in a process of its own that was started, and has imported the
engine, before its job was known. Only time and output are limited here; memory and the network are the system's."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import Empty, SimpleQueue

import msgspec

from whygrad.execute import limits
from whygrad.execute.jobs import Done, Job, Result, StepReport
from whygrad.execute.wire import LENGTH, Frames, framed

MARK = "\x1e{}\x1e"


def main(engine: str) -> None:
    """Inside the process: import the engine, read one job from stdin, run it, write reports to stdout."""
    from whygrad.execute import server

    server._import(engine)
    from whygrad.execute.child import perform

    source = sys.stdin.buffer
    (length,) = LENGTH.unpack(source.read(LENGTH.size))
    folder, mark, job = msgspec.msgpack.decode(source.read(length), type=tuple[str, str, Job])
    os.chdir(folder)
    result = os.dup(1)
    output = os.open(os.path.join(folder, os.pardir, "output"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    limits.restrict(job.limits)

    def tell(report: StepReport) -> None:
        os.write(result, framed(msgspec.msgpack.encode(report)))

    perform(job, engine, tell, lambda: _ignored(os.write(output, mark.encode())))
    os._exit(0)


def _ignored(_: int) -> None:
    return None


class Spawned:
    """Jobs in spawned children, one more of which is always getting ready."""

    def __init__(self, engine: str = "pytorch", workers: int = 0, hash_seed: int = 0) -> None:
        self.engine = engine
        self._workers = workers or max(2, os.cpu_count() or 1)
        self._hash_seed = hash_seed
        self._ready: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def run_all(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Result]]:
        """The results in the order in which they are ready, each with its job's index."""
        with ThreadPoolExecutor(self._workers) as pool:
            running = {pool.submit(self.run, job): index for index, job in enumerate(jobs)}
            for done in as_completed(running):
                yield running[done], done.result()

    def run(self, job: Job) -> Result:
        try:
            process = self._ready.get_nowait()
        except Empty:
            process = self._start()
        self._ready.put(self._start())
        return self._run(process, job)

    def _start(self) -> subprocess.Popen[bytes]:
        from whygrad.execute.children import command, environment

        return subprocess.Popen(
            command("spawned", self.engine),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(self._hash_seed),
        )

    def _run(self, process: subprocess.Popen[bytes], job: Job) -> Result:
        began = time.monotonic()
        home = tempfile.mkdtemp(prefix="whygrad-")
        mark = MARK.format(os.urandom(16).hex())
        folder = os.path.join(home, "run")
        os.mkdir(folder)
        stopped = ""
        message = framed(msgspec.msgpack.encode((folder, mark, job)))
        try:
            told, warned = process.communicate(message, timeout=job.limits.time_s + 20)
        except subprocess.TimeoutExpired:
            process.kill()
            told, warned = process.communicate()
            stopped = "time"
        printed = b""
        with contextlib.suppress(OSError), open(os.path.join(home, "output"), "rb") as file:
            printed = file.read(job.limits.output_kb * 1024)
        shutil.rmtree(home, ignore_errors=True)
        return _result(job, told, printed, warned, mark.encode(), stopped, process.returncode, began)

    def close(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                process = self._ready.get_nowait()
                process.kill()
                process.communicate()


def _result(
    job: Job, told: bytes, printed: bytes, warned: bytes, mark: bytes, stopped: str, status: int, began: float
) -> Result:
    reports = {}
    for body in Frames().feed(told):
        with contextlib.suppress(msgspec.MsgspecError):
            report = msgspec.msgpack.decode(body, type=StepReport)
            reports[report.index] = report
    parts = printed.split(mark)
    steps = []
    for index in range(len(job.steps)):
        text = parts[2 * index].decode("utf-8", "backslashreplace") if 2 * index < len(parts) else ""
        told_of = reports.get(index)
        if told_of is None:
            steps.append(Done(False, text))
        else:
            steps.append(Done(True, text, told_of.failure, told_of.value, told_of.replies))
    why = limits.sentence(stopped, job.limits) if stopped else ""
    if not stopped and len(parts) < 2 * len(job.steps) + 1:
        stopped, why = "exit", f"it ended its process itself, with exit code {status}"
    events = next((report.events for report in reports.values() if report.events), b"")
    text = warned.decode("utf-8", "backslashreplace")
    return Result(tuple(steps), stopped, why, text, events, time.monotonic() - began)
