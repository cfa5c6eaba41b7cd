"""Times the steps of a benchmark's loop without a line of its own in the loop.

The clocks are read where the loop asks for its next step, by iterators in C: they cost a recorded loop what they
cost a bare one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, repeat, starmap, tee
from time import perf_counter, thread_time

Tick = tuple[float, float]
"""Wall time and this thread's processor time, in seconds."""


class Clock:
    """Loop over `steps`, then `save`."""

    def __init__(self, steps: int) -> None:
        now, self._kept = tee(zip(starmap(perf_counter, repeat(())), starmap(thread_time, repeat(())), strict=False))
        self._count = steps
        self.steps: Iterator[Tick] = islice(now, steps)

    def save(self, path: str) -> None:
        """Write the times at which each step began, and the one at which the last was over."""
        ticks = list(islice(self._kept, self._count + 1))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(ticks, file)
