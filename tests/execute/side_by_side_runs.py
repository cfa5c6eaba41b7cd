"""Starts a program by Python and by `whygrad.execute`, in a folder of its own, and compares what can be seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SRC = HERE.parent.parent / "src"
CHANGING = re.compile(rb"0x[0-9a-f]+|started \d+")


@dataclass(frozen=True)
class Seen:
    """What a run shows to its caller."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Ours:
    """A run by `whygrad.execute`, and what it told us."""

    seen: Seen
    log: list[str]

    @property
    def ended(self) -> list[str]:
        return [line.removeprefix("ended ") for line in self.log if line.startswith("ended ")]

    @property
    def compiled(self) -> list[str]:
        return [line.removeprefix("compiled ") for line in self.log if line.startswith("compiled ")]

    @property
    def lost(self) -> list[str]:
        return [line.removeprefix("lost ") for line in self.log if line.startswith("lost ")]


@dataclass
class Folder:
    """A folder with the user's files."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)
    driver: Path = HERE / "execute_driver.py"

    def write(self, **modules: str) -> None:
        """Python files, by their names without `.py`."""
        for name, text in modules.items():
            self.file(f"{name}.py", text)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def bare(self, *command: str, stdin: bytes = b"", merged: bool = False, options: tuple[str, ...] = ()) -> Seen:
        return self._run([sys.executable, *options, *command], stdin, merged)

    def ours(
        self,
        *command: str,
        stdin: bytes = b"",
        merged: bool = False,
        options: tuple[str, ...] = (),
        transform: str = "plain",
    ) -> Ours:
        log = self.path.parent / f"{self.path.name}.log"
        log.write_text("")
        self.environment.update(DRIVER_LOG=str(log), DRIVER_TRANSFORM=transform)
        seen = self._run([sys.executable, *options, str(self.driver), *command], stdin, merged)
        return Ours(seen, log.read_text().splitlines())

    def variables(self) -> dict[str, str]:
        """The environment of both runs."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DRIVER"))}
        return {**inherited, "PYTHONPATH": str(SRC), "PYTHONDONTWRITEBYTECODE": "1", **self.environment}

    def _run(self, command: list[str], stdin: bytes, merged: bool) -> Seen:
        stderr = subprocess.STDOUT if merged else subprocess.PIPE
        done = subprocess.run(
            command, cwd=self.path, env=self.variables(), input=stdin, stdout=subprocess.PIPE, stderr=stderr,
            timeout=60, check=False,
        )  # fmt: skip
        return Seen(done.returncode, _plain(done.stdout), _plain(done.stderr or b""))


def _plain(output: bytes) -> str:
    return CHANGING.sub(b"<changing>", output).decode(errors="replace")


def same(folder: Folder, *command: str, **how: object) -> Ours:
    """Assert that both runs look the same; returns ours."""
    ours = folder.ours(*command, **how)  # type: ignore[arg-type]
    bare = folder.bare(*command, **how)  # type: ignore[arg-type]
    assert ours.seen == bare, f"bare:\n{bare}\nours:\n{ours.seen}"
    return ours
