"""WG101: nothing resets the buffers between two steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from whygrad.ledger.events import (
    AnyEvent,
    BackwardBegan,
    GradReset,
    GradWritten,
    OptimizerStepped,
    SiteId,
    TensorId,
)
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import Use, history_between, uses
from whygrad.rules.syntax import insert_after, insert_before


class GradientNotReset(Rule):
    """Gradients add up from step to step: nothing resets them.

    `backward()` adds into `.grad`, it does not overwrite. Without a reset between two optimizer steps, the second
    step uses the sum of both gradients, the third the sum of three, and so on: the update grows and follows
    old batches. The loss may fall at first, then it oscillates or diverges.

    The same holds for updates written by hand (`w -= lr * w.grad`), for a perturbation that an attack moves along its
    own gradient, for a closure that an optimizer such as LBFGS calls several times a step, and for a reset that runs
    once an epoch while the optimizer steps once a batch.

    **How to see it.** In the buffer's history a write finds the buffer full: `40 = 20 (earlier) + 20 (line 8)`.

    **How to put it right.** Call `optimizer.zero_grad()` once a step: before `backward()`, or after `step()`.
    """

    code = "WG101"
    slug = "gradient-not-reset"
    intended = "each step is to use the sum of all gradients since the start"
    explains = ("WG103", "WG104", "WG106")
    search = ("zero_grad missing", "gradients accumulate", "gradient grows every iteration", "why call zero_grad")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()  # <- here
            optimizer.step()
        """,
        """
        import torch
        w = torch.tensor(3.0, requires_grad=True)
        for _ in range(3):
            loss = (w - 1.0) ** 2
            loss.backward()  # <- here
            with torch.no_grad():
                w -= 0.1 * w.grad
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for step in range(8):
            loss = ((model(x) - y) ** 2).mean() / 2
            loss.backward()
            if step % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
        x, y = torch.randn(8, 4), torch.randn(8, 1)

        def closure():
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        for finding, site in (*self._by_optimizers(facts), *self._by_hand(facts), *self._in_closures(facts)):
            if site not in told:
                told.add(site)
                yield finding

    def _by_optimizers(self, facts: Facts) -> Iterator[tuple[Finding, SiteId | None]]:
        for steps in (list(facts.steps_of(optimizer)) for optimizer in facts.optimizers):
            for earlier, later in pairwise(steps):
                used = [update.tensor for update in later.updates if update.tensor in used_by(earlier)]
                added = [(tensor, write) for tensor in used if (write := added_to(facts, tensor, earlier, later))]
                if added and len(added) == len(used):
                    yield self._found(facts, earlier, later, added), added[0][1].site
                    break

    def _by_hand(self, facts: Facts) -> Iterator[tuple[Finding, SiteId | None]]:
        for tensor, made in uses(facts).items():
            own = [use for use in made if use.optimizer is None]
            for earlier, later in pairwise(own):
                write = added_to(facts, tensor, earlier, later)
                if write is not None:
                    yield self._found(facts, earlier, later, [(tensor, write)]), write.site
                    break

    def _in_closures(self, facts: Facts) -> Iterator[tuple[Finding, SiteId | None]]:
        """A closure that runs several times within one step, and adds each time."""
        for optimizer, told in facts.optimizers.items():
            if told[0].kind != "LBFGS":
                continue
            previous = told[0].seq
            for step in facts.steps_of(optimizer):
                for update in step.updates:
                    writes = [
                        event
                        for event in history_between(facts, update.tensor, previous, step.seq)
                        if isinstance(event, (GradWritten, GradReset))
                    ]
                    for first, second in pairwise(writes):
                        if (
                            isinstance(first, GradWritten)
                            and isinstance(second, GradWritten)
                            and first.site == second.site
                        ):
                            yield self._found(facts, first, step, [(update.tensor, second)]), second.site
                            return
                previous = step.seq

    def _found(
        self,
        facts: Facts,
        earlier: OptimizerStepped | Use | GradWritten,
        later: OptimizerStepped | Use,
        added: list[tuple[TensorId, GradWritten]],
    ) -> Finding:
        tensor, write = added[0]
        name = facts.describe(tensor)
        where = facts.place(write.site).where
        before = f"the update on {facts.place(earlier.site).where}"
        if isinstance(earlier, OptimizerStepped):
            before = f"step {earlier.step}"
        if isinstance(earlier, GradWritten):
            before = "the closure's earlier call in the same step"
        others = f"The same holds for all {len(added)} parameters of that step: no reset between the two."
        return self.finding(
            facts,
            facts.place(write.site),
            "the gradients of earlier steps are still in the buffers",
            [
                f"{name}.grad held {say(write.before)} from {before}; the backward on {where} "
                f"added to it, and {facts.place(later.site).where} used the sum, {say(write.after)}.",
                others if len(added) > 1 else "No reset stands between the two.",
            ],
            why="backward() adds into .grad; only a reset empties it.",
            fix="Call optimizer.zero_grad() once a step, before backward()."
            if isinstance(later, OptimizerStepped)
            else f"Reset it after each use: {name}.grad = None.",
            evidence=[
                facts.evidence(_event(facts, earlier), f"{name}.grad was used or filled before"),
                facts.evidence(write, f"{name}.grad: {say(write.before)} -> {say(write.after)}"),
                facts.evidence(_event(facts, later), "the sum was used"),
            ],
            subjects=[facts.describe(one) for one, _ in added],
            edits=_edits(facts, write, earlier.seq, later),
        )


def used_by(step: OptimizerStepped) -> set[TensorId]:
    """The parameters whose gradient a step used."""
    return {update.tensor for update in step.updates if update.grad is not None}


def added_to(
    facts: Facts, tensor: TensorId, earlier: OptimizerStepped | Use, later: OptimizerStepped | Use
) -> GradWritten | None:
    """The first write that added to what the earlier step had used, if nothing reset the buffer before the later."""
    first: GradWritten | None = None
    for event in history_between(facts, tensor, earlier.seq, later.seq):
        if isinstance(event, GradReset):
            return None
        if isinstance(event, GradWritten) and first is None:
            if event.before is None or not event.before.magnitude:
                return None
            first = event
    return first


def _event(facts: Facts, one: OptimizerStepped | Use | GradWritten) -> AnyEvent:
    if not isinstance(one, Use):
        return one
    return next(event for event in facts.events if event.seq == one.seq)


def _edits(facts: Facts, write: GradWritten, earlier: int, later: OptimizerStepped | Use) -> list[Edit]:
    """A reset before the only backward of a step, or after the step where several backwards make it up."""
    if not isinstance(later, OptimizerStepped) or not (name := facts.optimizers[later.optimizer][-1].name):
        return []
    several = sum(1 for _ in facts.between(BackwardBegan, earlier, later.seq)) > 1
    place = facts.place(later.site if several else write.site)
    source = facts.source(place.path)
    statement = source.statement(place.line)
    if statement is None:
        return []
    insert = insert_after if several else insert_before
    return [insert(source, statement, f"{name}.zero_grad()")]
