"""How a program ends: what the interpreter prints, which exit code or signal the process ends by."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal.signal turns a handler that is 0 into SIG_DFL
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

TERMINATED: int = 128 + signal.SIGTERM
INTERRUPTED: int = 128 + signal.SIGINT
"""Exit codes of processes that a signal ended, as a shell gives them."""


def exit_code(error: SystemExit) -> int:
    """The exit code that SystemExit stands for.

    >>> [exit_code(SystemExit(code)) for code in (None, 3, True, -1, 256, 2**70, "text", [])]
    [0, 3, 1, 255, 0, 255, 1, 1]
    """
    code = getattr(error, "code", error)
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    if not -(2**63) <= code < 2**63:
        code = -1
    return int(code) & 0xFF if os.name == "posix" else int(code)


def flush(*names: str) -> None:
    """Flush standard streams; one that is closed, replaced or gone keeps its troubles for the interpreter's end."""
    for name in names:
        with suppress(Exception):
            getattr(sys, name).flush()


def show(error: BaseException) -> None:
    """What the interpreter does with an exception that nothing caught. A SystemExit of a hook is passed on."""
    kind, trace = type(error), error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error  # type: ignore[assignment]
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if not hasattr(sys, "excepthook"):
        _say("sys.excepthook is missing\n")
        sys.__excepthook__(kind, error, trace)
        return
    try:
        sys.excepthook(kind, error, trace)
    except SystemExit:
        raise
    except BaseException as second:
        flush("stdout")
        _say("Error in sys.excepthook:\n")
        trace_of_second = second.__traceback__.tb_next if second.__traceback__ is not None else None  # without us
        second.__traceback__ = trace_of_second
        sys.__excepthook__(type(second), second, trace_of_second)
        _say("\nOriginal exception was:\n")
        sys.__excepthook__(kind, error, trace)


def _say(text: str) -> None:
    with suppress(Exception):
        sys.stderr.write(text)


def end_as_interrupted() -> None:
    """Let the process end by SIGINT after the interpreter has shut down.

    CPython does so when the last source that it compiled and ran for itself was left by KeyboardInterrupt.
    """
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt", {})


class Termination(int):
    """A SIGTERM handler that looks like the default action, which it takes after `last_words`.

    It is 0, as `signal.SIG_DFL` is, so that `signal.getsignal(SIGTERM)` tells the program the truth: that it has
    not set a handler.
    """

    _last_words: Callable[[], None]

    @classmethod
    def install(cls, last_words: Callable[[], None]) -> None:
        """In the main thread, unless the program's parent wanted SIGTERM ignored."""
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return
        handler = cls(signal.SIG_DFL)
        handler._last_words = last_words
        signal.signal(signal.SIGTERM, handler)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=handler.remove)

    def remove(self) -> None:
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def __call__(self, number: int, _: FrameType | None) -> None:
        try:
            self._last_words()
        finally:
            self.remove()
            os.kill(os.getpid(), number)
