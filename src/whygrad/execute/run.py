"""Runs a program in this process as `python program` would, and tells when and how it ended.

The order is the interpreter's: the program, its threads, its exit handlers; then `finish`, then the process ends
by the program's own exit code or signal.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import repeat
from types import CodeType, ModuleType
from typing import NoReturn

import msgspec

from whygrad.errors import BadInput, WhygradError
from whygrad.execute import endings, recursion
from whygrad.execute.bottom import LostError, perform
from whygrad.execute.heap import let_rest
from whygrad.execute.imports import Lost, OwnFiles, OwnImports, Transform
from whygrad.execute.program import Cell, Kind, Program
from whygrad.execute.stage import Stage, forget_file, here


class Outcome(msgspec.Struct, frozen=True):
    """How a program ended.

    `how` is `returned`, `exit`, `exception`, `interrupted` or `terminated`; `exit_code` is as a shell gives it.
    `error` is what the program raised and nothing caught (none for SystemExit), with its traceback.
    """

    how: str
    exit_code: int
    error: BaseException | None = None


Finish = Callable[[Outcome], int | None]
"""What is done when the program is over; it may give an exit code to end with in place of a 0 of the program's."""


def execute(
    program: Program,
    *,
    finish: Finish,
    lost: Lost,
    begin: Callable[[], None] | None = None,
    transform: Transform | None = None,
) -> NoReturn:
    """Run `program` as `__main__`, from the bottom of the stack: let the exception that this raises pass.

    Its source, and that of the user's own modules that it imports, is compiled by `transform(source, path)`.
    What could not be goes to `lost(what, why)` and runs as Python compiles it. `begin()` is called once the program
    is compiled, and `finish(outcome)` when it is over, in this process and not in its forks. A program that is not
    Python raises `BadInput`, and nothing has happened.
    """
    losses: list[tuple[str, str]] = []
    codes = [_compiled(cell, transform, lambda what, why: losses.append((what, why))) for cell in program.cells]
    if begin is not None:
        begin()
    for what, why in losses:
        lost(what, why)
    run = _Run(program, codes, finish)
    if transform is not None:
        ready = {cell.path: code for cell, code in zip(program.cells, codes, strict=True)} if program.module else {}
        run.imports = OwnImports(transform, lost, OwnFiles((program.search or here(), here())), ready)
    atexit.register(run.finish)
    perform(run)


def _compiled(cell: Cell, transform: Transform | None, lost: Lost) -> CodeType:
    if transform is None:
        return _plainly(cell)
    try:
        return transform(cell.source, cell.path)
    except Exception as error:
        with warnings.catch_warnings(record=True):  # the transform has shown them; asked-for errors stay errors
            code = _plainly(cell)  # raises where the fault is the program's
        lost(cell.path, f"it could not be prepared: {type(error).__name__}: {error}")
        return code


