"""Gives a program the depth of recursion that it has without us.

Up to Python 3.11 the calls from C that lead to the program count as depth. The limit is raised by their number,
and `sys.getrecursionlimit` and `sys.setrecursionlimit` speak of the limit as the program knows it.
"""

from __future__ import annotations

import sys

CALLS = {(3, 10): 6, (3, 11): 5}
"""How deep `bottom` calls `exec`, for the versions that count calls from C."""


def hide(calls: int) -> None:
    """Leave `calls` levels of recursion out of every account."""
    if not calls:
        return
    get, set_ = sys.getrecursionlimit, sys.setrecursionlimit

    def getrecursionlimit() -> int:
        return get() - calls

    def setrecursionlimit(limit: int, /) -> None:
        set_(limit + calls if isinstance(limit, int) and 0 < limit < 2**31 - 1 - calls else limit)

    set_(get() + calls)
    sys.getrecursionlimit = getrecursionlimit
    sys.setrecursionlimit = setrecursionlimit
