"""Renders what was asked for: the terminal report, the page, the summary for machines. One path for all commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

import click

from whygrad import outputs
from whygrad.cli.options import STDOUT, Color, ReportOptions
from whygrad.errors import WhygradError
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import TensorId

if TYPE_CHECKING:
    from whygrad.answers.derive import Derivation
    from whygrad.rules.diagnose import Diagnosis

FOUND_ERRORS = 1
"""Exit code of `--strict` where a finding is an error."""

SIGNS = "→…×"
"""What a terminal must be able to print to get more than ASCII."""

ASKED_TENSORS = 1_000
ASKED_BUDGET = 5_000_000
"""What `--derive` may look at: so many tensors, for so many microseconds of work."""


def emit(
    ledger: Ledger,
    options: ReportOptions,
    stdout: TextIO,
    *,
    apart: bool = False,
    diagnosis: Diagnosis | None = None,
) -> int | None:
    """Give every report that `options` ask for; `apart` from what stands above it, by an empty line.

    The terminal report comes first, so that a file that cannot be written takes nothing else with it; it is
    left out where standard output was asked for something else. Returns the exit code that `--strict` asks for.
    """
    derived = _derived(ledger, options.derive)
    explanation = _explanation(ledger)
    diagnosis = diagnosis if diagnosis is not None else diagnosed(ledger, options)
    if not options.stdout_taken:
        from whygrad.report import terminal

        report = terminal.render(
            ledger,
            verbose=options.verbose,
            width=options.width,
            color=_colored(options.color, stdout),
            unicode=_prints(SIGNS, stdout),
            derivations=derived,
            explanation=explanation,
            diagnosis=diagnosis,
        )
        _print(f"\n{report}" if apart else report, stdout)
    if options.html is not None:
        from whygrad.report import html

        page = html.render(ledger, derivations=derived, explanation=explanation, diagnosis=diagnosis)
        _deliver(page, options.html, options, stdout)
    if options.sarif is not None:
        from whygrad.report import sarif

        _deliver(sarif.render(diagnosis, os.getcwd()), options.sarif, options, stdout)
    if options.json is not None:
        from whygrad.report import machine

        _deliver(machine.render(ledger, derivations=derived, diagnosis=diagnosis), options.json, options, stdout)
    return FOUND_ERRORS if options.strict and diagnosis.has_errors else None


def diagnosed(ledger: Ledger, options: ReportOptions) -> Diagnosis:
    """What the rules say, as the project of the program has set them. They stand beside the evidence, too."""
    from whygrad.rules.diagnose import Diagnosis, diagnose
    from whygrad.rules.settings import settings_near

    try:
        settings = settings_near(ledger.main_path()).overruled(options.select, options.ignore)
        return diagnose(ledger, settings)
    except WhygradError:
        raise
    except Exception as error:
        return Diagnosis((), failed=(f"No findings: a defect in whygrad: {type(error).__name__}: {error}.",))


def _explanation(ledger: Ledger) -> list[str]:
    """Why the program failed, where an exception ended it and PyTorch was there; a sentence each."""
    ended = next(ledger.of(events.Ended), None)
    if ended is None or ended.how != "exception" or next(ledger.of(events.Environment), None) is None:
        return []
    from whygrad.answers.why import why

    try:
        answer = why(ledger, "error")
    except WhygradError:
        return []
    except Exception as error:
        click.echo(f"whygrad: no explanation: a defect in whygrad: {type(error).__name__}: {error}", err=True)
        return []
    headline = answer.headline.text.partition(" raised ")[2].partition(": ")[2] or answer.headline.text
    return [f"Why: {headline}", *(sentence.text for sentence in answer.sentences)]


def _derived(ledger: Ledger, asked: bool | None) -> Mapping[TensorId, Sequence[Derivation]]:
    """The derivations to show; by default those that cost next to nothing.

    They stand beside the evidence: should they fail, the evidence is reported without them.
    """
    if asked is False or next(ledger.of(events.BackwardBegan), None) is None:
        return {}
    from whygrad.answers.derive import derivations

    try:
        return derivations(ledger, limit=ASKED_TENSORS, budget=ASKED_BUDGET) if asked else derivations(ledger)
    except WhygradError:
        raise
    except Exception as error:
        click.echo(f"whygrad: no derivations: a defect in whygrad: {type(error).__name__}: {error}", err=True)
        return {}


def _deliver(document: str, path: str, options: ReportOptions, stdout: TextIO) -> None:
    if path == STDOUT:
        _print(document, stdout, utf8=True)
        return
    outputs.save(path, document, force=options.force)
    click.echo(f"whygrad: wrote {path}", err=True)


def _print(text: str, stdout: TextIO, *, utf8: bool = False) -> None:
    """Write and flush. A reader that went away (`| head`) is no fault, and there is no one left to tell."""
    try:
        binary = getattr(stdout, "buffer", None)
        if utf8 and binary is not None:
            stdout.flush()
            binary.write(text.encode("utf-8", "backslashreplace"))
        else:
            encoding = stdout.encoding or "utf-8"
            stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stdout.flush()
    except BrokenPipeError:
        _silence(stdout)


def _silence(stdout: TextIO) -> None:
    """Keep the interpreter from complaining about the same broken pipe when it flushes at its end."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stdout.fileno())


def _prints(signs: str, stdout: TextIO) -> bool:
    try:
        signs.encode(stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _colored(color: Color, stdout: TextIO) -> bool:
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    return stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
