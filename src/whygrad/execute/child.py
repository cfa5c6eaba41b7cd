"""Inside a child: runs the steps of one job and tells what came of each. What runs here runs once."""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import random
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

import msgspec

from whygrad.execute.jobs import Failure, Job, Plain, Reply, Step, StepReport
from whygrad.execute.limits import limit_of
from whygrad.execute.plain import plain

Tell = Callable[[StepReport], None]
Mark = Callable[[], None]
"""Draws a line under what has been printed so far."""


def perform(job: Job, engine: str, tell: Tell, mark: Mark) -> None:
    """Run the steps of `job` in the current folder."""
    for name, text in job.files.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    _prepare(job)
    recording = _Recording(engine) if job.records else None
    main = types.ModuleType("__main__")
    names = vars(main)
    sys.modules["__main__"] = main
    failed: set[int] = set()
    for index, step in enumerate(job.steps):
        is_last = index == len(job.steps) - 1
        if step.group in failed:
            mark()
            mark()
            continue
        error, value = _run(step, names, recording)
        _flush()
        mark()
        if error is not None:
            failed.add(step.group)
        events = b""
        extra: dict[str, Any] = {"error": error}
        if recording is not None and is_last:
            ledger, events = recording.finish(error)
            extra["ledger"] = ledger
        replies = tuple(_answer(ask, names, extra) for ask in step.asks)
        _flush()
        mark()
        tell(StepReport(index, _failure(error, step.path), value, replies, events))


def _prepare(job: Job) -> None:
    sys.argv = [job.steps[0].path if job.steps else "program.py"]
    sys.path.insert(0, os.getcwd())
    random.seed(job.seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(job.seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(job.seed)
        if hasattr(torch, "set_num_threads"):
            torch.set_num_threads(job.threads)


def _run(step: Step, names: dict[str, Any], recording: _Recording | None) -> tuple[BaseException | None, Plain | None]:
    """Run a step; what it raised, and the value that it ends with where that is wanted."""
    source = "\n" * (step.line - 1) + step.source
    linecache.cache[step.path] = (len(source), None, source.splitlines(keepends=True), step.path)
    names["__file__"] = step.path
    try:
        if step.shows:
            tree = ast.parse(source, step.path)
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
                exec(compile(tree, step.path, "exec", dont_inherit=True), names)
                return None, plain(eval(compile(last, step.path, "eval", dont_inherit=True), names))
        if recording is not None:
            code = recording.compiled(source, step.path)
        else:
            code = compile(source, step.path, "exec", dont_inherit=True)
        exec(code, names)
    except BaseException as error:
        return error, None
    return None, None


def _answer(ask: str, names: dict[str, Any], extra: dict[str, Any]) -> Reply:
    """The value of an ask. Names that it binds are its own, and what it changes in place is seen by the next."""
    scope = {**names, **extra}
    try:
        tree = ast.parse(ask.strip(), "<ask>")
        if not tree.body or not isinstance(tree.body[-1], ast.Expr):
            exec(compile(tree, "<ask>", "exec", dont_inherit=True), scope)
            return Reply(plain(True))  # only assertions: that none failed is the answer
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        exec(compile(tree, "<ask>", "exec", dont_inherit=True), scope)
        return Reply(plain(eval(compile(last, "<ask>", "eval", dont_inherit=True), scope)))
    except BaseException as error:
        return Reply(None, _failure(error, "<ask>"))


def _failure(error: BaseException | None, path: str) -> Failure | None:
    if error is None:
        return None
    line = 0
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == path and frame.lineno:
            line = frame.lineno
    if isinstance(error, SyntaxError) and error.filename == path:
        line = error.lineno or 0
    try:
        text = str(error)[:2000]
    except Exception:
        text = ""
    bases = tuple(one.__name__ for one in type(error).__mro__[1:-1])
    return Failure(type(error).__name__, bases, text, line, limit_of(error))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


class _Recording:
    """The recorder around the steps of a job."""

    def __init__(self, engine: str) -> None:
        from whygrad.engines.choice import Engine, session
        from whygrad.execute.sites import SiteTable

        self._events = _Events()
        self._table = SiteTable()
        self._session = session(Engine(engine), self._events, self._table, "full")
        self._engine = engine
        self._is_started = False

    def compiled(self, source: str, path: str) -> types.CodeType:
        from whygrad.execute.instrument import instrument

        code = instrument(source, path, self._table, self._session.taps).instrumented
        if not self._is_started:
            self._is_started = True
            self._session.start()
        return code

    def finish(self, error: BaseException | None) -> tuple[Any, bytes]:
        """End the ledger; itself, and its lines."""
        from whygrad import __version__
        from whygrad.ledger import SCHEMA, Ledger
        from whygrad.ledger.events import Header

        raised = error if isinstance(error, Exception) else None
        if self._is_started:
            self._session.finish(*(("returned", 0) if raised is None else ("exception", 1)), raised)
        header = Header(whygrad=__version__, schema=SCHEMA, program="program.py", engine=self._engine, depth="full")
        lines = msgspec.json.Encoder().encode_lines([header, *self._events])
        return Ledger(header, self._events), lines


class _Events(list[Any]):
    write = list.append
