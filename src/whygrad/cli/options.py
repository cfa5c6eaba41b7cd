"""The options of a report, shared by every command that gives one."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

import click
import msgspec

from whygrad import outputs
from whygrad.errors import BadInput

STDOUT = "-"
"""Where a file is asked for, this means standard output."""

Command = TypeVar("Command", bound=Callable[..., Any])


class WithArguments(click.Command):
    """A command whose line ends in `-- ARGUMENTS`, which are another program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            end = args.index("--")
            ctx.meta["arguments"] = tuple(args[end + 1 :])
            args = args[:end]
        return super().parse_args(ctx, args)


class Color(Enum):
    """When to colour the terminal report: `auto` where a person is looking and NO_COLOR is not set."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class ReportOptions(msgspec.Struct, frozen=True):
    """What to report, where to, and how it should look.

    `json` and `html` are files (`-`: standard output), `ledger` is the file in which `run` keeps the evidence.
    `width` is in characters (None: the terminal's). `derive` None: derive small graphs only.
    """

    verbose: bool = False
    json: str | None = None
    html: str | None = None
    sarif: str | None = None
    ledger: str | None = None
    force: bool = False
    color: Color = Color.AUTO
    width: int | None = None
    derive: bool | None = None
    strict: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @property
    def stdout_taken(self) -> bool:
        """Whether a file was asked for on standard output, where the terminal report would be in its way."""
        return STDOUT in (self.json, self.html, self.sarif)

    @property
    def is_wanted(self) -> bool:
        """Whether anything is asked for besides the terminal report."""
        return self.strict or any(path is not None for path in (self.json, self.html, self.sarif))

    def files(self) -> tuple[str, ...]:
        """The files that will be written."""
        asked = (self.ledger, self.html, self.json, self.sarif)
        return tuple(path for path in asked if path is not None and path != STDOUT)

    def check(self, *inputs: str) -> None:
        """Raise `BadInput` before anything runs if a file could not be written, or is one that is read."""
        if (self.json, self.html, self.sarif).count(STDOUT) > 1:
            raise BadInput("only one of --json, --html and --sarif can be written to standard output.")
        read = {os.path.realpath(path) for path in inputs}
        written: set[str] = set()
        for path in self.files():
            real = os.path.realpath(path)
            if real in read:
                raise BadInput(f"{path}: is read by this command; write to another file.")
            if real in written:
                raise BadInput(f"{path}: is named for two outputs; each needs a file of its own.")
            outputs.check(path, force=self.force)
            written.add(real)


_REPORT = (
    click.option("-v", "--verbose", is_flag=True, help="Tell everything: every event, every step, every call."),
    click.option(
        "--json", metavar="FILE", type=click.Path(), help="Write the summary for machines; - is standard output."
    ),
    click.option(
        "--html", metavar="FILE", type=click.Path(), help="Write one self-contained page, the source beside the story."
    ),
    click.option("--sarif", metavar="FILE", type=click.Path(), help="Write the findings for code hosts (SARIF 2.1.0)."),
    click.option(
        "--strict", is_flag=True, help="Exit with 1 where a finding says that the result is wrong (an error)."
    ),
    click.option("--select", metavar="CODES", default="", help="Run these rules only: codes, their beginnings, names."),
    click.option("--ignore", metavar="CODES", default="", help="Leave these rules out."),
    click.option("--force", is_flag=True, help="Overwrite files that exist."),
    click.option(
        "--color",
        type=click.Choice([color.value for color in Color]),
        default=Color.AUTO.value,
        help="Colour the report; auto: on a terminal, unless NO_COLOR is set.",
    ),
    click.option(
        "--width", metavar="N", type=click.IntRange(min=40), help="Columns of the report; default: the terminal's."
    ),
    click.option(
        "--derive/--no-derive",
        default=None,
        help="Check each gradient against a derivation; default: where the graph is small.",
    ),
)

_LEDGER = click.option(
    "-o", "--output", metavar="FILE", type=click.Path(), help="Keep the ledger: `whygrad show FILE` reports it again."
)


def report_options(command: Command) -> Command:
    """Add the options of a report to a command, which gets them as `report: ReportOptions`.

    What they say about output files has been checked by then.

    @click.command
    @click.argument("ledger")
    @report_options
    def show(ledger: str, report: ReportOptions) -> None: ...
    """

    @functools.wraps(command)
    def with_report(
        *args: Any,
        verbose: bool,
        json: str | None,
        html: str | None,
        sarif: str | None,
        strict: bool,
        select: str,
        ignore: str,
        force: bool,
        color: str,
        width: int | None,
        derive: bool | None,
        output: str | None = None,
        **others: Any,
    ) -> Any:
        report = ReportOptions(
            verbose=verbose, json=json, html=html, ledger=output, force=force, color=Color(color), width=width,
            derive=derive, sarif=sarif, strict=strict, select=_codes(select), ignore=_codes(ignore),
        )  # fmt: skip
        report.check()
        return command(*args, report=report, **others)

    decorated: Any = with_report
    for option in reversed(_REPORT):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code for code in text.replace(",", " ").split() if code)


def run_options(command: Command) -> Command:
    """As `report_options`, with `-o FILE` to keep the ledger (`ReportOptions.ledger`)."""
    return _LEDGER(report_options(command))
