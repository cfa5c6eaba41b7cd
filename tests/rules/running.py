"""Runs a small program in this process and gives the rules' findings."""

from __future__ import annotations

import contextlib
import io
import textwrap
import warnings
from collections.abc import Iterable
from typing import Any

from whygrad.engines.pytorch.session import Session
from whygrad.execute.instrument import instrument
from whygrad.execute.sites import SiteTable
from whygrad.ledger import Ledger
from whygrad.ledger.events import Header
from whygrad.rules.diagnose import Diagnosis, diagnose
from whygrad.rules.rule import HERE, Rule

PATH = "program.py"


class _Events(list[Any]):
    write = list.append


def recorded(code: str, depth: str = "auto") -> Ledger:
    """The ledger of a program, whatever it prints or raises."""
    import torch

    source = textwrap.dedent(code).lstrip("\n")
    events, table = _Events(), SiteTable()
    session = Session(events, table, depth)
    compiled = instrument(source, PATH, table, session.taps).instrumented
    error: Exception | None = None
    torch.manual_seed(0)
    quiet = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        warnings.simplefilter("always")
        session.start()
        try:
            exec(compiled, {"__name__": "__main__"})
        except Exception as raised:
            error = raised
        finally:
            session.finish("returned" if error is None else "exception", 0 if error is None else 1, error)
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    return Ledger(Header(whygrad="0", schema=1, program=PATH), events)


def findings(code: str, rules: Iterable[Rule] | None = None) -> Diagnosis:
    return diagnose(recorded(code), rules=rules)


def blamed_line(code: str) -> int:
    """The number of the line that is marked."""
    lines = textwrap.dedent(code).lstrip("\n").splitlines()
    marked = [number for number, line in enumerate(lines, 1) if line.rstrip().endswith(HERE)]
    assert len(marked) == 1, f"one line is to be marked with {HERE!r}"
    return marked[0]
