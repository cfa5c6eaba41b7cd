"""Keeps account of one grad buffer while the ledger is read: its life, what was counted, what it holds now."""

from __future__ import annotations

import math
from collections.abc import Hashable

from whygrad.ledger import events
from whygrad.ledger.events import BackwardId, TensorId
from whygrad.ledger.values import WHOLE_LIMIT, Value
from whygrad.report.folding import Life, joined, spread
from whygrad.report.parts import Change, Light, Place, Spread, Tally


class Account:
    """One buffer: its life so far, and the counts of it."""

    def __init__(self, tensor: TensorId, title: str, described: events.Tensor | None) -> None:
        self.tensor = tensor
        self.title = title
        self.described = described
        self.life = Life()
        self.tallies: dict[Hashable, Tally] = {}
        self.light: Light | None = None
        self._left = Spread()
        self._settled = Spread()
        self._newest = Spread()
        self.value: Value | None = None
        self.oldest: BackwardId | None = None
        self.reset_by: tuple[str, Place | None] | None = None
        self.writes = 0
        self.resets = 0
        self.held = False
        self.returned = False
        self.nonfinite = False

    def add(self, change: Change, value: Value | None) -> None:
        """Tell a change, and count it; `value` is what the buffer holds from here on."""
        self.life.add(change)
        self.value = value
        self.held = self.held or change.kind in ("set", "added", "changed", "held")
        self.returned = self.returned or change.kind == "returned"
        if change.kind in ("set", "added") and change.after is not None:
            self._newest = _norm_of(change.after)
            self._left = spread((self._left, self._newest))
        elif change.kind in ("changed", "held") and change.after is not None:
            self._newest = _norm_of(change.after)
        elif change.kind == "reset":
            self._settle()
        cause = change.cause if change.backward is None else change.cause.partition(" #")[0]
        key = (change.kind, cause, change.place)
        known = self.tallies.get(key)
        self.tallies[key] = Tally(
            kind=change.kind,
            cause=cause,
            place=change.place,
            times=known.times + 1 if known else 1,
            since=change.since if known is None or known.since == change.since else None,
            first=known.first if known else change,
            last=change,
        )

    def norms(self) -> Spread:
        """What was there before each reset and at the end, or after every write where nothing was reset."""
        return spread((self._settled, self._newest)) if self.resets else self._left

    def _settle(self) -> None:
        self._settled = spread((self._settled, self._newest))
        self._newest = Spread()

    def zeros(self, before: Value | None) -> Value | None:
        """The buffer filled with zeros; like the tensor where nothing is known of what was there before."""
        known = before if before is not None else self.described
        if known is None:
            return None
        count = math.prod(known.shape)
        if count <= WHOLE_LIMIT:
            return Value(shape=known.shape, dtype=known.dtype, items=(0.0,) * count)
        return Value(shape=known.shape, dtype=known.dtype, norm=0.0, low=0.0, high=0.0)

    def add_light(self, light: Light) -> None:
        self.life.add(light)
        self.light = light if self.light is None else joined(self.light, light)
        self._settle()
        self._left = spread((self._left, light.norms))
        self._settled = spread((self._settled, light.norms))
        self.held = self.held or light.writes > 0


def _norm_of(value: Value) -> Spread:
    norm = value.magnitude
    return Spread(first=norm, last=norm, low=norm, high=norm)
