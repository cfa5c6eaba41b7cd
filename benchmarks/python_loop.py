"""The worst case: a hot loop of plain Python, with calls, arithmetic and subscripts, and no tensor in it.

A tap runs after each expression that could give a tensor. In a training loop that is nothing beside the operations;
where there are no operations it is most of the work.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.children import timed
from benchmarks.table import NONE, Table, between, milliseconds, ratio

ROUNDS = 5
TIMES = 60
WARM_UP = 10
PROGRAM = "edit_distance.py"

CASES = (
    ("bare", "", ""),
    ("recorded, torch not imported", "auto", ""),
    ("auto, torch imported", "auto", "torch"),
    ("full, torch imported", "full", "torch"),
    ("light, torch imported", "light", "torch"),
)


def ask(rounds: int = ROUNDS) -> Iterator[Table]:
    found: dict[str, list[float]] = {name: [] for name, _, _ in CASES}
    for _ in range(rounds):
        for name, depth, imported in CASES:
            found[name].append(timed(PROGRAM, TIMES, depth=depth, extra=imported).median_s(WARM_UP))
    bare = found["bare"]
    rows = []
    for name, _, _ in CASES:
        spread = [here / there for here, there in zip(found[name], bare, strict=True)]
        rows.append([
            name,
            milliseconds(min(found[name])),
            ratio(min(found[name]) / min(bare)),
            NONE if name == "bare" else between(spread),
        ])  # fmt: skip
    yield Table("The edit distance of two words, 30 by 31 cells", ("run", "ms", "ratio", "spread"), rows)
