"""Records a program: what `whygrad run` and `whygrad why` do before they answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import CodeType
from typing import NoReturn

from whygrad import __version__
from whygrad.execute.program import Kind, Program
from whygrad.execute.run import Outcome, execute
from whygrad.ledger import SCHEMA, Ledger, Writer, read
from whygrad.ledger.events import Event, Header, Noted

Answer = Callable[[Ledger, Outcome], int | None]
"""What is done with the evidence once the program is over; it may give an exit code in place of a 0."""


def record(
    program: Program,
    answer: Answer,
    *,
    depth: str = "auto",
    keep: str | None = None,
    force: bool = False,
    engine: str = "auto",
    replaced: Mapping[str, bytes] | None = None,
) -> NoReturn:
    """Run `program` under the recorder and call `answer` when it is over; then end as the program ended.

    The ledger goes to the file `keep` (`force`: even if it exists), or to a temporary file that is removed after
    the answer. `engine` is `auto`, `pytorch` or `embedded`. `replaced` are modules of the program's that run
    with another text, by their real paths. Lets no caller go on: see `execute`.
    """
    from whygrad.engines import choice
    from whygrad.execute.instrument import instrument
    from whygrad.execute.sites import SiteTable

    evidence = _Evidence(keep, force)
    table = SiteTable()
    chosen = choice.choose(engine)
    session = choice.session(chosen, evidence, table, depth)
    folder = _folder()

    def transform(source: bytes | str, path: str) -> CodeType:
        if replaced:
            source = replaced.get(os.path.realpath(path), source)
        return instrument(source, path, table, session.taps).instrumented

    def begin() -> None:
        evidence.open(_header(program, depth, chosen.value))
        for note in program.notes:
            session.book.write(Noted, text=note)
        session.start()

    def finish(outcome: Outcome) -> int | None:
        with evidence, _back_in(folder):
            session.finish(outcome.how, outcome.exit_code, outcome.error)
            return answer(evidence.ledger(), outcome)

    execute(program, begin=begin, finish=finish, lost=session.book.lost, transform=transform)


class _Evidence:
    """The ledger's file, which is made when the program is known to be one. The context ends it."""

    def __init__(self, keep: str | None, force: bool) -> None:
        self._path = keep or ""
        self._is_kept = keep is not None
        self._force = force
        self._writer: Writer | None = None

    def open(self, header: Header) -> None:
        if not self._is_kept:
            import tempfile

            descriptor, self._path = tempfile.mkstemp(prefix="whygrad-", suffix=".jsonl")
            os.close(descriptor)
        self._writer = Writer(self._path, header, force=self._force or not self._is_kept)

    def write(self, event: Event) -> None:
        assert self._writer is not None
        self._writer.write(event)

    def ledger(self) -> Ledger:
        """What was written, for reading; nothing is written from here on."""
        self._close()
        return read(self._path)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._close()
        if not self._is_kept and os.path.exists(self._path):
            os.unlink(self._path)


def _header(program: Program, depth: str, engine: str) -> Header:
    return Header(
        whygrad=__version__,
        schema=SCHEMA,
        program=_spelled(program),
        argv=program.argv,
        kind=program.kind.value,
        engine=engine,
        python=".".join(str(part) for part in sys.version_info[:3]),
        platform=_platform(),
        depth=depth,
        rank=_rank(),
    )


def _spelled(program: Program) -> str:
    """The program's own source as a person would name it, and as its sites' paths end."""
    if program.kind not in (Kind.MODULE, Kind.FOLDER):
        return program.cells[0].path if program.kind in (Kind.CODE, Kind.STDIN) else program.name
    if not program.cells:
        return program.name
    path = program.path
    below = os.path.join(_folder(), "")
    return path.removeprefix(below)


def _platform() -> str:
    """The system and the machine; the platform module would take longer than the rest of the header."""
    if hasattr(os, "uname"):
        system = os.uname()
        return f"{system.sysname} {system.machine}"
    return f"{sys.platform} {os.environ.get('PROCESSOR_ARCHITECTURE', '')}".strip()


def _rank() -> int:
    """Which of the processes that a launcher such as torchrun started."""
    rank = os.environ.get("RANK", "0")
    return int(rank) if rank.isdecimal() else 0


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.curdir


@contextmanager
def _back_in(folder: str) -> Iterator[None]:
    """Files are named as they were on the command line, wherever the program went."""
    there = _folder()
    _go(folder)
    try:
        yield
    finally:
        _go(there)


def _go(folder: str) -> None:
    with suppress(OSError):  # it is gone, or out of reach: absolute names still work
        os.chdir(folder)
