"""Runs the program in a child process, as `whygrad run` does, with changed text in place of some of its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from whygrad.answers.fix.sources import SourceText
from whygrad.errors import WhygradError
from whygrad.execute.program import Kind, Program
from whygrad.ledger import Ledger, read
from whygrad.ledger.events import Ended, Raised

START = "import sys; sys.path[0] = sys.prefix; from whygrad.cli import main; main()"
"""As the installed command starts: nothing in the working directory can stand in for a library of ours."""


class TooLong(WhygradError):  # noqa: N818
    """A run did not end in its time."""


class Ending(msgspec.Struct, frozen=True):
    """How a run ended; of an exception that nothing caught, its kind, its text and its place."""

    how: str
    exit_code: int
    kind: str = ""
    text: str = ""
    path: str = ""
    line: int = 0


class Run(msgspec.Struct, frozen=True):
    """One run: its evidence, what it printed, how it ended, how long it took."""

    ledger: Ledger
    output: str
    ending: Ending
    elapsed_s: float


class Bench:
    """Runs one program again and again. The ledgers lie in `folder`, which the caller removes."""

    def __init__(self, program: Program, folder: str, engine: str = "auto", timeout_s: float | None = None) -> None:
        self._program = program
        self._folder = Path(folder)
        self._engine = engine
        self.timeout_s = timeout_s
        self.count = 0

    def run(self, changed: Mapping[str, SourceText]) -> Run:
        """Run the program with the changed files. Raises `TooLong`, or `WhygradError` if it could not be recorded."""
        self.count += 1
        ledger = self._folder / f"{self.count}.jsonl"
        command = [sys.executable, "-c", START, "run", "-q", "-o", str(ledger), "--engine", self._engine]
        for number, source in enumerate(changed.values()):
            copy = self._folder / f"{self.count}-{number}.py"
            copy.write_bytes(source.data)
            command += ["--instead", source.path, str(copy)]
        command += ["-m", self._program.module] if self._program.kind is Kind.MODULE else [self._program.name]
        began = time.monotonic()
        output, complaints = _watched([*command, *self._program.argv[1:]], self.timeout_s)
        elapsed_s = time.monotonic() - began
        if not ledger.exists():
            last = (complaints.strip().splitlines() or ["it left no ledger"])[-1]
            raise WhygradError(f"{self._program.name} could not be run: {last.removeprefix('whygrad: ')}")
        told = read(str(ledger))
        return Run(told, output, _ending(told), elapsed_s)


def _watched(command: list[str], timeout_s: float | None) -> tuple[str, str]:
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    try:
        return child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise TooLong(f"the run did not end within {timeout_s:.0f} s") from None
    finally:
        if child.poll() is None:
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """End the child and what it started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.communicate()


def _ending(ledger: Ledger) -> Ending:
    ended = next(ledger.of(Ended), None)
    if ended is None:
        return Ending("killed", 1)
    uncaught = [event for event in ledger.of(Raised) if event.caught is None]
    if ended.how != "exception" or not uncaught:
        return Ending(ended.how, ended.exit_code)
    site = ledger.site(uncaught[-1].site)
    place = (site.path, site.line) if site is not None else ("", 0)
    return Ending(ended.how, ended.exit_code, uncaught[-1].kind, uncaught[-1].text, *place)
