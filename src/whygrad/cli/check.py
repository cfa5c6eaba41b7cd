"""`whygrad check PATH...`: which published answers and outputs are not what a run shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from whygrad.check.defect import Checked
    from whygrad.check.documents import Renewal

HELP = """Run what a page or a problem shows, and say where it is wrong.

\b
  whygrad check problems/                problems: every option is executed
  whygrad check README.md docs/          documents: every block runs
  whygrad check lesson.ipynb lib.py      notebooks, and docstrings
  whygrad check --update README.md       write the outputs as they are

Compared are doctest prompts, output blocks, the outputs of notebooks, and comments such as
`print(w.grad)  # tensor(5.)`. A fence may say more: `python raises=RuntimeError`, `python no-run`, `python new`
(a program of its own from here on), `python alone`; or a comment before it: <!-- whygrad: no-run -->.

Exit code 1: something published is not what a run shows. 2: a file cannot be read as what it is.
"""

FALSE = 1
"""Exit code where something published is not what a run shows."""

SHOW_PROGRESS_AFTER_S = 2.0


@click.command(help=HELP)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--engine",
    type=click.Choice(["auto", "pytorch", "embedded"]),
    default="auto",
    help="The engine that all runs on; auto: problems on each that they are said to be true for.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write one JSON object; - for stdout.")
@click.option("--junit", "junit_file", metavar="FILE", help="Write JUnit XML.")
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write SARIF 2.1.0.")
@click.option("--github", is_flag=True, help="Print annotations for GitHub's workflows.")
@click.option("--update", is_flag=True, help="Show how outputs differ, and write them as they are.")
@click.option("--force", is_flag=True, help="Overwrite output files.")
@click.option("--no-cache", is_flag=True, help="Run everything anew; results are kept otherwise.")
def check(
    paths: tuple[str, ...],
    engine: str,
    json_file: str | None,
    junit_file: str | None,
    sarif_file: str | None,
    github: bool,
    update: bool,
    force: bool,
    no_cache: bool,
) -> int:
    from whygrad import outputs
    from whygrad.check.forms import machine, terminal
    from whygrad.check.run import check as check_files
    from whygrad.check.runner import Runner, cache_file

    for name in (json_file, junit_file, sarif_file):
        if name not in (None, "-"):
            outputs.check(str(name), force=force)
    renewals: list[Renewal] = []
    with _Progress() as progress, Runner(None if no_cache else cache_file(), progress) as runner:
        checked = check_files(paths, runner, _engines(engine), renewals if update else None)
    forms: tuple[tuple[str | None, Callable[[], str]], ...] = (
        (json_file, lambda: machine.json(checked)),
        (junit_file, lambda: machine.junit(checked)),
        (sarif_file, lambda: machine.sarif(checked, os.getcwd())),
    )
    for name, form in forms:
        if name == "-":
            click.echo(form(), nl=False)
        elif name is not None:
            outputs.save(name, form(), force=force)
    if "-" not in (json_file, junit_file, sarif_file):
        import shutil

        click.echo(terminal.render(checked, shutil.get_terminal_size((100, 24)).columns), nl=False)
    if github:
        click.echo(machine.github(checked), nl=False)
    if update:
        return _update(renewals, checked)
    return FALSE if checked.defects else 0


def _engines(wanted: str) -> list[str]:
    from whygrad.engines.choice import choose, has_pytorch

    if wanted == "auto":
        return ["pytorch", "embedded"] if has_pytorch() else ["embedded"]
    return [choose(wanted).value]


def _update(renewals: list[Renewal], checked: Checked) -> int:
    """Show what differs and write it; what is left is what no output can put right."""
    from pathlib import Path

    from whygrad.check.update import differences

    for path, (text, difference) in differences(renewals).items():
        click.echo(difference, nl=False)
        Path(path).write_text(text, encoding="utf-8")
        click.echo(f"{path}: updated")
    return FALSE if len(checked.defects) > len(renewals) else 0


class _Progress:
    """A line on stderr that says how far the runs are, where a person may be waiting for it."""

    def __init__(self) -> None:
        self._began = 0.0
        self._is_shown = False

    def __call__(self, done: int, of: int) -> None:
        import time

        now = time.monotonic()
        if done == 0:
            self._began = now
        if not sys.stderr.isatty() or (not self._is_shown and now - self._began < SHOW_PROGRESS_AFTER_S):
            return
        self._is_shown = True
        filled = 24 * done // max(of, 1)
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (24 - filled)}] {done} of {of} runs")
        sys.stderr.flush()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            sys.stderr.write("\r" + " " * 60 + "\r")
            sys.stderr.flush()
