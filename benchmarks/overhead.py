"""What recording costs a training loop, as ratios to the bare loop, beside other ways of looking.

Each round runs every way once, in a process of its own with one thread, one after the other. A step's time is the
processor time of its thread. From each run the median step is taken, and of the rounds the lowest median: what
others do on the machine adds time and never takes any away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.children import Steps, timed
from benchmarks.table import NONE, Table, between, milliseconds, ratio

ROUNDS = 5
WARM_UP = 20
"""Steps that are not looked at: PyTorch's own first ones, and those that `auto` records fully."""

BARE = "bare"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop to be measured, and what is allowed (a ratio to the bare loop) for some of the ways."""

    title: str
    program: str
    steps: int
    long: int
    """The number of steps over which the first full steps of `auto` are spread."""
    targets: dict[str, str]


LOOPS = (
    Loop(
        "A perceptron (784-256-10, batches of 64, SGD)", "mlp.py", 200, 1000,
        {"full": "1.6", "light": "1.03", "auto, all 1,000 steps": "1.05"},
    ),
    Loop(
        "A small convolutional net (batches of 32, SGD)", "conv.py", 60, 60,
        {"full": "1.1", "light": "not measurable"},
    ),
)  # fmt: skip

TINY = Loop("The perceptron with next to nothing to compute (8-4-10, batches of 2)", "tiny.py", 500, 500, {})


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running a loop: by `whygrad run` at a depth, or with a function of `programs/ways.py` around it.

    `needs` is the package without which it cannot be measured.
    """

    name: str
    depth: str = ""
    look: str = ""
    needs: str = ""

    @property
    def is_installed(self) -> bool:
        return not self.needs or find_spec(self.needs) is not None


OURS = tuple(Way(depth, depth=depth) for depth in ("full", "light", "auto"))
OTHERS = (
    Way("hooks after accumulation", look="accumulation_hooks"),
    Way("hooks on saved tensors", look="saved_tensor_hooks"),
    Way("sys.settrace, own lines", look="line_tracing"),
    Way("TorchFunctionMode with line", look="function_mode"),
    Way("full backward hooks", look="backward_hooks"),
    Way("TorchDispatchMode", look="dispatch_mode"),
    Way("anomaly mode", look="anomaly_mode"),
    Way("wandb.watch, every step", look="wandb_watch", needs="wandb"),
    Way("TorchLens, every step", look="torchlens_trace", needs="torchlens"),
)


def ask(rounds: int = ROUNDS) -> Iterator[Table]:
    for loop in LOOPS:
        yield _measured(loop, rounds)
    yield _added(rounds)


def _measured(loop: Loop, rounds: int) -> Table:
    others = [way for way in OTHERS if way.is_installed]
    runs = _runs(loop, (Way(BARE), *OURS, *others), rounds)

    def row(name: str, way: str, cost: Callable[[Steps], float]) -> list[str]:
        return _row(loop, name, [cost(steps) for steps in runs[way]], [cost(steps) for steps in runs[BARE]])

    rows = [
        row(BARE, BARE, _later),
        row("full", "full", _later),
        row("light", "light", _later),
        row(f"auto, all {loop.long:,} steps", "auto", Steps.mean_s),
        row("auto, a later step", "auto", _later),
        *(row(way.name, way.name, _later) for way in others),
        *([way.name, NONE, NONE, NONE, "not installed"] for way in OTHERS if not way.is_installed),
    ]
    notes = (f"{rounds} rounds. Spread: the lowest and the highest ratio of a single round.",)
    return Table(loop.title, ("way", "ms a step", "ratio", "spread", "target: at most"), rows, notes)


def _runs(loop: Loop, ways: Sequence[Way], rounds: int) -> dict[str, list[Steps]]:
    """By way, the steps of each round."""
    runs: dict[str, list[Steps]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            steps = loop.long if way.name in (BARE, "auto") else loop.steps
            runs[way.name].append(timed(loop.program, steps, depth=way.depth, extra=way.look))
    return runs


def _added(rounds: int) -> Table:
    """What is added to a step hardly depends on its size, and is seen best where there is little else."""
    runs = _runs(TINY, (Way(BARE), *OURS), rounds)
    bare = [_later(steps) for steps in runs[BARE]]
    rows = []
    for name, shown in ((BARE, BARE), ("full", "full"), ("light", "light"), ("auto", "auto, a later step")):
        here = [_later(steps) for steps in runs[name]]
        spread = [f"{(most - min(bare)) * 1e6:.0f}" for most in (min(here), max(here))]
        rows.append([
            shown,
            f"{min(here) * 1e6:.0f}",
            NONE if name == BARE else spread[0],
            NONE if name == BARE else " to ".join(spread),
        ])  # fmt: skip
    return Table(TINY.title, ("way", "µs a step", "added, µs", "spread"), rows, (f"{rounds} rounds.",))


def _later(steps: Steps) -> float:
    return steps.median_s(WARM_UP)


def _row(loop: Loop, name: str, here: list[float], bare: list[float]) -> list[str]:
    spread = [a / b for a, b in zip(here, bare, strict=True)]
    return [
        name,
        milliseconds(min(here)),
        ratio(min(here) / min(bare)),
        NONE if name == BARE else between(spread),
        loop.targets.get(name, ""),
    ]
