"""Grad mode and inference mode: thread-local flags, and the context managers and decorators that set them."""

# mypy: no-warn-return-any
from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any


class Modes(threading.local):
    """The flags of one thread."""

    grad = True
    inference = False
    anomaly = False
    anomaly_check_nan = True
    multithreading = True
    autocast: Any = None
    """The type that products run in, inside `torch.autocast`."""
    cast_weights: Any = None


modes = Modes()


class _Scope:
    """A context manager that is a decorator too; generators keep the mode while they run, and only then."""

    _takes_no_argument = True

    def __new__(cls, function: Any = None, *args: Any, **kwargs: Any) -> Any:
        scope = object.__new__(cls)
        if cls._takes_no_argument and callable(function):  # `@torch.no_grad` without parentheses
            scope.__init__()  # type: ignore[misc]
            return scope(function)
        return scope

    def _clone(self) -> _Scope:
        return self.__class__()

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exc: Any) -> None:
        raise NotImplementedError

    def __call__(self, func: Any) -> Any:
        if inspect.isclass(func):
            import warnings

            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            func.__init__ = self(func.__init__)  # type: ignore[method-assign]
            return func
        if inspect.isgeneratorfunction(func):
            return self._wrap_generator(func)

        @functools.wraps(func)
        def decorate_context(*args: Any, **kwargs: Any) -> Any:
            with self._clone():
                return func(*args, **kwargs)

        return decorate_context

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            running = function(*args, **kwargs)
            with self._clone():
                try:
                    response = running.send(None)
                except StopIteration as stop:
                    return stop.value
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with self._clone():
                        running.close()
                    raise
                except BaseException as error:
                    with self._clone():
                        try:
                            response = running.throw(error)
                        except StopIteration as stop:
                            return stop.value
                else:
                    with self._clone():
                        try:
                            response = running.send(request)
                        except StopIteration as stop:
                            return stop.value

        return generator


class no_grad(_Scope):
    """No graph is built inside."""

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, function: Any = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = modes.grad
        modes.grad = False

    def __exit__(self, *exc: Any) -> None:
        modes.grad = self.prev


class enable_grad(_Scope):
    """Graphs are built inside, whatever is around (inference mode apart)."""

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, function: Any = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = modes.grad
        modes.grad = True

    def __exit__(self, *exc: Any) -> None:
        modes.grad = self.prev


class set_grad_enabled(_Scope):
    """Sets grad mode at once; as a context manager it is restored at the end."""

    __module__ = "torch.autograd.grad_mode"
    _takes_no_argument = False

    def __init__(self, mode: bool) -> None:
        self.prev = modes.grad
        self.mode = mode
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        modes.grad = mode

    def __call__(self, function: Any) -> Any:
        modes.grad = self.prev
        return super().__call__(function)

    def __enter__(self) -> None:
        modes.grad = self.mode

    def __exit__(self, *exc: Any) -> None:
        modes.grad = self.prev

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__

    def _clone(self) -> _Scope:
        return self.__class__(self.mode)


class inference_mode(_Scope):
    """Like `no_grad`, and tensors made inside carry no version counter and can never enter a graph."""

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, mode: Any = True) -> None:
        self.mode = True if callable(mode) else mode
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((modes.grad, modes.inference))
        modes.inference = self.mode
        modes.grad = not self.mode

    def __exit__(self, *exc: Any) -> None:
        modes.grad, modes.inference = self._before.pop()

    def _clone(self) -> _Scope:
        return self.__class__(self.mode)


def is_grad_enabled() -> bool:
    return modes.grad


def is_inference_mode_enabled() -> bool:
    return modes.inference


class set_multithreading_enabled(_Scope):
    """Accepted and remembered: this engine's backward runs on the calling thread either way."""

    _takes_no_argument = False

    def __init__(self, mode: bool) -> None:
        self.prev = modes.multithreading
        self.mode = modes.multithreading = mode

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: Any) -> None:
        modes.multithreading = self.prev

    def _clone(self) -> _Scope:
        return self.__class__(self.mode)