def _plainly(cell: Cell) -> CodeType:
    try:
        return compile(cell.source, cell.path, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        text = f": {error.text.strip()}" if error.text and error.text.strip() else ""
        raise BadInput(f"{_from_here(cell.path)}{line}: {type(error).__name__}: {error.msg}{text}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise BadInput(f"{_from_here(cell.path)}: cannot be compiled: {error or type(error).__name__}.") from None


def _from_here(path: str) -> str:
    return path.removeprefix(os.path.join(here(), ""))


def _show_in_tracebacks(program: Program) -> None:
    """Source that is in no file of its own, where tracebacks look for it."""
    import linecache

    for cell in program.cells:
        source = cell.source if isinstance(cell.source, str) else cell.source.decode()
        linecache.cache[cell.path] = (len(source), None, source.splitlines(keepends=True), cell.path)


class _Run:
    """One run of a program, from its first line to the report."""

    def __init__(self, program: Program, codes: list[CodeType], finish: Finish) -> None:
        self.imports: OwnImports | None = None
        self._program = program
        self._codes = codes
        self._finish = finish
        self._stage = Stage(program)
        self._main: ModuleType | None = None
        self._outcome: Outcome | None = None
        self._process = os.getpid()
        self._is_finished = False
        self._was_early = False

    def before(self) -> Callable[[], object]:
        main = self._main = self._stage.set()
        if self.imports is not None:
            self.imports.install()
        endings.Termination.install(self._terminated)
        codes, self._codes = self._codes, []
        calls = recursion.CALLS.get(sys.version_info[:2], 0)
        if self._program.module:
            import runpy

            recursion.hide(max(calls - 1, 0))

            start = runpy._run_module_as_main  # type: ignore[attr-defined]  # what the interpreter itself calls
            return partial(start, self._program.module, self._program.kind is Kind.MODULE)
        recursion.hide(calls)
        if self._program.kind is Kind.CODE and sys.version_info >= (3, 13):
            _show_in_tracebacks(self._program)
        if self._program.kind is not Kind.NOTEBOOK:
            return partial(exec, codes[0], vars(main))
        _show_in_tracebacks(self._program)
        return partial(list, map(exec, codes, repeat(vars(main))))

    def after(self, error: BaseException | None) -> None:
        main, self._main = self._main, None
        if not self._program.module and self._program.kind is not Kind.CODE:
            endings.flush("stderr", "stdout")
        if isinstance(error, SystemExit):
            self._ended(Outcome("exit", endings.exit_code(error)))
            try:
                raise error
            finally:
                del error  # else its traceback would keep it, and the program's frames, until the end
        if isinstance(error, KeyboardInterrupt):
            ends_by_signal = type(error) is KeyboardInterrupt
            self._ended(Outcome("interrupted", endings.INTERRUPTED if ends_by_signal else 1, error))
        elif error is not None:
            self._ended(Outcome("exception", 1, None if isinstance(error, LostError) else error))
        else:
            self._ended(Outcome("returned", 0))
        if error is not None and not isinstance(error, LostError):
            self._show(error)
        if main is not None and self._program.kind in (Kind.SCRIPT, Kind.STDIN):
            forget_file(main)
        if error is None:
            raise SystemExit
        if type(error) is KeyboardInterrupt:
            endings.end_as_interrupted()

    def _show(self, error: BaseException) -> None:
        if self._program.kind is Kind.NOTEBOOK and sys.excepthook is sys.__excepthook__:
            import traceback

            sys.excepthook = traceback.print_exception  # the built-in one reads no source but in files
        try:
            endings.show(error)
        except SystemExit as instead:  # of the program's own excepthook
            self._outcome = Outcome("exception", endings.exit_code(instead), error)
            raise

    def _ended(self, outcome: Outcome) -> None:
        self._outcome = outcome
        if self._was_early:
            atexit.register(self.finish)

    def _terminated(self) -> None:
        self._outcome = Outcome("terminated", endings.TERMINATED)
        self.finish()

    def finish(self) -> None:
        """The last exit handler, as it was registered first."""
        if os.getpid() != self._process or self._is_finished:
            return
        if self._outcome is None:  # the program called the exit handlers itself, and goes on
            self._was_early = True
            return
        self._is_finished = True
        outcome, self._outcome = self._outcome, None
        endings.flush("stdout", "stderr")
        with self._stage.ours_again():
            code = _call(self._finish, outcome)
        if outcome.exit_code == endings.INTERRUPTED and outcome.how == "interrupted":
            endings.end_as_interrupted()
        if code and not outcome.exit_code:
            endings.flush("stdout", "stderr")
            os._exit(code)


def _call(finish: Finish, outcome: Outcome) -> int | None:
    """Report. The program is over, so no fault of ours may change how it ended."""
    let_rest()
    try:
        return finish(outcome)
    except BrokenPipeError:
        _leave_pipe()
    except KeyboardInterrupt:
        _complain("the report was interrupted")
    except WhygradError as error:
        _complain(str(error))
    except BaseException as error:
        if os.environ.get("WHYGRAD_DEBUG"):
            sys.__excepthook__(type(error), error, error.__traceback__)
        _complain(f"no report: a defect in whygrad: {type(error).__name__}: {error}")
    return None


def _complain(text: str) -> None:
    with suppress(Exception):
        print(f"whygrad: {text}", file=sys.__stderr__, flush=True)


def _leave_pipe() -> None:
    """The reader of our report went away; keep the interpreter from complaining about it at its end."""
    with suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
