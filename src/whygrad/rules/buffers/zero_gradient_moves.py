"""WG108: what was given a zero gradient moves all the same."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import GradChanged, GradReset, GradWritten, OptimizerStepped, TensorId, Update
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place, Severity
from whygrad.rules.numbers import say_number
from whygrad.rules.rule import Rule
from whygrad.rules.steps import history_between, items


class Moved(msgspec.Struct, frozen=True):
    """Entries of a parameter that had a zero gradient by the program's will, and moved."""

    step: OptimizerStepped
    update: Update
    cause: GradChanged | GradReset | GradWritten
    entries: int
    before: float
    after: float


class ZeroGradientMoves(Rule):
    """Weights whose gradient is set to zero still change.

    A gradient of zero is not "no gradient". Weight decay subtracts a part of the weight, momentum goes on in the old
    direction, and Adam's averages take many steps to die out: frozen rows, pruned weights and masked entries drift.
    Only a gradient of None makes an optimizer skip a tensor.

    **How to put it right.** For an entire tensor, set `.grad = None`. For single entries, put them in a parameter of
    their own, restore them after `step()`, or use no weight decay and no momentum for that tensor.
    """

    code = "WG108"
    slug = "zero-gradient-moves"
    severity = Severity.WARNING
    search = (
        "masked gradient weights still change",
        "weight decay frozen weights",
        "pruned weights not zero after training",
        "grad set to zero but parameter updated",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)  # <- here
        keep = torch.tensor([[1.0], [0.0]])
        x, y = torch.randn(8, 4), torch.randn(8, 2)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            model.weight.grad.mul_(keep)
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        keep = torch.tensor([[1.0], [0.0]])
        x, y = torch.randn(8, 4), torch.randn(8, 2)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            model.weight.grad.mul_(keep)
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[tuple[str, int]] = set()
        for moved in _moved(facts):
            place = self._place(facts, moved)
            if (place.path, place.line) not in told:
                told.add((place.path, place.line))
                yield self._finding(facts, moved, place)

    def _place(self, facts: Facts, moved: Moved) -> Place:
        """The line to change: the reset of an entire gradient, else the optimizer's options."""
        whole = isinstance(moved.cause, GradReset)
        built = facts.optimizers[moved.step.optimizer][0]
        return facts.place(moved.cause.site if whole else built.site)

    def _finding(self, facts: Facts, moved: Moved, place: Place) -> Finding:
        name = facts.describe(moved.update.tensor)
        built = facts.optimizers[moved.step.optimizer][-1]
        options = next((group.options for group in built.groups if moved.update.tensor in group.parameters), {})
        told = [f"{key} {options[key]}" for key in ("weight_decay", "momentum", "betas") if options.get(key)]
        by_reset = isinstance(moved.cause, GradReset) and moved.cause.by.endswith("zero_grad")
        return self.finding(
            facts,
            place,
            f"{name} moves although its gradient is zero",
            [
                f"{facts.place(moved.cause.site).where} made {moved.entries} entries of {name}.grad zero; the step on "
                f"{facts.place(moved.step.site).where} moved them, the first from {say_number(moved.before)} to "
                f"{say_number(moved.after)}.",
                f"{built.kind} has {' and '.join(told)}." if told else f"{built.kind} keeps averages of old gradients.",
            ],
            why="Weight decay, momentum and averages act on every tensor whose gradient is not None, zero or not.",
            fix="Set the gradient to None instead of zero."
            if isinstance(moved.cause, GradReset)
            else "Use no weight decay or momentum for this tensor, or restore the entries after each step.",
            evidence=[
                facts.evidence(moved.cause, f"entries of {name}.grad became zero"),
                facts.evidence(moved.step, "the step moved them"),
            ],
            subjects=[name],
            severity=Severity.NOTE if by_reset else Severity.WARNING,
        )


def _moved(facts: Facts) -> Iterator[Moved]:
    data: dict[TensorId, Value | None] = {}
    previous: dict[int, int] = {}
    for step in facts.of(OptimizerStepped):
        for update in step.updates:
            known = facts.tensors.get(update.tensor)
            before, after = items(data.get(update.tensor, known.value if known else None)), items(update.after)
            data[update.tensor] = update.after
            grad = items(update.grad)
            if before is None or after is None or grad is None or len(before) != len(after) or 0.0 not in grad:
                continue
            cause, zeroed = _zeroed(facts, update, previous.get(step.optimizer, 0), step.seq)
            entries = [
                index for index in zeroed if index < len(grad) and grad[index] == 0 and before[index] != after[index]
            ]
            if cause is not None and entries:
                first = entries[0]
                yield Moved(step, update, cause, len(entries), before[first], after[first])
        previous[step.optimizer] = step.seq


def _zeroed(
    facts: Facts, update: Update, after: int, before: int
) -> tuple[GradChanged | GradReset | GradWritten | None, list[int]]:
    """What made entries of the gradient zero that were not, and which."""
    for event in reversed(list(history_between(facts, update.tensor, after, before))):
        if isinstance(event, GradReset):
            return (event, list(range(update.grad.count if update.grad else 0))) if event.to == "zero" else (None, [])
        if isinstance(event, GradChanged):
            was, now = items(event.before), items(event.after)
            if event.by.startswith(("clip_grad", "unscale")) or was is None or now is None:
                continue
            changed = [index for index, (one, other) in enumerate(zip(was, now, strict=False)) if one and not other]
            if changed:
                return event, changed
        elif isinstance(event, GradWritten):
            if event.hooked:
                now, came = items(event.after), [items(term.value) for term in event.contributions]
                if now is not None and len(came) == 1 and came[0] is not None:
                    changed = [i for i, (one, other) in enumerate(zip(came[0], now, strict=False)) if one and not other]
                    return (event, changed) if changed else (None, [])
            return None, []
    return None, []
