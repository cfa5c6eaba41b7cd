"""PyTorch says nothing of overflow and 0/0, NumPy does: silence for this engine's operations, and for no one else's.

Asking at every operation would double its cost. So NumPy is told to *log* such events: it calls us when one happens,
and we look whose operation it was. The program's own NumPy code is warned as ever.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

_OURS = __name__.rpartition(".")[0]


class _Log:
    """Hears of floating-point events."""

    def write(self, message: str) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "numpy":
            frame = frame.f_back
        if frame is None or str(frame.f_globals.get("__name__", "")).startswith(_OURS):
            return
        warnings.warn(message.removeprefix("Warning: ").strip(), RuntimeWarning, stacklevel=2)


_LOG = _Log()


def be_quiet() -> Callable[[], None]:
    """From here on; the result puts things back."""
    before, call = np.geterr(), np.geterrcall()
    listens: Any = {kind: "log" if way == "warn" else way for kind, way in before.items()}
    np.seterr(**listens)
    np.seterrcall(_LOG)

    def restore() -> None:
        np.seterr(**before)
        np.seterrcall(call)

    return restore
