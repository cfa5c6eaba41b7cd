"""WG101: nothing resets the buffers between two steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from whygrad.ledger.events import GradReset, GradWritten, OptimizerStepped, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule


class GradientNotReset(Rule):
    """Gradients add up from step to step: nothing resets them.

    `backward()` adds into `.grad`, it does not overwrite. Without a reset between two optimizer steps, the second
    step uses the sum of both gradients, the third the sum of three, and so on: the update grows and follows
    old batches. The loss may fall at first, then it oscillates or diverges.

    **How to see it.** In the buffer's history a write finds the buffer full: `40 = 20 (earlier) + 20 (line 8)`.

    **How to put it right.** Call `optimizer.zero_grad()` once a step: before `backward()`, or after `step()`.
    """

    code = "WG101"
    slug = "gradient-not-reset"
    intended = "each step is to use the sum of all gradients since the start"
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
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for steps in (list(facts.steps_of(optimizer)) for optimizer in facts.optimizers):
            for earlier, later in pairwise(steps):
                used = [update.tensor for update in later.updates if update.tensor in _used(earlier)]
                added = [(tensor, write) for tensor in used if (write := _added(facts, tensor, earlier, later))]
                if added and len(added) == len(used):
                    yield self._found(facts, earlier, later, added)
                    break

    def _found(
        self,
        facts: Facts,
        earlier: OptimizerStepped,
        later: OptimizerStepped,
        added: list[tuple[TensorId, GradWritten]],
    ) -> Finding:
        tensor, write = added[0]
        name = facts.describe(tensor)
        where = facts.place(write.site).where
        return self.finding(
            facts,
            facts.place(write.site),
            "the gradients of earlier steps are still in the buffers",
            [
                f"{name}.grad held {say(write.before)} from the step before (step {earlier.step}); "
                f"the backward on {where} added to it, and the step on {facts.place(later.site).where} used the sum, {say(write.after)}.",
                f"The same holds for all {len(added)} parameters of that step: no reset between the two steps.",
            ],
            why="backward() adds into .grad; only a reset empties it.",
            fix="Call optimizer.zero_grad() once a step, before backward().",
            evidence=[
                facts.evidence(earlier, f"the optimizer stepped (step {earlier.step})"),
                facts.evidence(write, f"{name}.grad: {say(write.before)} -> {say(write.after)}"),
                facts.evidence(later, f"the optimizer stepped (step {later.step}) with the sum"),
            ],
            subjects=[facts.describe(one) for one, _ in added],
        )


def _used(step: OptimizerStepped) -> set[TensorId]:
    return {update.tensor for update in step.updates if update.grad is not None}


def _added(facts: Facts, tensor: TensorId, earlier: OptimizerStepped, later: OptimizerStepped) -> GradWritten | None:
    """The write that added to what the earlier step had used, if nothing reset the buffer before it."""
    for event in facts.history(tensor):
        if not earlier.seq < event.seq < later.seq:
            continue
        if isinstance(event, GradReset):
            return None
        if isinstance(event, GradWritten):
            return event if event.before is not None and event.before.magnitude else None
    return None
