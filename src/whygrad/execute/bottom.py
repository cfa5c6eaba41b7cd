"""Calls a program with nothing below it on the stack, as the interpreter itself does.

A program can see what lies below it: `traceback.print_stack()`, PyTorch's anomaly mode, `inspect.stack()`,
`warnings.warn(stacklevel=...)`, `sys._getframe()`, and how deep it may recurse. Called from a function of ours it
would see us. So an exception leaves every frame of ours, down to the interpreter. The interpreter calls
`sys.excepthook` for it, from C and before it shuts anything down, and there the program runs:

1. To call the hook, C looks up its `__call__`, which is the property `attrgetter("_stand_in.after")`.
2. `_stand_in` gives an object that nothing else refers to; `attrgetter` takes `after` from it and drops it.
3. A weak reference watches that object. As it goes, C calls the program, from no Python frame at all. Whatever
   the program raises goes to `sys.unraisablehook`, where we pick it up.
4. C calls `after`, the hook's actual `__call__`, which ends the run: with SystemExit, which C turns into the exit
   code, or by returning, which is exit code 1 as after any exception.

(`__del__` would be the simpler trigger, but a class's instance is destroyed inside CPython's trashcan, which then
holds back deeply nested objects of the program's until the end.)
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from functools import partial
from operator import attrgetter, methodcaller
from typing import Any, NoReturn, Protocol


class Performance(Protocol):
    """A program to be called at the bottom of the stack, with what comes before and after."""

    def before(self) -> Callable[[], object]:
        """Set the stage; returns the program, a callable that is itself no Python function."""

    def after(self, error: BaseException | None) -> None:
        """The program returned or raised `error`. Raise SystemExit for an exit code; returning is exit code 1."""


class Descent(BaseException):
    """Leaves every frame of ours. Nothing catches it but the interpreter."""


class LostError(Exception):
    """Stands for what the program raised, where a hook of the program's own took it before we saw it."""


def perform(performance: Performance) -> NoReturn:
    """Run it once every caller is gone: the caller must let the exception that this raises pass."""
    hook = _Hook(performance, sys.excepthook)
    sys.excepthook = hook
    raise Descent


class _Watch(weakref.ref):  # type: ignore[type-arg]
    """Watches the stand-in; `run` is the program."""

    run: Any


class _Comparing:
    """Calls a function with what it is compared to.

    `[_Comparing(f)].count` is a built-in method that calls `f`: a program that looks at its unraisable hook finds
    something built in, as ever.
    """

    def __init__(self, function: Callable[[Any], None]) -> None:
        self._function = function

    def __eq__(self, other: object) -> bool:
        self._function(other)
        return False

    __hash__ = None  # type: ignore[assignment]


class _Hook:
    """The `sys.excepthook` in which the program runs."""

    def __init__(self, performance: Performance, excepthook: Callable[..., object]) -> None:
        self._performance = performance
        self._excepthook = excepthook
        self._unraisablehooks = sys.unraisablehook, sys.__unraisablehook__
        self._pick_up: Any = [_Comparing(self._unraisable)].count
        self._called_back = methodcaller("run")
        self._watch: _Watch | None = None
        self._returned = False
        self._error: BaseException | None = None

    __call__ = property(attrgetter("_stand_in.after"))

    @property
    def _stand_in(self) -> Any:
        """The object whose end calls the program."""
        sys.excepthook = self._excepthook
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):  # those of our own exception
            sys.__dict__.pop(name, None)
        program = self._performance.before()

        def stand_in() -> None: ...

        stand_in.after = self._after  # type: ignore[attr-defined]
        # list(map(...)): two calls in a row, without a Python frame
        steps = map(methodcaller("__call__"), (program, self._note_return))
        self._watch = _Watch(stand_in, self._called_back)
        self._watch.run = partial(list, steps)
        sys.unraisablehook = sys.__unraisablehook__ = self._pick_up
        return stand_in

    def _note_return(self) -> None:
        self._returned = True

    def _unraisable(self, unraisable: Any) -> None:
        """Pick up what the program raised; anything else that could not be raised goes where it would have gone."""
        told = unraisable.err_msg or ""
        if unraisable.object is self._called_back or (unraisable.object is None and "methodcaller('run')" in told):
            self._error = unraisable.exc_value
        else:
            self._unraisablehooks[0](unraisable)

    def _after(self, *_: object) -> None:
        if sys.unraisablehook is self._pick_up:
            sys.unraisablehook = self._unraisablehooks[0]
        sys.__unraisablehook__ = self._unraisablehooks[1]
        self._watch = None
        after = self._performance.after
        del self._performance
        after(self._taken())  # in no variable here: an exit's traceback must not keep itself alive

    def _taken(self) -> BaseException | None:
        error, self._error = self._error, None
        return LostError() if error is None and not self._returned else error
