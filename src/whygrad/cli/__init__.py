"""The command line: it parses, calls and prints. `main` is the one place where errors become a line and an exit code.

Commands are imported when they are asked for, one module a command; importing this package imports click alone.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click
import msgspec

from whygrad import __version__
from whygrad.errors import WhygradError

BAD_INPUT = 2
"""Exit code where the user can do something about it: bad usage, a missing file, a ledger that is none."""

OUTSIDE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""What goes wrong with a file through nobody's fault here: a full disk, a quota, a broken device."""

DEFECT = 70
"""Exit code of an internal error (EX_SOFTWARE)."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

COMMANDS = ("run", "why", "fix", "show", "rule", "check", "practice", "engines", "completion")
"""The commands in the order of the help; each is the command of that name in the module of that name."""

HELP = """Why is this gradient what it is? Run an ordinary PyTorch program, unchanged, and see the evidence.

\b
  whygrad run train.py --epochs 2         run it, then report every gradient
  whygrad run -o run.jsonl train.py       ... and keep the evidence
  whygrad show run.jsonl --html run.html  a page with the source beside it
  whygrad why train.py:9 w.grad           why has w.grad this value at line 9?
  whygrad fix train.py                    changes, tried by running them

Options of a command stand before the program's name; what follows it is the program's.
`whygrad COMMAND --help` says more about a command.
"""


class Settings(msgspec.Struct):
    """What the global options decide."""

    debug: bool = False


class Commands(click.Group):
    """Finds a command by importing the module of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"whygrad.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and os.path.exists(name):
            raise click.UsageError(f"{name!r} is a file, not a command. Did you mean `whygrad run {name}`?", ctx)
        return super().resolve_command(ctx, args)


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    try:
        torch = f"PyTorch {version('torch')}"
    except PackageNotFoundError:
        torch = "no PyTorch"
    click.echo(f"whygrad {__version__} (Python {python_version()}, {torch})")
    ctx.exit()


@click.group(
    cls=Commands, help=HELP, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--debug", is_flag=True, help="Show our own traceback when whygrad itself fails (or set WHYGRAD_DEBUG=1)."
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the versions."
)
@click.pass_context
def commands(ctx: click.Context, debug: bool) -> None:
    ctx.obj.debug = ctx.obj.debug or debug
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: with the command's own code, 2 for bad input, 70 for a defect of ours."""
    sys.exit(call(sys.argv[1:] if arguments is None else arguments))


def call(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code; whatever goes wrong is one line on stderr."""
    settings = Settings(debug=os.environ.get("WHYGRAD_DEBUG", "") not in ("", "0"))
    try:
        result: Any = commands.main(list(arguments), prog_name="whygrad", obj=settings, standalone_mode=False)
    except click.ClickException as error:
        return _failed(_usage(error), BAD_INPUT)
    except click.Abort:
        return INTERRUPTED
    except WhygradError as error:
        return _failed(str(error), BAD_INPUT, settings)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in OUTSIDE:
            named = f"{error.filename}: " if error.filename else ""
            said = f"{named}{error.strerror}; what was being written is incomplete."
            return _failed(said[:1].lower() + said[1:], BAD_INPUT, settings)
        kind, text = type(error).__name__, " ".join(str(error).split())
        return _failed(
            f"this is a defect in whygrad, not in your program: {kind}: {text} "
            "(`whygrad --debug ...` or WHYGRAD_DEBUG=1 shows where).",
            DEFECT,
            settings,
        )
    return result if isinstance(result, int) else 0


def _usage(error: click.ClickException) -> str:
    said = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    said = said[:1].lower() + said[1:]
    return f"{said} See `{context.command_path} --help`." if context is not None else said


def _failed(sentence: str, code: int, settings: Settings | None = None) -> int:
    if settings is not None and settings.debug:
        traceback.print_exc()
    click.echo(f"whygrad: {sentence}", err=True)
    return code
