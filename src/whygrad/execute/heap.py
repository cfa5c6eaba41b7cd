"""The garbage collector, while we work in a program's process.

In a process that imported PyTorch one full collection takes 80 ms, and a report of 5 ms sets one off.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection starts inside, for work that allocates much and leaves no cycles: syntax trees, a report."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def let_rest() -> None:
    """No collection starts by itself from here on, for a process that is about to end.

    The interpreter's own at the very end still take place, as long as the collector is enabled. To freeze the heap
    would be no substitute: it changes the order in which the program's objects are finalised then.
    """
    gc.set_threshold(0)
