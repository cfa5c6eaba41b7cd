"""What two runs have in numbers: the loss, the buffers, the parameters that moved, what was printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import msgspec

from whygrad.answers.fix.trial import Ending, Run
from whygrad.ledger import Ledger
from whygrad.ledger.events import BackwardBegan, GradReset, GradReturned, GradWritten, OptimizerStepped, StepsFolded
from whygrad.rules.numbers import say, say_number

LONGEST = 60
"""Characters of a printed line that are shown."""


class Difference(msgspec.Struct, frozen=True):
    """Something that both runs have, and is not the same."""

    what: str
    before: str
    after: str


def differences(before: Run, after: Run) -> tuple[Difference, ...]:
    """The numbers of the whole run that the change moved."""
    rows = [
        ("how the program ended", _ended(before.ending), _ended(after.ending)),
        ("the loss of the last backward", _last_loss(before.ledger), _last_loss(after.ledger)),
        ("parameters that optimizer steps moved", *_counts(_moved, before, after)),
        ("gradients with NaN or Inf", *_counts(_not_finite, before, after)),
    ]
    printed = _printed(before.output, after.output)
    return (*(Difference(*row) for row in rows if row[1] != row[2]), *printed)


def buffers(names: Iterable[str], before: Ledger, after: Ledger) -> tuple[Difference, ...]:
    """The grad buffers of these names at the end of the two runs, where they differ."""
    rows = ((f"{name}.grad at the end", _buffer(before, name), _buffer(after, name)) for name in sorted(set(names)))
    return tuple(Difference(what, old, new) for what, old, new in rows if old != new and "" not in (old, new))


def _ended(ending: Ending) -> str:
    if ending.how == "exception":
        return f"{ending.kind}: {_cut(next(iter(ending.text.splitlines()), ''))}"
    return "without an error" if ending.how == "returned" else f"{ending.how}, exit code {ending.exit_code}"


def _last_loss(ledger: Ledger) -> str:
    last = ""
    for event in ledger:
        if isinstance(event, BackwardBegan) and event.root_value is not None and event.root_value.scalar is not None:
            last = say_number(event.root_value.scalar)
        elif isinstance(event, StepsFolded) and event.loss_last is not None:
            last = say_number(event.loss_last)
    return last or "none"


def _counts(count: object, before: Run, after: Run) -> tuple[str, str]:
    assert callable(count)
    return str(count(before.ledger)), str(count(after.ledger))


def _moved(ledger: Ledger) -> int:
    moved = {update.tensor for step in ledger.of(OptimizerStepped) for update in step.updates if update.changed}
    return len(moved)


def _not_finite(ledger: Ledger) -> int:
    written = (event for event in ledger.of(GradWritten) if event.after.nan or event.after.inf)
    returned = (event for event in ledger.of(GradReturned) if event.value is not None and _is_bad(event))
    return sum(1 for _ in written) + sum(1 for _ in returned)


def _is_bad(event: GradReturned) -> bool:
    return event.value is not None and bool(event.value.nan or event.value.inf)


def _buffer(ledger: Ledger, name: str) -> str:
    """The buffer's last value; empty where the name means no tensor with a history."""
    for tensor in ledger.find(name)[:1]:
        last = ""
        for event in ledger.history(tensor):
            if isinstance(event, GradReset):
                continue  # what the last step used says more than the reset that follows
            last = say(event.after)
        return last or "None"
    return ""


def _printed(before: str, after: str) -> Iterator[Difference]:
    """The first and the last printed line that differ."""
    pairs = list(zip_longest(before.splitlines(), after.splitlines()))
    differ = [index for index, (old, new) in enumerate(pairs) if old != new]
    for index in sorted({*differ[:1], *differ[-1:]}):
        old, new = (_cut(line) if line is not None else "nothing" for line in pairs[index])
        yield Difference(f"printed (line {index + 1}; {len(differ)} of {len(pairs)} differ)", old, new)


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
