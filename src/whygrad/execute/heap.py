"""The garbage collector and a large heap of somebody else's."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_is_frozen = False


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Keep the garbage collector away from what is there already.

    In a process that imported PyTorch one full collection takes 80 ms, and a report of 5 ms sets one off. What the
    program left to the collector it finds afterwards, as it would have.
    """
    global _is_frozen
    if _is_frozen or gc.get_freeze_count():  # by us or by the program; counting takes as long as there are objects
        yield
        return
    gc.freeze()
    _is_frozen = True
    try:
        yield
    finally:
        _is_frozen = False
        gc.unfreeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection starts inside: for work that allocates much, such as syntax trees, and leaves little behind."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
