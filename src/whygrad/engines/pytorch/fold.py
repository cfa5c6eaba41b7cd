"""The steps that are recorded lightly: counted and sampled, and written as one `StepsFolded` event a stretch.

A stretch ends after `FLUSH_EVERY` steps, where recording is full again, and where the life of an optimizer or of a
net's parameters ends or begins, so that two nets are never counted as one.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import msgspec

from whygrad.engines.book import Book
from whygrad.engines.pytorch.aims import Aim, Aims, BackwardThing
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.objects import ByIdentity
from whygrad.engines.pytorch.tensors import Tensors
from whygrad.ledger.events import BufferFold, PassFold, StepsFolded, TensorId
from whygrad.ledger.values import Number, as_float, number

FLUSH_EVERY = 1000
SAMPLE_EVERY = 100

ENDINGS = 200
"""How many stretches may end early since an optimizer or a net came or went; later ones are counted on."""


PASSES_LIMIT = 16
"""Kinds of passes that are told apart within one stretch."""


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


class Passes(msgspec.Struct, eq=False):
    """How often a thing ran, how many of these passes are among the writes of its leaves already, and its losses."""

    times: int = 0
    told: int = 0
    loss: Range = msgspec.field(default_factory=Range)


class Owner:
    """What resets many buffers at once: an optimizer or a module. `ids` are those that it was seen to hold."""

    __slots__ = ("ids", "parameters")

    def __init__(self, parameters: Callable[[], list[Any]]) -> None:
        self.parameters = parameters
        self.ids: set[TensorId] = set()


class Stretch(msgspec.Struct, eq=False):
    """What happened since the last flush. Of leaves made anew in the place of others, `others` counts those before:
    (how many, with how many writes)."""

    first: int
    passes: dict[BackwardThing, Passes] = msgspec.field(default_factory=dict)
    writes: dict[TensorId | Aim, int] = msgspec.field(default_factory=dict)
    others: dict[TensorId | Aim, tuple[int, int]] = msgspec.field(default_factory=dict)
    resets: dict[TensorId | Aim, int] = msgspec.field(default_factory=dict)
    owners: dict[Owner, int] = msgspec.field(default_factory=dict)
    gone: set[Aim] = msgspec.field(default_factory=set)
    steps: int = 0
    norms: dict[TensorId, Range] = msgspec.field(default_factory=dict)


class Fold:
    """Counts and samples. `names` is called before a stretch is written: what got a name meanwhile is to be told."""

    def __init__(self, torch: Any, book: Book, tensors: Tensors, grads: Grads, names: Callable[[], None]) -> None:
        self.book = book
        self.tensors = tensors
        self.grads = grads
        self.aims = Aims(torch, tensors)
        self.finished: list[weakref.ref[Any]] = []
        self._names = names
        self._owners: ByIdentity[Owner] = ByIdentity()
        self._living: dict[int, weakref.ref[Any]] = {}
        self._stretch: Stretch | None = None
        self._filled: set[TensorId] = set()
        self._total = 0
        self._endings = 0

    # --- what happens -----------------------------------------------------------------------------

    def backward(self, thing: BackwardThing, loss: float | None) -> None:
        stretch = self._stretch or self._now()
        passes = stretch.passes.get(thing)
        if passes is None:
            passes = stretch.passes[thing] = Passes()
        passes.times += 1
        if loss is not None:
            passes.loss.add(loss)

    def aim(self, thing: BackwardThing, leaves: list[Any], root: Any) -> None:
        """A pass of `thing` that is about to run writes to `leaves`."""
        old = thing.aims or ()
        ended = bool(self.finished) or any(aim.is_parameter and aim.ref() is None for aim in old)
        self.finished.clear()
        if ended:
            self._end()
        else:
            self._settle(thing)
        self.aims.set(thing, leaves, root)
        if old and not ended and thing.aims is not None and len(old) == len(thing.aims):
            for before, now in zip(old, thing.aims, strict=True):
                if before is not now and before.ref() is None:
                    self._succeed(before, now)

    def reset(self, owner: Any, parameters: Callable[[Any], list[Any]]) -> None:
        """An optimizer or a module reset the buffers that it holds."""
        held = self._owners.get(owner)
        if held is None:
            ref = weakref.ref(owner)
            held = self._owners[owner] = Owner(lambda: [] if (known := ref()) is None else parameters(known))
        stretch = self._stretch or self._now()
        times = stretch.owners.get(held)
        if times is None:
            self._look(held)
        stretch.owners[held] = (times or 0) + 1

    def reset_leaf(self, tensor: Any) -> None:
        """The program reset one buffer by hand."""
        known = self.tensors.find(tensor)
        key = self.aims.pending(tensor) if known is None else known.id
        if key is not None:
            stretch = self._stretch or self._now()
            stretch.resets[key] = stretch.resets.get(key, 0) + 1

    def begins(self, optimizer: Any) -> None:
        """An optimizer was built: what follows is counted apart."""
        self._living[id(optimizer)] = weakref.ref(optimizer, self.finished.append)
        self._end()

    def step(self) -> None:
        """An optimizer is about to step: look at the buffers now and then."""
        due = self.sample_due()
        self.count_step()
        if due:
            self.sample()

    def count_step(self) -> None:
        """An optimizer is about to step, and no sample is due."""
        (self._stretch or self._now()).steps += 1
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

    # --- the end of a stretch ---------------------------------------------------------------------

    def flush(self) -> None:
        """Write the stretch, if anything happened in it."""
        self._names()
        stretch = self._stretch
        if stretch is None:
            return
        for thing in stretch.passes:
            self._settle(thing)
        self._stretch = None
        writes, others = self._counted(stretch)
        resets = self._resets(stretch, writes)
        buffers = []
        for leaf in sorted({*writes, *resets, *stretch.norms, *others}):
            norms = stretch.norms.get(leaf) or Range()
            first, final, low, high = norms.spell()
            more = others.get(leaf, (0, 0))
            buffers.append(
                BufferFold(
                    leaf,
                    writes.get(leaf, 0),
                    resets.get(leaf, 0),
                    norms.seen,
                    first,
                    final,
                    low,
                    high,
                    more[0],
                    more[1],
                )
            )
        passes = list(stretch.passes.items())
        loss = passes[0][1].loss.spell() if passes else Range().spell()
        backwards = sum(counted.times for _, counted in passes)
        last = self.book.step - 1 if stretch.steps else stretch.first + max(backwards, 1) - 1
        self.book.write(
            StepsFolded,
            passes[0][0].site if passes else None,
            first=stretch.first,
            last=max(last, stretch.first),
            backwards=backwards,
            optimizer_steps=stretch.steps,
            buffers=tuple(buffers),
            loss_first=loss[0],
            loss_last=loss[1],
            loss_low=loss[2],
            loss_high=loss[3],
            passes=tuple(self._pass_fold(*each) for each in passes[:PASSES_LIMIT]) if len(passes) > 1 else (),
        )

    def _end(self) -> None:
        """End a stretch early, unless too many ended so or it holds nothing yet."""
        if self._stretch is not None and self._stretch.passes and self._endings < ENDINGS:
            self._endings += 1
            self.flush()

    def _settle(self, thing: BackwardThing) -> None:
        """Count the passes of `thing` since the last time as writes to the leaves that it aims at now."""
        passes = None if self._stretch is None else self._stretch.passes.get(thing)
        if passes is None or self._stretch is None:
            return
        more, passes.told = passes.times - passes.told, passes.times
        if more:
            writes = self._stretch.writes
            for aim in thing.aims or ():
                writes[aim.key] = writes.get(aim.key, 0) + more

    def _succeed(self, before: Aim, now: Aim) -> None:
        """The leaf `now` was made anew in the place of `before`, which is gone, and which the ledger never met."""
        if before.id is not None:
            return
        stretch = self._now()
        count, writes = stretch.others.get(now.key, (0, 0))
        earlier, earlier_writes = stretch.others.pop(before, (0, 0))
        own = stretch.writes.pop(before, 0)
        counted = before in stretch.gone or not own
        stretch.gone.add(before)
        stretch.others[now.key] = count + earlier + (not counted), writes + earlier_writes + own

    def _look(self, owner: Owner) -> None:
        known = [self.tensors.find(tensor) for tensor in owner.parameters()]
        owner.ids.update(entry.id for entry in known if entry is not None)

    def _counted(self, stretch: Stretch) -> tuple[dict[TensorId, int], dict[TensorId, tuple[int, int]]]:
        """The writes of each leaf, and of those whose place it took, by the ledger's ids."""
        writes: dict[TensorId, int] = {}
        others: dict[TensorId, tuple[int, int]] = {}
        for key in {**stretch.writes, **stretch.others}:
            own = stretch.writes.get(key, 0)
            count, more = stretch.others.get(key, (0, 0))
            if isinstance(key, Aim):
                leaf = self.aims.meet(key)
                if leaf is None:
                    continue
                if key.id is None:  # gone before it was met: one of those that stood in that place
                    own, count, more = 0, count + 1, more + own
            else:
                leaf = key
            writes[leaf] = writes.get(leaf, 0) + own
            if count:
                told = others.get(leaf, (0, 0))
                others[leaf] = max(told[0], count), told[1] + more
        return writes, others

    def _resets(self, stretch: Stretch, writes: dict[TensorId, int]) -> dict[TensorId, int]:
        """The resets of each leaf. Only what was written before can be reset."""
        resets: dict[TensorId, int] = {}
        for owner, times in stretch.owners.items():
            self._look(owner)
            for leaf in owner.ids:
                resets[leaf] = resets.get(leaf, 0) + times
        for key, times in stretch.resets.items():
            if not isinstance(key, Aim):
                resets[key] = resets.get(key, 0) + times
            elif key.id is not None:
                resets[key.id] = resets.get(key.id, 0) + times
        for leaf, times in list(resets.items()):
            possible = writes.get(leaf, 0) + (leaf in self._filled)
            if possible:
                resets[leaf] = min(times, possible)
            else:
                del resets[leaf]
        self._filled.update(leaf for leaf, times in writes.items() if times)
        return resets

    def _pass_fold(self, thing: BackwardThing, passes: Passes) -> PassFold:
        site = None if thing.site is None else self.book.site(thing.site)
        return PassFold(site, passes.times, *passes.loss.spell())

    def _now(self) -> Stretch:
        if self._stretch is None:
            self._stretch = Stretch(self.book.step)
            self._filled.update(known.id for _, known in self.tensors.live_leaves() if known.grad_value is not None)
        return self._stretch
