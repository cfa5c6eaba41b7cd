"""The ledger of a program on each engine, recorded in this process."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

from whygrad.engines.choice import Engine, session
from whygrad.execute.instrument import instrument
from whygrad.execute.sites import SiteTable
from whygrad.ledger import Ledger
from whygrad.ledger.events import Header

PATH = "program.py"


class Events(list[Any]):
    """A sink that keeps the events in memory."""

    write = list.append


def ledger(code: str, engine: Engine) -> Ledger:
    """Run `code` under the recorder; what it raises is in the ledger."""
    events, table = Events(), SiteTable()
    recording = session(engine, events, table, "full")
    prepared = instrument(code, PATH, table, recording.taps).instrumented
    error: BaseException | None = None
    with warnings.catch_warnings(record=True), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        recording.start()
        try:
            exec(prepared, {"__name__": "__main__"})
        except Exception as raised:
            error = raised
            error.__traceback__ = raised.__traceback__ and raised.__traceback__.tb_next
        finally:
            recording.finish("returned" if error is None else "exception", int(error is not None), error)
    return Ledger(Header(whygrad="0", schema=1, program=PATH, engine=engine.value), events)
