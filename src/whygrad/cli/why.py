"""`whygrad why FILE[:LINE] EXPRESSION`: why a gradient, an error, a mode or a value is what it is."""

from __future__ import annotations

import atexit
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from whygrad.cli.options import WithArguments
from whygrad.errors import BadInput, WhygradError

if TYPE_CHECKING:
    from whygrad.execute.program import Program
    from whygrad.execute.run import Outcome
    from whygrad.ledger import Ledger

HELP = """Why is a gradient, an error, a mode or a value what it is?

\b
  whygrad why train.py:9 w.grad         why is w.grad so at line 9?
  whygrad why train.py model.0.weight.grad -- --epochs 2
  whygrad why train.py error            why did it fail?
  whygrad why train.py:12               what did line 12 do?
  whygrad why run.jsonl:9 w.grad        from a kept ledger; nothing is run
  whygrad why run.jsonl model.training  in which mode is it, and since when?
  whygrad why "train.ipynb[3]:2" loss   line 2 of a notebook's third code cell
  whygrad why train.py --at net.py:6 h  a line of another file
  whygrad why -q --json train.py loss   the answer alone, for a machine

FILE is a program, which is run and recorded in full, or the ledger of an earlier run. Without LINE the question is
about the end of the run; with it, about the moment just after that line ran for the last time. Cells of a notebook
are counted as Jupyter numbers them, without those that are empty. EXPRESSION is a name as the program has it (w,
model.0.weight, batch["x"]), alone or with .grad, .requires_grad, .grad_fn, .is_leaf or .training; an expression of
the program's text; or the word error.
What follows -- is the program's.
"""

LEDGER_START = b'{"whygrad":'
"""What every ledger begins with."""

WIDEST = 120
"""Columns that an answer uses at most: longer lines are hard to read."""

LEDGER_NAMES = (".jsonl", ".json", ".ledger", ".whygrad")
"""How the names of ledgers end; programs are never called so."""

_CELL = re.compile(r"(?P<file>.+\.ipynb)(?P<cell>\[\d+\])(?::(?P<line>\d+))?$", re.DOTALL)

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+)$", re.DOTALL)


@click.command(cls=WithArguments, help=HELP, options_metavar="[OPTIONS]")
@click.argument("place", metavar="FILE[:LINE]")
@click.argument("expression", metavar="[EXPRESSION]", default="")
@click.option("--at", "elsewhere", metavar="FILE:LINE", help="Ask about a line of another file of the program's.")
@click.option("-q", "--quiet", is_flag=True, help="Hide what the program prints.")
@click.option("--json", "as_json", is_flag=True, help="Answer as one JSON object.")
@click.option(
    "--width", metavar="N", type=click.IntRange(min=40), help="Columns of the answer; default: the terminal's."
)
@click.pass_context
def why(
    ctx: click.Context,
    place: str,
    expression: str,
    elsewhere: str | None,
    quiet: bool,
    as_json: bool,
    width: int | None,
) -> None:
    name, line, cell = _split(place)
    at = _at(line, elsewhere)
    if at is not None and cell:
        at = (os.path.basename(name) + cell, at[1])
    question = Question(expression, at, as_json, width)
    arguments: tuple[str, ...] = ctx.meta.get("arguments", ())
    if _is_ledger(name) or (os.path.isfile(name) and name.lower().endswith(LEDGER_NAMES)):
        if arguments:
            raise BadInput(f"{name}: is a ledger, and nothing is run; arguments after -- are for programs.")
        from whygrad.ledger import read

        question.answer(read(name), sys.stdout)
        return
    _run(_program(name, line if not cell else None, arguments, is_cell=bool(cell)), question, quiet)


