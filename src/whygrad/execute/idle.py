"""The taps where nothing is recorded.

A function of a recorded program may travel: cloudpickle sends its code to another process by value. The taps in it
travel as names of this module, and say nothing there. During a recording the names stand for the live taps.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def value(site: int, value: T, *names: Any) -> T:  # noqa: ARG001
    return value


def bound(site: int, value: T, *names: Any) -> T:  # noqa: ARG001
    return value


def look(site: int, value: T) -> T:  # noqa: ARG001
    return value


def names(site: int, *values: Any) -> None: ...


def base(site: int, value: T) -> T:  # noqa: ARG001
    return value


def wrote(site: int, value: Any = None, *names: Any) -> Any:  # noqa: ARG001
    return value


def updated(site: int, value: Any, *names: Any) -> None: ...


def side(site: int, index: int, value: T) -> T:  # noqa: ARG001
    return value


def check(site: int, held: bool) -> bool:  # noqa: ARG001
    return held


def caught(site: int) -> None: ...


_IDLE = {name: tap for name, tap in globals().items() if not name.startswith("_") and callable(tap) and tap is not T}


def stand_for(taps: dict[str, Any]) -> None:
    """Let the names of this module mean the live taps, which pickle as these names from here on."""
    for name, tap in taps.items():
        tap.__module__, tap.__qualname__ = __name__, name
        globals()[name] = tap


def restore() -> None:
    """The recording is over."""
    globals().update(_IDLE)
