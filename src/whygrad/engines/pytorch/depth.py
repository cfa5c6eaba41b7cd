"""How closely to look: everything the first few times a thing happens, counters and samples afterwards.

A *thing* is a module call with these shapes in this mode, a backward from this line, a step of this optimizer.
While recording is light its steps are folded into one `StepsFolded` event for each stretch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from whygrad.engines.book import Book
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.tensors import Known, Tensors
from whygrad.ledger.events import BufferFold, DepthChanged, StepsFolded, TensorId
from whygrad.ledger.values import Number, as_float, number

FULL_TIMES = 5
"""A thing is recorded fully the first five times."""

REPEATS = 64
"""What recurs this often within one step (a cell called for each time step) counts as one occurrence."""

PATIENCE = 3
"""After something new, this many known things may follow before the step counts as over."""

FLUSH_EVERY = 1000
SAMPLE_EVERY = 100


class BackwardThing:
    """Passes that are alike: from one site, and alike in what came before. `leaves` are those that they write to."""

    __slots__ = ("leaves", "site")

    def __init__(self, site: int | None) -> None:
        self.site = site
        self.leaves: tuple[TensorId, ...] | None = None


class Depth:
    """Decides between `full` and `light`. `policy` is `auto`, `full` or `light`."""

    def __init__(self, policy: str, book: Book, fold: Fold, switched: Callable[[bool], None]) -> None:
        self.policy = policy
        self.full = policy != "light"
        self.book = book
        self.fold = fold
        self._switched = switched
        self._counts: dict[Hashable, tuple[int, int, int]] = {}
        self._patience = PATIENCE

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
        if times <= FULL_TIMES:
            self._patience = PATIENCE
            if not self.full:
                self._go(True, why)
        elif self.full:
            self._patience -= 1
            if self._patience <= 0:
                self._go(False, f"the same has been seen {FULL_TIMES} times")
        return self.full

    def step_over(self) -> None:
        """An optimizer has stepped: what is new in this step was seen."""
        self._patience = min(self._patience, 1)

    def _go(self, full: bool, why: str) -> None:
        if full:
            self.fold.flush()
        self.full = full
        self.book.write(DepthChanged, depth="full" if full else "light", why=why)
        self._switched(full)


class Range(msgspec.Struct, eq=False):
    """First, last, lowest and highest of the numbers seen."""

    seen: int = 0
    first: float = math.nan
    last: float = math.nan
    low: float = math.inf
    high: float = -math.inf

    def add(self, value: float) -> None:
        if self.seen == 0:
            self.first = value
        self.seen += 1
        self.last = value
        self.low = value if not value >= self.low else self.low
        self.high = value if not value <= self.high else self.high

    def spell(self) -> tuple[Number | None, ...]:
        if not self.seen:
            return None, None, None, None
        return number(self.first), number(self.last), number(self.low), number(self.high)


class Stretch(msgspec.Struct, eq=False):
    """What happened since the last flush."""

    first: int
    backwards: dict[BackwardThing, int] = msgspec.field(default_factory=dict)
    resets: dict[Hashable, int] = msgspec.field(default_factory=dict)
    steps: int = 0
    loss: Range = msgspec.field(default_factory=Range)
    norms: dict[TensorId, Range] = msgspec.field(default_factory=dict)


class Fold:
    """Counts and samples the steps that are recorded lightly."""

    def __init__(self, book: Book, tensors: Tensors, grads: Grads) -> None:
        self.book = book
        self.tensors = tensors
        self.grads = grads
        self.owned: dict[Hashable, Callable[[], list[Any]]] = {}
        self._stretch: Stretch | None = None
        self._filled: set[TensorId] = set()
        self._total = 0

    def backward(self, thing: BackwardThing, loss: float | None) -> None:
        stretch = self._now()
        stretch.backwards[thing] = stretch.backwards.get(thing, 0) + 1
        if loss is not None:
            stretch.loss.add(loss)

    def reset(self, owner: Hashable) -> None:
        """`owner` (an optimizer, a module, or one tensor's id) reset the buffers that it holds."""
        stretch = self._now()
        stretch.resets[owner] = stretch.resets.get(owner, 0) + 1

    def step(self) -> None:
        """An optimizer is about to step: look at the buffers now and then."""
        due = self.sample_due()
        self.count_step()
        if due:
            self.sample()

    def count_step(self) -> None:
        """An optimizer is about to step, and no sample is due."""
        self._now().steps += 1
        self._total += 1

    def sample_due(self) -> bool:
        total = self._total + 1
        return total & self._total == 0 or total % SAMPLE_EVERY == 0

    def flush_due(self) -> bool:
        return self._stretch is not None and self._stretch.steps >= FLUSH_EVERY

    def stepped(self) -> None:
        if self.flush_due():
            self.flush()

    def sample(self) -> None:
        stretch = self._now()
        for known, norm in self.grads.norms():
            stretch.norms.setdefault(known.id, Range()).add(as_float(norm))

    def flush(self) -> None:
        """Write the stretch, if anything happened in it."""
        stretch, self._stretch = self._stretch, None
        if stretch is None:
            return
        writes: dict[TensorId, int] = {}
        for thing, times in stretch.backwards.items():
            for leaf in thing.leaves or ():
                writes[leaf] = writes.get(leaf, 0) + times
        resets: dict[TensorId, int] = {}
        for owner, times in stretch.resets.items():
            for leaf in self._leaves(owner):
                resets[leaf] = resets.get(leaf, 0) + times
        for leaf, times in list(resets.items()):  # only what was written before can be reset
            possible = writes.get(leaf, 0) + (leaf in self._filled)
            if possible:
                resets[leaf] = min(times, possible)
            else:
                del resets[leaf]
        self._filled.update(writes)
        buffers = []
        for leaf in sorted({*writes, *resets, *stretch.norms}):
            norms = stretch.norms.get(leaf) or Range()
            buffers.append(BufferFold(leaf, writes.get(leaf, 0), resets.get(leaf, 0), norms.seen, *norms.spell()))
        loss = stretch.loss.spell()
        count = sum(stretch.backwards.values())
        site = next((thing.site for thing in stretch.backwards if thing.site is not None), None)
        last = self.book.step - 1 if stretch.steps else stretch.first + max(count, 1) - 1
        self.book.write(
            StepsFolded,
            site,
            first=stretch.first,
            last=max(last, stretch.first),
            backwards=count,
            optimizer_steps=stretch.steps,
            buffers=tuple(buffers),
            loss_first=loss[0],
            loss_last=loss[1],
            loss_low=loss[2],
            loss_high=loss[3],
        )

    def _leaves(self, owner: Hashable) -> list[TensorId]:
        parameters = self.owned.get(owner)
        if parameters is None:
            return [owner] if isinstance(owner, int) else []  # type: ignore[list-item]
        found: list[Known | None] = [self.tensors.find(tensor) for tensor in parameters()]
        return [known.id for known in found if known is not None]

    def _now(self) -> Stretch:
        if self._stretch is None:
            self._stretch = Stretch(self.book.step)
            self._filled.update(known.id for _, known in self.tensors.live_leaves() if known.grad_value is not None)
        return self._stretch
