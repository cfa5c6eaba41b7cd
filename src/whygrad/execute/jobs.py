"""What is run in a child and what comes back: plain data both ways, so that nothing of a program outlives it."""

from __future__ import annotations

from typing import Any

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What one job may use. Memory is counted beyond what the engine itself takes."""

    time_s: float = 10.0
    memory_mb: int = 2048
    processes: int = 64
    file_mb: int = 64
    output_kb: int = 1024


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a program, and the expressions that are asked for when it is over.

    The steps of a job share their names. `line` is the line of `path` on which `source` begins. An error skips the
    steps that follow in the same `group`. With `shows`, the value of an expression that ends the source comes back.
    An ask may be several statements; its value is that of the expression that it ends with. It may use the names
    `error` (what the step raised, or None) and, in the last step of a recorded job, `ledger`.
    """

    source: str
    path: str = "program.py"
    line: int = 1
    group: int = 0
    asks: tuple[str, ...] = ()
    shows: bool = False


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """One program in a child of its own, in an empty folder that holds `files`.

    `seed` is given to every generator before it starts, so that what rests on chance without a seed of its own is
    seen to differ between two seeds.
    """

    steps: tuple[Step, ...]
    files: dict[str, str] = {}
    seed: int = 0
    threads: int = 1
    records: bool = False
    limits: Limits = Limits()


class Plain(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value without its object. `kind` says what it was: none, bool, int, float, complex, str, tensor, array,
    list, tuple, dict, set, dtype, shape, type, or object.

    `value` is the number, the text, or a tensor's elements in one row. `items` are those of a container (of a dict:
    key, value, key, value, ...). `text` is how it prints.
    """

    kind: str
    value: Any = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    items: tuple[Plain, ...] = ()
    requires_grad: bool | None = None
    text: str = ""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exception: its class, the names of its bases, its text, and the line of the step's file that it came from.

    `limit` names the limit of the job that it is about, if it is about one.
    """

    kind: str
    bases: tuple[str, ...] = ()
    text: str = ""
    line: int = 0
    limit: str = ""

    def is_a(self, name: str) -> bool:
        return name == self.kind or name in self.bases

    def __str__(self) -> str:
        first = self.text.strip().splitlines()[0] if self.text.strip() else ""
        return f"{self.kind}: {first}" if first else self.kind


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of an ask."""

    value: Plain | None = None
    failure: Failure | None = None

    @property
    def holds(self) -> bool:
        """Whether the answer is True itself: of what merely counts as true, one does not know whether it was meant."""
        return self.value is not None and self.value.kind == "bool" and self.value.value is True


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a step. `ran` is false for one that was skipped, or that the end of the child came before."""

    ran: bool = False
    printed: str = ""
    failure: Failure | None = None
    value: Plain | None = None
    replies: tuple[Reply, ...] = ()


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a job. `stopped` is "" or what ended it early: time, memory, output, exit or signal.

    `why` is a sentence about that. `events` is the ledger of a recorded job, as lines of JSON.
    """

    steps: tuple[Done, ...]
    stopped: str = ""
    why: str = ""
    warnings: str = ""
    events: bytes = b""
    elapsed_s: float = 0.0

    @property
    def printed(self) -> str:
        return "".join(step.printed for step in self.steps)

    @property
    def failure(self) -> Failure | None:
        """The first error that nothing caught."""
        return next((step.failure for step in self.steps if step.failure is not None), None)


class StepReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the child itself tells of a step; what it printed, the server knows."""

    index: int
    failure: Failure | None = None
    value: Plain | None = None
    replies: tuple[Reply, ...] = ()
    events: bytes = b""
