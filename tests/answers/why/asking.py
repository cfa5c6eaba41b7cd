"""Records a small program in this process and asks why.

Programs begin on line 1; `torch`, `nn` and `F` are there already. Every answer is checked: its evidence is in the
ledger, and not later than the moment that was asked about.
"""

from __future__ import annotations

import ast
import contextlib
import io
import textwrap
import warnings
from typing import Any

import torch

from whygrad.answers.why import Answer, why
from whygrad.engines.pytorch.session import Session
from whygrad.execute.instrument import instrument
from whygrad.execute.sites import SiteTable
from whygrad.ledger import Ledger, events

PATH = "program.py"
IMPORTS = "import torch, torch.nn as nn, torch.nn.functional as F"


class Sink(list[Any]):
    """Keeps the events in memory."""

    write = list.append


def recorded(source: str, depth: str = "full") -> Ledger:
    """The ledger of a program that runs here; an exception that it does not catch ends it as usual."""
    sink, table = Sink(), SiteTable()
    session = Session(sink, table, depth)
    program = textwrap.dedent(source).strip() + "\n"
    code = instrument(program, PATH, table, session.taps, _with_imports).instrumented
    names = {"__name__": "__main__"}
    torch.manual_seed(0)
    how, error = "returned", None
    session.start()
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, names)
    except Exception as raised:
        how, error = "exception", raised
    finally:
        torch.set_grad_enabled(True)
        session.finish(how, int(error is not None), error)
    return Ledger(events.Header(whygrad="0", schema=1, program=PATH, depth=depth), sink)


def _with_imports(tree: ast.Module) -> None:
    """Put the imports on line 1 too, so that the program's own lines keep their numbers."""
    tree.body[:0] = ast.parse(IMPORTS).body


def ask(ledger: Ledger, target: str, line: int | None = None) -> Answer:
    """The answer, once its evidence has been checked."""
    answer = why(ledger, target, None if line is None else ("", line))
    known = {event.seq for event in ledger}
    last = max(known)
    for sentence in (answer.headline, *answer.sentences):
        assert set(sentence.events) <= known, sentence
        assert answer.moment.seq <= last
        assert sentence.text.strip() == sentence.text
        assert "  " not in sentence.text
    return answer


def asked(source: str, target: str, line: int | None = None) -> Answer:
    """Record and ask."""
    return ask(recorded(source), target, line)


def text(answer: Answer) -> str:
    """The whole answer on one line."""
    return " ".join(" ".join(answer.lines(10_000)).split())
