"""`whygrad practice`: work through problems, each answer judged by running the code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from whygrad.errors import BadInput

if TYPE_CHECKING:
    from whygrad.execute.children import Runs

HELP = """Work through problems. No answer is taken on trust: the code decides.

\b
  whygrad practice                          the next ones for you
  whygrad practice --topic accumulation     of one topic
  whygrad practice --id two-losses-one-leaf one problem
  whygrad practice --list                   all of them, and how you stand
  whygrad practice my_problems/             your own

Plain lines in and out, 80 columns, no colour: it works in any terminal, in a pipe and with a screen reader.
"""


@click.command(help=HELP)
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--level", type=click.Choice(["intermediate", "advanced", "expert"]), help="Only problems of a level.")
@click.option("--topic", metavar="WORD", help="Only problems with a topic that has this word in it.")
@click.option("--kind", metavar="KIND", help="Only problems of a kind: predict, debug, code, ...")
@click.option("--id", "one", metavar="ID", help="One problem.")
@click.option("--list", "wants_list", is_flag=True, help="List the problems.")
@click.option("--reset", is_flag=True, help="Forget all progress.")
@click.option("--progress", "progress_file", metavar="FILE", help="Keep the progress in this file.")
def practice(
    paths: tuple[str, ...],
    level: str | None,
    topic: str | None,
    kind: str | None,
    one: str | None,
    wants_list: bool,
    reset: bool,
    progress_file: str | None,
) -> None:
    from whygrad.practice import bank
    from whygrad.practice.lines import Lines, in_order, listing
    from whygrad.practice.progress import Progress, default_file

    with Progress(progress_file or default_file()) as progress:
        if reset:
            progress.reset()
            click.echo("All progress is forgotten.")
            return
        chosen = [
            problem
            for problem in bank.problems(paths)
            if (level is None or problem.front.level.value == level)
            and (topic is None or any(topic.lower() in one.lower() for one in problem.front.topics))
            and (kind is None or problem.front.kind.value == kind)
            and (one is None or problem.front.id == one)
        ]
        if not chosen:
            raise BadInput("there is no such problem; `whygrad practice --list` lists them.")
        if wants_list:
            for line in listing(chosen, progress):
                click.echo(line)
            return
        with _Children() as runs:
            Lines(progress, runs.of, _ask, click.echo).practise(in_order(chosen, progress))


def _ask(prompt: str) -> str:
    sys.stdout.write(prompt)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


class _Children:
    """Children of each engine, started when they are needed."""

    def __init__(self) -> None:
        self._runs: dict[str, Runs] = {}

    def of(self, engine: str) -> Runs:
        from whygrad.execute.children import children

        if engine not in self._runs:
            self._runs[engine] = children(engine)
        return self._runs[engine]

    def __enter__(self) -> _Children:
        return self

    def __exit__(self, *_: object) -> None:
        for runs in self._runs.values():
            runs.close()
