"""How closely to look: everything the first few times a thing happens, counters and samples afterwards.

A *thing* is a module call with these shapes in this mode, a backward from this line, a step of this optimizer.
While recording is light its steps are folded into one `StepsFolded` event for each stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from whygrad.engines.book import Book
from whygrad.engines.pytorch.fold import Fold
from whygrad.ledger.events import DepthChanged

FULL_TIMES = 5
"""A thing is recorded fully the first five times."""

REPEATS = 64
"""What recurs this often within one step (a cell called for each time step) counts as one occurrence."""

PATIENCE = 3
"""After something new, this many known things may follow before the step counts as over."""


class Depth:
    """Decides between `full` and `light`. `policy` is `auto`, `full` or `light`."""

    def __init__(
        self,
        policy: str,
        book: Book,
        fold: Fold,
        switched: Callable[[bool], None],
        quietly: Callable[..., None],
    ) -> None:
        self.policy = policy
        self.full = policy != "light"
        self.book = book
        self.fold = fold
        self._switched = switched
        self._quietly = quietly
        self._counts: dict[Hashable, tuple[int, int, int]] = {}
        self._patience = PATIENCE
        self._young: dict[Hashable, int] = {}

    def happening(self, thing: Hashable, why: str) -> bool:
        """`thing` is about to happen; returns whether to look at it fully."""
        if self.policy != "auto":
            return self.full
        times, step, repeats = self._counts.get(thing, (0, -1, 0))
        if times >= FULL_TIMES and not self.full:
            return False
        if step == self.book.step > 0 and repeats < REPEATS:
            self._counts[thing] = (times, step, repeats + 1)
            return self.full
        times += 1
        self._counts[thing] = (times, self.book.step, 0)
        if times < FULL_TIMES:
            self._young[thing] = self.book.step
        else:
            self._young.pop(thing, None)
        if times <= FULL_TIMES:
            self._patience = PATIENCE
            if not self.full:
                self._quietly("a change of depth", self._go, True, why)
        elif self.full:
            self._patience -= 1
            if self._patience <= 0 and not self._is_young():
                self._quietly("a change of depth", self._go, False, f"the same has been seen {FULL_TIMES} times")
        return self.full

    def _is_young(self) -> bool:
        """Whether something new is likely to come again in this step: it came in this one or the last.

        Without it, each of its first times would wake the recording in the middle of a step.
        """
        now = self.book.step
        self._young = {thing: step for thing, step in self._young.items() if 0 < now <= step + 1}
        return bool(self._young)

    def step_over(self) -> None:
        """An optimizer has stepped: what is new in this step was seen."""
        self._patience = min(self._patience, 1)

    def _go(self, full: bool, why: str) -> None:
        if full:
            self.fold.flush()
        self.full = full
        self.book.write(DepthChanged, depth="full" if full else "light", why=why)
        self._switched(full)
