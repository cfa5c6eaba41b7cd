"""What recording costs a long loop in memory, and how large the evidence becomes.

The peak of resident memory over the whole process, report included, beside the bare program's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.children import PROGRAMS, WHYGRAD, run
from benchmarks.table import NONE, Table

STEPS = 10_000
MIB = 1 << 20


def ask() -> Iterator[Table]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        times, ledger = Path(folder, "times.json"), Path(folder, "run.jsonl")
        words = (PROGRAMS / "mlp.py", str(STEPS), times)
        bare = run(*words).peak_bytes
        rows.append(["bare", _mib(bare), NONE, "", NONE])
        for depth in ("auto", "light", "full"):
            used = run(*WHYGRAD, "run", "--quiet", "--depth", depth, "--force", "-o", ledger, *words).peak_bytes
            rows.append([depth, _mib(used), _mib(used - bare), "100", f"{ledger.stat().st_size / MIB:.2f}"])
    columns = ("depth", "peak, MiB", "above bare, MiB", "target: under", "ledger, MiB")
    yield Table(f"A perceptron, {STEPS:,} steps", columns, rows)


def _mib(size: int) -> str:
    return f"{size / MIB:.0f}"