class Question:
    """What was asked, and how the answer is to look."""

    def __init__(self, expression: str, at: tuple[str, int] | None, as_json: bool, width: int | None) -> None:
        self.expression = expression
        self.at = at
        self.as_json = as_json
        self.width = width

    def answer(self, ledger: Ledger, stdout: Any) -> None:
        """Print the answer; raises `BadInput` for what the ledger does not know."""
        from whygrad.answers.why import why as ask

        answer = ask(ledger, self.expression, self.at)
        text = answer.json() if self.as_json else "\n".join(answer.lines(self.width or _columns()))
        try:
            print(text, file=stdout, flush=True)
        except UnicodeEncodeError:
            encoding = getattr(stdout, "encoding", None) or "ascii"
            print(text.encode(encoding, "backslashreplace").decode(encoding), file=stdout, flush=True)


# --- what is asked about ------------------------------------------------------------------------------


def _split(place: str) -> tuple[str, int | None, str]:
    """File, line and cell of `train.py:9` or `train.ipynb[3]:2`; a file of that very name is meant as a whole."""
    if os.path.exists(place):
        return place, None, ""
    if (match := _CELL.match(place)) is not None:
        if match["line"] is None:
            raise click.UsageError(f"{place}: name a line of the cell too, as in {place}:1.")
        return match["file"], int(match["line"]), match["cell"]
    match = _PLACE.match(place)
    return (place, None, "") if match is None else (match["file"], int(match["line"]), "")


def _at(line: int | None, elsewhere: str | None) -> tuple[str, int] | None:
    if elsewhere is None:
        return None if line is None else ("", line)
    if line is not None:
        raise click.UsageError("a line is named twice, by FILE:LINE and by --at; give one of them.")
    match = _PLACE.match(elsewhere)
    if match is None:
        raise click.UsageError(f"--at {elsewhere}: name a file and a line, as in helpers.py:6.")
    return match["file"], int(match["line"])


def _is_ledger(name: str) -> bool:
    """Whether a file is a kept ledger, by its content."""
    try:
        with open(name, "rb") as file:
            return file.read(len(LEDGER_START)) == LEDGER_START
    except OSError:
        return False


def _program(name: str, line: int | None, arguments: tuple[str, ...], *, is_cell: bool) -> Program:
    """The program in a file; a line that it has not is refused before anything runs."""
    from whygrad.execute import program as programs

    program = programs.standard_input(arguments) if name == "-" else programs.file(name, arguments)
    if line is not None and program.kind is programs.Kind.NOTEBOOK and not is_cell:
        raise BadInput(f'{name}:{line}: lines of a notebook are counted in a cell; name it, as in "{name}[1]:{line}".')
    source = program.cells[0].source if len(program.cells) == 1 else b""
    length = len(source.splitlines())
    if line is not None and source and not 1 <= line <= length:
        raise BadInput(f"{name}:{line}: the file has {length} line{'s' if length > 1 else ''}.")
    return program


# --- running it ---------------------------------------------------------------------------------------


def _run(program: Program, question: Question, quiet: bool) -> None:
    """Run the program in full depth and answer when it is over; its exit code stays, or is 2 for a bad question."""
    from whygrad.cli.record import record

    silence = _Silence() if quiet else None
    refused: list[str] = []
    atexit.register(_end_as_bad_input, refused)

    def answer(ledger: Ledger, _: Outcome) -> None:
        if silence is not None:
            silence.end()
        stdout = sys.__stdout__
        if stdout is None or stdout.closed:
            return
        try:
            if silence is None and not question.as_json:
                print(file=stdout)
            question.answer(ledger, stdout)
        except WhygradError as error:
            refused.append(str(error))
            print(f"whygrad: {error}", file=sys.__stderr__, flush=True)

    try:
        record(program, answer, depth="full")
    except WhygradError:
        if silence is not None:
            silence.end()
        raise


def _end_as_bad_input(refused: list[str]) -> None:
    """The last exit handler: the program is over and the question could not be answered."""
    if refused:
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None and not stream.closed:
                stream.flush()
        os._exit(2)


class _Silence:
    """Sends what the process prints to nowhere, until `end`."""

    def __init__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in self._kept:
            os.dup2(nowhere, descriptor)
        os.close(nowhere)

    def end(self) -> None:
        for descriptor, kept in self._kept.items():
            os.dup2(kept, descriptor)
            os.close(kept)
        self._kept = {}


def _columns() -> int:
    import shutil

    return min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
