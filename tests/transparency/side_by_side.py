"""Run a program twice, bare and recorded, and keep what an observer outside the process can see of each run.

A program of the corpus says in comments how it wants to be run, one line a run:

    # transparency: python="-W error" env=OMP_NUM_THREADS=1 slow needs=3.12 -- first "second argument"

`python` are options of the interpreter, `env` sets a variable (may be repeated), `stdin` is fed to the program
(a `|` stands for a line's end), `merged` joins stderr to stdout in one pipe so that their order shows, `link`
starts the program through a symbolic link, `needs` is the oldest Python that can run it, `slow` marks a run of
more than a few seconds, `differs` says why a recorded run cannot be the same. What follows `--` is the
program's own argv. Without such a line it is run once, without arguments.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 300
RECORDER = ("-m", "whygrad", "run", "-q")
DIRECTIVE = re.compile(rb"^# transparency:(.*)$", re.MULTILINE)
ADDRESS = re.compile(rb"0x[0-9a-f]{9,}")  # `<function f at 0x7f...>` differs between two bare runs
DROPPED = ("PYTHONPATH", "PYTHONWARNINGS", "PYTHONSTARTUP", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One way of starting one program, in an empty folder of its own if not in `folder`."""

    program: Path
    arguments: tuple[str, ...] = ()
    interpreter: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    stdin: bytes = b""
    merged: bool = False
    link: bool = False
    slow: bool = False
    needs: tuple[int, ...] = (3, 10)
    differs: str = ""
    folder: Path | None = None

    @property
    def name(self) -> str:
        folder = f"{self.program.parent.name}/" if self.program.name in ("case.py", "fixed.py") else ""
        words = [*self.interpreter, *(value for pair in self.environment for value in pair), *self.arguments]
        return " ".join([folder + self.program.stem, *words])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind. `status` is the exit status, or the name of the signal that ended it."""

    stdout: bytes
    stderr: bytes
    status: str
    files: tuple[str, ...]


def invocations(program: Path) -> list[Invocation]:
    """The runs that a program asks for."""
    lines = DIRECTIVE.findall(program.read_bytes())
    return [_parsed(program, line.decode()) for line in lines] or [Invocation(program)]


def _parsed(program: Path, line: str) -> Invocation:
    words = shlex.split(line)
    cut = words.index("--") if "--" in words else len(words)
    found = {"python": "", "stdin": "", "needs": "3.10", "differs": ""}
    flags = {"merged": False, "link": False, "slow": False}
    environment: list[tuple[str, str]] = []
    for word in words[:cut]:
        key, equals, value = word.partition("=")
        if key == "env" and equals:
            name, _, text = value.partition("=")
            environment.append((name, text))
        elif key in found and equals:
            found[key] = value
        elif word in flags:
            flags[word] = True
        else:
            raise ValueError(f"{program}: unknown word {word!r} in a transparency comment")
    return Invocation(
        program,
        tuple(words[cut + 1 :]),
        tuple(found["python"].split()),
        tuple(environment),
        found["stdin"].replace("|", "\n").encode(),
        needs=tuple(int(part) for part in found["needs"].split(".")),
        differs=found["differs"],
        **flags,
    )


@dataclass
class Runner:
    """Runs at most `workers` processes at a time, in the order asked for, and each of them once."""

    workers: int
    _pool: ThreadPoolExecutor = field(init=False)
    _started: dict[tuple[Invocation, bool], Future[Outcome]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.workers)

    def bare(self, invocation: Invocation) -> Future[Outcome]:
        return self._start(invocation, recorded=False)

    def recorded(self, invocation: Invocation) -> Future[Outcome]:
        return self._start(invocation, recorded=True)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _start(self, invocation: Invocation, *, recorded: bool) -> Future[Outcome]:
        key = (invocation, recorded)
        if key not in self._started:
            self._started[key] = self._pool.submit(run, invocation, recorded)
        return self._started[key]


def run(invocation: Invocation, recorded: bool) -> Outcome:
    """Run once. Both ways see the same environment and the same relative paths."""
    with tempfile.TemporaryDirectory(prefix="transparency-") as home:
        here = Path(home, "here")
        here.mkdir()
        program = str(invocation.program)
        if invocation.link:
            # a folder of the same name both times, since the program's path shows in its output
            Path(home, "link.py").symlink_to(invocation.program)
            program = "../link.py"
        command = [sys.executable, *invocation.interpreter, *(RECORDER if recorded else ()), program]
        done = subprocess.run(
            [*command, *invocation.arguments],
            input=invocation.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if invocation.merged else subprocess.PIPE,
            cwd=invocation.folder or here,
            env=_environment(invocation),
            timeout=LIMIT_S,
            check=False,
        )
        files = tuple(sorted(str(path.relative_to(here)) for path in here.rglob("*")))
        return Outcome(_masked(done.stdout, home), _masked(done.stderr or b"", home), _status(done.returncode), files)


def _environment(invocation: Invocation) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if key not in DROPPED and "PYTEST" not in key}
    return inherited | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"} | dict(invocation.environment)


def _masked(output: bytes, home: str) -> bytes:
    """Without what differs between any two runs: the temporary folder's name, and addresses."""
    return ADDRESS.sub(b"<address>", output.replace(home.encode(), b"<home>"))


def _status(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else str(code)
