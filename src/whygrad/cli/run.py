"""`whygrad run PROGRAM`: run a program as Python would, then report what happened to every gradient."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from whygrad.cli.options import ReportOptions, run_options
from whygrad.execute import program as programs
from whygrad.execute.program import Program

if TYPE_CHECKING:
    from whygrad.execute.run import Outcome
    from whygrad.ledger import Ledger

HELP = """Run a program as Python would, then report what happened to every gradient.

\b
  whygrad run train.py --epochs 2      a script with its own arguments
  whygrad run -m package.train         a module
  whygrad run -c "import torch; ..."   code
  whygrad run - < train.py             standard input
  whygrad run lab.ipynb                the cells of a notebook, in order
  whygrad run guide.md                 the Python blocks of a document
  whygrad run -o run.jsonl train.py    keep the evidence for `whygrad show`
  whygrad run -q --html run.html t.py  no report here, but a page

The program's own output comes first and its exit code is kept. Recording changes nothing about it.
"""


def program_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add what names a program: `-m`, `-c`, and the words from the program's name on."""
    command = click.argument("words", metavar="PROGRAM [ARGS]...", nargs=-1, type=click.UNPROCESSED)(command)
    command = click.option("-c", "is_code", is_flag=True, help="PROGRAM is code.")(command)
    return click.option("-m", "is_module", is_flag=True, help="PROGRAM is the name of a module.")(command)


depth_option = click.option(
    "--depth",
    type=click.Choice(["auto", "full", "light"]),
    default="auto",
    show_default=True,
    help="How closely to look: full tells every operation, light counts and samples the gradients; auto goes from full "
    "to light in a training loop, and back when something new happens.",
)


engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "pytorch", "embedded", "both"]),
    default="auto",
    show_default=True,
    help="What `import torch` gives the program: PyTorch, or the engine that comes with whygrad and needs NumPy alone; "
    "auto: PyTorch where it is installed; both: run on each, and report where they differ.",
)


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@program_options
@depth_option
@engine_option
@click.option("-q", "--quiet", is_flag=True, help="No report on the terminal.")
@click.option("--instead", nargs=2, multiple=True, hidden=True, help="Run a second file's text in place of a first.")
@run_options
def run(
    words: tuple[str, ...],
    is_module: bool,
    is_code: bool,
    depth: str,
    engine: str,
    quiet: bool,
    instead: tuple[tuple[str, str], ...],
    report: ReportOptions,
) -> NoReturn:
    if engine == "both":
        from whygrad.cli.both import run_both

        kinds = [flag for flag, wanted in (("-m", is_module), ("-c", is_code)) if wanted]
        named(words, is_module=is_module, is_code=is_code)
        run_both(words, ["--depth", depth, *kinds], report, quiet)
    from whygrad.cli.record import record

    replaced = {os.path.realpath(path): programs.read(copy) for path, copy in instead}
    program = named(words, is_module=is_module, is_code=is_code).with_sources(replaced)
    report.check(*(cell.path for cell in program.cells), program.name)

    def answer(ledger: Ledger, _: Outcome) -> int | None:
        if quiet and not report.is_wanted:
            return None
        from whygrad.cli.emit import emit

        with _output(quiet and not report.stdout_taken) as stdout:
            return emit(ledger, report, stdout, apart=True)

    record(program, answer, depth=depth, keep=report.ledger, force=report.force, engine=engine, replaced=replaced)


def named(words: tuple[str, ...], *, is_module: bool = False, is_code: bool = False) -> Program:
    """The program that the words of a command line name, with its arguments."""
    if is_module and is_code:
        raise click.UsageError("-m and -c each name a program; give one of them.")
    if not words:
        raise click.UsageError("name a program to run: a file, -m MODULE, -c CODE, or - for standard input.")
    first, arguments = words[0], words[1:]
    if is_module:
        return programs.module(first, arguments)
    if is_code:
        return programs.code(first, arguments)
    if first == "-":
        return programs.standard_input(arguments)
    return programs.file(first, arguments)


@contextmanager
def _output(is_unwanted: bool) -> Iterator[TextIO]:
    """Where the report goes: the process's own standard output, if the program has left it open."""
    stdout = sys.__stdout__
    if stdout is not None and not stdout.closed and not is_unwanted:
        yield stdout
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        yield nowhere
