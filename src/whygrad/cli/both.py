"""`whygrad run --engine both`: the program on PyTorch and on the embedded engine, and where they differ."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NoReturn

import click
import msgspec

from whygrad.cli.emit import emit
from whygrad.cli.options import ReportOptions
from whygrad.engines.choice import Engine, choose
from whygrad.engines.witness import Difference, differences, texts_agree
from whygrad.errors import BadInput
from whygrad.ledger import Ledger, read
from whygrad.ledger.events import Seeded

SHOWN = 20
"""Differences that are written out."""

NAMES = {Engine.PYTORCH: "PyTorch", Engine.EMBEDDED: "embedded"}


class Run(msgspec.Struct, frozen=True):
    """What a program did on one engine."""

    engine: Engine
    output: str
    errors: str
    exit_code: int
    ledger: Ledger


def run_both(words: Sequence[str], options: Sequence[str], report: ReportOptions, quiet: bool) -> NoReturn:
    """Run what the words name once on each engine, each in a process of its own; report; end as PyTorch's run did.

    `options` are those of `whygrad run` that tell how to run. The program's output is shown as PyTorch's run gave it.
    """
    choose(Engine.PYTORCH.value)
    given = sys.stdin.buffer.read() if words[:1] == ("-",) else None
    with tempfile.TemporaryDirectory(prefix="whygrad-") as folder:
        kept = [report.ledger or os.path.join(folder, "pytorch.jsonl"), os.path.join(folder, "embedded.jsonl")]
        first, second = (
            _run(engine, words, options, path, report.force, given)
            for engine, path in zip((Engine.PYTORCH, Engine.EMBEDDED), kept, strict=True)
        )
        sys.stdout.write(first.output)
        sys.stderr.write(first.errors)
        sys.stdout.flush()
        if not quiet:
            emit(first.ledger, report, sys.stdout, apart=True)
        for line in told(first, second):
            click.echo(line)
    sys.exit(first.exit_code)


def _run(
    engine: Engine, words: Sequence[str], options: Sequence[str], path: str, force: bool, given: bytes | None
) -> Run:
    command = [sys.executable, "-m", "whygrad", "run", "-q", "--engine", engine.value, "-o", path]
    command += [*(["--force"] if force else []), *options, "--", *words]
    done = subprocess.run(command, capture_output=True, input=given, check=False)
    if not os.path.exists(path):
        raise BadInput(done.stderr.decode(errors="replace").strip() or f"the run on {engine.value} left no ledger")
    output, errors = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return Run(engine, output, errors, done.returncode, read(path))


def told(first: Run, second: Run) -> Iterator[str]:
    """The comparison, line by line."""
    found = list(islice(_all(first, second), SHOWN + 1))
    yield ""
    yield "Second witness"
    if not found:
        count = sum(1 for _ in first.ledger)
        yield f"  the embedded engine agrees: the same output, and the same {count} events"
        return
    if "does not cover" in second.errors:
        yield "  " + second.errors.strip().splitlines()[-1]
        return
    width = max(len(one.where) for one in found)
    for one in found[:SHOWN]:
        yield f"  {one.where:<{width}}  {one.what}"
        yield f"  {'':<{width}}    PyTorch   {one.first}"
        yield f"  {'':<{width}}    embedded  {one.second}"
    if len(found) > SHOWN:
        yield "  and more"
    if not any(True for _ in first.ledger.of(Seeded)):
        yield "  The program sets no seed: what it draws at random differs from run to run."


def _all(first: Run, second: Run) -> Iterator[Difference]:
    if first.exit_code != second.exit_code:
        yield Difference("", "exit code", str(first.exit_code), str(second.exit_code))
    ours, theirs = first.output.splitlines(), second.output.splitlines()
    for number in range(max(len(ours), len(theirs))):
        a, b = (lines[number] if number < len(lines) else "nothing" for lines in (ours, theirs))
        if not texts_agree(a, b):
            yield Difference(f"output {number + 1}", "printed", a, b)
    yield from differences(first.ledger, second.ledger)
