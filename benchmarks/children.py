"""Programs run in a process of their own, and what the process took.

Wall time is what a person waits. Processor time (user and system) hardly changes when other programs want the
same cores: where both are given and differ, believe the second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from time import perf_counter

ROOT = Path(__file__).parent.parent
PROGRAMS = Path("benchmarks", "programs")
EXAMPLE = Path("examples", "gradient_lab.py")

WHYGRAD = ("-m", "whygrad")


@dataclass(frozen=True, slots=True)
class Used:
    """What a process used: seconds, and bytes of memory at its peak."""

    wall_s: float
    processor_s: float
    peak_bytes: int


class ChildError(Exception):
    """A program that was to be measured failed."""


def run(*arguments: str | Path) -> Used:
    """Run Python with `arguments` from the root of the repository; nothing is shown. Raises ChildError."""
    command = [sys.executable, *map(str, arguments)]
    with tempfile.TemporaryFile() as said:
        began = perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise ChildError(f"{' '.join(command)} failed:\n{said.read().decode(errors='replace')[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Used(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def output(*arguments: str) -> str:
    """What Python says on standard error when it is run with `arguments`."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=_environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stderr


def _environment() -> dict[str, str]:
    """As a person's shell has it: what is imported twice is compiled once."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True)
class Steps:
    """The processor time of each step of a loop, in seconds, in order."""

    each_s: Sequence[float]

    def median_s(self, warm_up: int) -> float:
        """Of a step, once the first `warm_up` are over."""
        return median(self.each_s[warm_up:])

    def mean_s(self) -> float:
        return mean(self.each_s)


def timed(program: str, steps: int, *, depth: str = "", extra: str = "") -> Steps:
    """Run one of the `programs`: bare, or by `whygrad run --depth`. A step's time is that of its thread."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder, "times.json")
        recorder = [*WHYGRAD, "run", "--quiet", "--no-derive", "--depth", depth] if depth else []
        words = [extra] if extra else []
        run(*recorder, PROGRAMS / program, str(steps), times, *words)
        ticks = json.loads(times.read_text(encoding="utf-8"))
    thread = [tick[1] for tick in ticks]
    return Steps([after - before for before, after in pairwise(thread)])
