"""What `whygrad run` costs a short program, and where the time goes; and what `import whygrad` costs."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from benchmarks.children import EXAMPLE, WHYGRAD, Used, output, run
from benchmarks.table import NONE, Table, milliseconds, ratio

ROUNDS = 9
RECORDED = (*WHYGRAD, "run", str(EXAMPLE))

IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
"""A line of `python -X importtime`: the module's own microseconds and its name."""

PHASES_OF_A_RUN = ("-m", "benchmarks.phases")


def ask(rounds: int = ROUNDS) -> Iterator[Table]:
    yield _compared(
        f"`whygrad run {EXAMPLE}` beside `python {EXAMPLE}`",
        {"python": (str(EXAMPLE),), "whygrad run": RECORDED},
        rounds,
        target="ratio 1.15",
    )
    yield _breakdown()
    yield _compared(
        "`import whygrad` beside an empty interpreter",
        {"python -c pass": ("-c", "pass"), "python -c 'import whygrad'": ("-c", "import whygrad")},
        2 * rounds,
        target="60 ms more",
    )


def _compared(title: str, commands: Mapping[str, Sequence[str]], rounds: int, target: str) -> Table:
    """Two commands in turn; the first is what the second is compared with."""
    runs: dict[str, list[Used]] = {name: [] for name in commands}
    for words in commands.values():
        run(*words)  # compiles what is not compiled yet
    for _ in range(rounds):
        for name, words in commands.items():
            runs[name].append(run(*words))
    bare, ours = runs.values()
    rows = []
    clocks: tuple[tuple[str, Callable[[Used], float]], ...] = (
        ("processor", lambda used: used.processor_s),
        ("wall", lambda used: used.wall_s),
    )
    for clock, of in clocks:
        for how, pick in (("median", median), ("lowest", min)):
            here, there = pick([of(used) for used in ours]), pick([of(used) for used in bare])
            rows.append([
                f"{clock} time, {how}", milliseconds(there), milliseconds(here), milliseconds(here - there),
                ratio(here / there), target,
            ])  # fmt: skip
    columns = ("", *(f"{name}, ms" for name in commands), "more, ms", "ratio", "target: at most")
    return Table(title, columns, rows, (f"{rounds} rounds, the two in turn.",))


def _breakdown() -> Table:
    times = 5
    found = [_imports() for _ in range(times)]
    rows = [
        [f"import {group}", str(max(count for count, _ in cells)), milliseconds(min(took for _, took in cells))]
        for group in found[0]
        for cells in [[each.get(group, (0, 0.0)) for each in found]]
    ]
    phases = [json.loads(output(*PHASES_OF_A_RUN, *RECORDED[2:]).splitlines()[-1]) for _ in range(times)]
    rows += [[name, NONE, milliseconds(min(each[name] for each in phases))] for name in phases[0]]
    rows.sort(key=lambda row: -float(row[2]))
    title = f"Where the time goes: `whygrad run {EXAMPLE}`"
    return Table(
        title,
        ("part", "modules", "ms"),
        rows,
        ("Each the lowest of five runs; imports that the program makes itself are left out.",),
    )


def _imports() -> dict[str, tuple[int, float]]:
    """By package, how many modules only the recorded run imports, and how long they themselves take, in seconds."""
    bare, ours = (
        {name: int(us) for us, name in IMPORT.findall(output("-X", "importtime", *words))}
        for words in ((str(EXAMPLE),), RECORDED)
    )
    groups: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for name, us in ours.items():
        if name not in bare:
            parts = name.split(".")
            group = ".".join(parts[:2]) if parts[0] == "whygrad" and len(parts) > 2 else parts[0]
            group = group if group.startswith(("whygrad", "rich", "click", "msgspec")) else "others"
            count, took = groups[group]
            groups[group] = count + 1, took + us / 1e6
    return dict(groups)
