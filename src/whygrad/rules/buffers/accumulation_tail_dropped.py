"""WG111: the last gradients of an accumulation are never stepped."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.accumulation import Guarded, guarded_steps, total_passes
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.rule import Rule


class AccumulationTailDropped(Rule):
    """The last incomplete accumulation window is lost, or leaks into the next epoch.

    A step behind `if (i + 1) % k == 0` runs only for complete windows. If the number of batches is no multiple of k,
    the gradients of the last ones are computed and never applied; without a reset they are still in the buffers when
    the next epoch begins, and its first step uses them together with new ones.

    **How to put it right.** Step also after the last batch: `if (i + 1) % k == 0 or i + 1 == len(loader)`.
    """

    code = "WG111"
    slug = "accumulation-tail-dropped"
    severity = Severity.WARNING
    intended = "the last batches may be dropped"
    search = (
        "gradient accumulation last batch",
        "accumulation not divisible by steps",
        "incomplete accumulation window",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(5, 2, 4), torch.randn(5, 2, 1)
        for epoch in range(2):
            for i in range(5):
                loss = (model(x[i]) - y[i]).square().mean() / 2
                loss.backward()
                if (i + 1) % 2 == 0:  # <- here
                    optimizer.step()
                    optimizer.zero_grad()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(5, 2, 4), torch.randn(5, 2, 1)
        for epoch in range(2):
            for i in range(5):
                loss = (model(x[i]) - y[i]).square().mean() / 2
                loss.backward()
                if (i + 1) % 2 == 0 or i + 1 == len(x):
                    optimizer.step()
                    optimizer.zero_grad()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for guarded in guarded_steps(facts):
            counts = total_passes(facts, guarded.optimizer)
            per_step = len(guarded.windows[0]) if guarded.windows else 0
            if counts is None or per_step < 2 or facts.partial:
                continue
            passes, steps = counts
            left = passes - steps * per_step
            if left > 0 and all(len(window) >= per_step for window in guarded.windows):
                yield self._finding(facts, guarded, passes, steps, per_step, left)

    def _finding(self, facts: Facts, guarded: Guarded, passes: int, steps: int, per_step: int, left: int) -> Finding:
        name = facts.optimizers[guarded.optimizer][-1].name or "the optimizer"
        leaked = next((window for window in guarded.windows if len(window) > per_step), None)
        happened = [
            f"{passes} backward passes filled the buffers; {name} made {steps} steps of {per_step} passes each: the "
            f"gradients of {left} passes had no step of their own."
        ]
        if leaked is not None:
            happened.append(f"A later step used {len(leaked)} passes: the left-over ones and {per_step} new ones.")
        else:
            happened.append("What is left over is not applied.")
        last = guarded.steps[-1]
        return self.finding(
            facts,
            facts.line(guarded.source.path, guarded.test.lineno),
            f"the last incomplete window of {per_step} passes gets no step",
            happened,
            why="The test is only true for complete windows.",
            fix="Step after the last batch too: add `or i + 1 == len(loader)` to the test.",
            evidence=[
                facts.evidence(guarded.steps[0], f"a step used {per_step} passes"),
                facts.evidence(last, "the last recorded step"),
            ],
            subjects=[name],
        )
