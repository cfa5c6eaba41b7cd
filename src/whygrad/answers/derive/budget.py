"""How much work a derivation may do, counted and not measured."""

from __future__ import annotations

import msgspec

EVENT_WORK = 4
NODE_WORK = 4
REBUILD_WORK = 300
STEP_WORK = 60
"""What reading an event or a node, beginning a derivation, and rebuilding one operation cost."""


class Budget(msgspec.Struct):
    """How much work may still be done, in about microseconds; counted, so that a run is the same everywhere."""

    left: int

    def spend(self, work: int) -> None:
        self.left -= work
