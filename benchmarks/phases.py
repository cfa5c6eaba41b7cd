"""Runs the command line with its parts timed: `python -m benchmarks.phases run PROGRAM` gives them as one line of JSON.

The last line on standard error: seconds of processor time by part, without the import of the modules they are in.
"""

from __future__ import annotations

import atexit
import functools
import json
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import whygrad.answers.derive
import whygrad.cli.emit
import whygrad.engines.pytorch.session
import whygrad.engines.pytorch.wiring
import whygrad.execute.instrument
import whygrad.report.terminal
from whygrad import cli

PARTS: dict[str, tuple[Any, str]] = {
    "compile the program with taps": (whygrad.execute.instrument, "instrument"),
    "probe torch's functions": (whygrad.engines.pytorch.wiring.Wiring, "install"),
    "end the ledger": (whygrad.engines.pytorch.session.Session, "finish"),
    "derive the gradients": (whygrad.cli.emit, "_derived"),
    "render the report": (whygrad.report.terminal, "render"),
}

took: dict[str, float] = {}


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        began = process_time()
        try:
            return function(*arguments, **named)
        finally:
            took[name] = took.get(name, 0.0) + process_time() - began

    return call


if __name__ == "__main__":
    atexit.register(lambda: print("\n" + json.dumps(took), file=sys.__stderr__))  # the last to be called
    for part, (owner, attribute) in PARTS.items():
        setattr(owner, attribute, timed(part, getattr(owner, attribute)))
    cli.main()
