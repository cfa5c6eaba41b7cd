"""The process that children are forked from: it imports the engine once, and runs no program itself.

It ends children at their deadlines, since an alarm inside a child can be ignored there. PyTorch's threads do not
survive a fork, so it never lets them start: one thread, and no operation is ever computed here.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import Any, NoReturn

import msgspec

from whygrad.execute import limits
from whygrad.execute.jobs import Done, Job, Result, StepReport
from whygrad.execute.wire import Frames, framed

PIECE = 1 << 16
MARK_BYTES = 16
READY = b"ready"
LATE_IMPORT = re.compile(r"optim|compile|checkpoint|func\b|dynamo")
POLL_S = 0.01
"""How often to look after children where the system does not tell of their end."""

PIDFD = hasattr(os, "pidfd_open")


def main(descriptor: int, engine: str) -> NoReturn:
    """Serve jobs that arrive on a socket until it is closed."""
    channel = socket.socket(fileno=descriptor)
    is_apart = limits.apart()
    try:
        _import(engine)
    except Exception as error:
        channel.sendall(framed(f"{type(error).__name__}: {error}".encode()))
        sys.exit(1)
    gc.collect()
    gc.freeze()
    channel.sendall(framed(READY))
    Server(channel, engine, is_apart).serve()
    sys.exit(0)


def _import(engine: str) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if engine == "embedded":
        from whygrad.engines.embedded.install import Stand

        Stand().enter()
    import torch

    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)
    torch.manual_seed(0)  # draws nothing, and imports what every child would import for it
    with contextlib.suppress(ImportError):
        import numpy.random  # noqa: F401
    import torch.nn
    import torch.optim

    import whygrad.engines.pytorch.session
    import whygrad.execute.child
    import whygrad.execute.instrument
    import whygrad.ledger

    if engine == "embedded":
        import whygrad.engines.embedded.session  # noqa: F401


class _Child:
    """A job that is running, as the server sees it."""

    def __init__(self, number: int, job: Job, pid: int, folder: str, pipes: dict[str, int], mark: bytes) -> None:
        self.number = number
        self.job = job
        self.pid = pid
        self.folder = folder
        self.pipes = pipes
        self.mark = mark
        self.began = time.monotonic()
        self.deadline = self.began + job.limits.time_s
        self.printed = bytearray()
        self.warned = bytearray()
        self.told = Frames()
        self.reports: dict[int, StepReport] = {}
        self.stopped = ""
        self.status = 0

    def kill(self) -> None:
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(OSError):
                kill(self.pid, signal.SIGKILL)

    def take(self, name: str, data: bytes) -> None:
        if name == "result":
            for body in self.told.feed(data):
                with contextlib.suppress(msgspec.MsgspecError):
                    report = msgspec.msgpack.decode(body, type=StepReport)
                    self.reports[report.index] = report
        else:
            held = self.printed if name == "output" else self.warned
            held += data
            if len(self.printed) + len(self.warned) > self.job.limits.output_kb * 1024 and not self.stopped:
                self.stopped = "output"
                self.kill()

    def result(self) -> Result:
        job, reports = self.job, self.reports
        parts = bytes(self.printed).split(self.mark)
        steps = []
        for index in range(len(job.steps)):
            text = parts[2 * index] if 2 * index < len(parts) else b""
            report = reports.get(index)
            printed = text.decode("utf-8", "backslashreplace")
            if report is None:
                steps.append(Done(False, printed))
            else:
                steps.append(Done(True, printed, report.failure, report.value, report.replies))
        stopped, why = self.stopped, ""
        if stopped:
            why = limits.sentence(stopped, job.limits)
        elif len(parts) < 2 * len(job.steps) + 1:
            stopped, why = self._end()
        events = next((report.events for report in reports.values() if report.events), b"")
        warned = bytes(self.warned).decode("utf-8", "backslashreplace")
        return Result(tuple(steps), stopped, why, warned, events, time.monotonic() - self.began)

    def _end(self) -> tuple[str, str]:
        """How a child ended that did not get to its end."""
        status = self.status
        if status >= 0:
            return "exit", f"it ended its process itself, with exit code {status}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        if name == "SIGXCPU":
            return "time", limits.sentence("time", self.job.limits)
        return "signal", f"its process was killed by {name}"


class Server:
    """One thread, one loop: jobs come in, children are forked, results go out."""

    def __init__(self, channel: socket.socket, engine: str, is_apart: bool) -> None:
        self._channel = channel
        self._engine = engine
        self._selector = selectors.DefaultSelector()
        self._incoming = Frames()
        self._outgoing = bytearray()
        self._children: list[_Child] = []
        self._is_open = True
        self._has_all = False
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY) if is_apart else None
        channel.setblocking(False)

    def serve(self) -> None:
        self._selector.register(self._channel, selectors.EVENT_READ, None)
        while self._is_open:
            now = time.monotonic()
            wait = min((child.deadline - now for child in self._children), default=None)
            if wait is not None and not PIDFD:
                wait = min(wait, POLL_S)
            for key, mask in self._selector.select(None if wait is None else max(wait, 0)):
                if key.data is None:
                    self._talk(mask)
                else:
                    self._listen(*key.data)
            for child in list(self._children):
                self._look_after(child)
        for child in self._children:
            child.kill()

    def _talk(self, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            try:
                data = self._channel.recv(PIECE)
            except BlockingIOError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                self._is_open = False
                return
            for body in self._incoming.feed(data or b""):
                number, job = msgspec.msgpack.decode(body, type=tuple[int, Job])
                self._begin(number, job)
        if mask & selectors.EVENT_WRITE:
            self._send()

    def _send(self) -> None:
        try:
            sent = self._channel.send(self._outgoing)
            del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._is_open = False
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
        self._selector.modify(self._channel, events, None)

    def _begin(self, number: int, job: Job) -> None:
        folder = tempfile.mkdtemp(prefix="whygrad-")
        if self._own is not None and os.geteuid() == 0:
            os.chmod(folder, 0o777)  # os.access asks for the real user, who is nobody here
        self._import_once(job)
        ends = {name: os.pipe() for name in ("output", "warnings", "result")}
        mark = b"\x1e" + os.urandom(MARK_BYTES).hex().encode() + b"\x1e"
        if self._own is not None:
            limits.next_child_apart(self._own)
        pid = os.fork()
        if pid == 0:
            _be_the_program(job, self._engine, folder, {name: write for name, (_, write) in ends.items()}, mark)
        pipes = {}
        for name, (read, write) in ends.items():
            os.close(write)
            os.set_blocking(read, False)
            pipes[name] = read
        child = _Child(number, job, pid, folder, pipes, mark)
        self._children.append(child)
        if PIDFD:
            pipes["process"] = os.pidfd_open(pid)
        for name, descriptor in pipes.items():
            self._selector.register(descriptor, selectors.EVENT_READ, (child, name))

    def _import_once(self, job: Job) -> None:
        """Import here what every child would import for itself: making an optimizer imports all of torch._dynamo."""
        if (
            self._engine == "pytorch"
            and not self._has_all
            and LATE_IMPORT.search(" ".join(s.source for s in job.steps))
        ):
            self._has_all = True
            with contextlib.suppress(Exception):
                importlib.import_module("torch._dynamo")
            gc.collect()
            gc.freeze()

    def _listen(self, child: _Child, name: str) -> None:
        if name == "process" or name not in child.pipes:
            return
        data = _read(child.pipes[name])
        if data:
            child.take(name, data)
        elif data == b"":
            self._close(child, name)

    def _close(self, child: _Child, name: str) -> None:
        descriptor = child.pipes.pop(name)
        self._selector.unregister(descriptor)
        os.close(descriptor)

    def _look_after(self, child: _Child) -> None:
        """End a child that is late; finish with one that has ended."""
        pid, raw = os.waitpid(child.pid, os.WNOHANG)
        if pid:
            child.status = os.waitstatus_to_exitcode(raw)
            self._finish(child)
            return
        now = time.monotonic()
        if now >= child.deadline:
            child.stopped = child.stopped or "time"
            child.deadline = now + 1.0
            child.kill()

    def _finish(self, child: _Child) -> None:
        """The program is gone, and with it all of its kind; read what is left in the pipes."""
        if self._own is None:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
        for name in ("output", "warnings", "result"):
            while name in child.pipes and (data := _read(child.pipes[name])):
                child.take(name, data)
        for name in list(child.pipes):
            self._close(child, name)
        self._children.remove(child)
        shutil.rmtree(child.folder, ignore_errors=True)
        body = msgspec.msgpack.encode((child.number, child.result()))
        self._outgoing += framed(body)
        self._send()


def _read(descriptor: int) -> bytes | None:
    """What is there now; None if nothing, b"" at the end."""
    try:
        return os.read(descriptor, PIECE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


# --- after the fork -----------------------------------------------------------------------------------


def _be_the_program(job: Job, engine: str, folder: str, pipes: dict[str, int], mark: bytes) -> NoReturn:
    status = 70
    try:
        os.setpgid(0, 0)
        limits.die_with_parent()
        limits.count_alone()
        output, result = _arrange(pipes)
        os.chdir(folder)
        limits.restrict(job.limits)
        from whygrad.execute.child import perform

        def tell(report: StepReport) -> None:
            _write(result, framed(msgspec.msgpack.encode(report)))

        perform(job, engine, tell, lambda: _write(output, mark))
        status = 0
    except BaseException as error:
        with contextlib.suppress(BaseException):
            os.write(2, f"whygrad: a defect in its child: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _arrange(pipes: dict[str, int]) -> tuple[int, int]:
    """Streams of the program's own; the descriptors of ours are out of its way, and all others closed."""
    import fcntl

    high = [fcntl.fcntl(pipes[name], fcntl.F_DUPFD_CLOEXEC, 200) for name in ("output", "result")]
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nowhere, 0), (pipes["output"], 1), (pipes["warnings"], 2)):
        os.dup2(source, target)
    os.closerange(3, 200)
    os.closerange(max(high) + 1, 1024)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    streams: Any = sys
    streams.__stdin__, streams.__stdout__, streams.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    return high[0], high[1]


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
