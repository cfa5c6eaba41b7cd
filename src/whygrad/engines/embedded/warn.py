"""Warnings, attributed to the user's line as PyTorch's are."""

from __future__ import annotations

import os
import sys
import traceback
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def user_stack() -> list[str]:
    """The call stack without this engine's frames, formatted."""
    return traceback.format_list([f for f in traceback.extract_stack() if not f.filename.startswith(_HERE)])


_said: set[str] = set()


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost frame that is not this engine's."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


def warn_once(text: str, category: type[Warning] = UserWarning) -> None:
    """PyTorch says some things once in a process."""
    if text not in _said:
        _said.add(text)
        warn(text, category)
