"""WG104: a network's step uses gradients that another network's loss left in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice, pairwise, takewhile

from whygrad.ledger.events import BackwardId, GradReset, GradWritten, OptimizerId, OptimizerStepped, SiteId, TensorId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import Use, back_from, uses
from whygrad.rules.syntax import insert_before

WINDOW = 32
"""So many writes before a step are looked at, at most."""


class GradientOfAnotherLoss(Rule):
    """The discriminator's step contains gradients of the generator's loss.

    A generator's loss goes through the discriminator, so its `backward()` fills the discriminator's buffers as well.
    `generator_optimizer.zero_grad()` does not empty them. If nothing resets them before the discriminator's own
    `backward()`, its step uses the sum of both: half of it pushes the wrong way. The same happens to a critic that an
    actor's loss goes through, and to a model that an adversarial attack differentiates before the training loss.

    **How to put it right.** Reset the network's own buffers right before its own `backward()`, or switch its
    parameters off (`requires_grad_(False)`) while the other network is trained.
    """

    code = "WG104"
    slug = "gradient-of-another-loss"
    severity = Severity.WARNING
    intended = "both losses are to move these parameters"
    search = (
        "GAN discriminator gradients from generator loss",
        "zero_grad discriminator",
        "two optimizers shared network",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        make, judge = nn.Linear(2, 3), nn.Linear(3, 1)
        make_optimizer = torch.optim.SGD(make.parameters(), lr=0.1)
        judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.1)
        real = torch.randn(8, 3)
        for _ in range(3):
            make_optimizer.zero_grad()
            judge_optimizer.zero_grad()
            fake = make(torch.randn(8, 2))
            (-judge(fake).mean()).backward()
            make_optimizer.step()
            loss = judge(fake.detach()).mean() - judge(real).mean()
            loss.backward()  # <- here
            judge_optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        make, judge = nn.Linear(2, 3), nn.Linear(3, 1)
        make_optimizer = torch.optim.SGD(make.parameters(), lr=0.1)
        judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.1)
        real = torch.randn(8, 3)
        for _ in range(3):
            make_optimizer.zero_grad()
            fake = make(torch.randn(8, 2))
            (-judge(fake).mean()).backward()
            make_optimizer.step()
            judge_optimizer.zero_grad()
            loss = judge(fake.detach()).mean() - judge(real).mean()
            loss.backward()
            judge_optimizer.step()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(8, 3)
        for _ in range(3):
            optimizer.zero_grad()
            model(x)[:, 0].square().mean().backward()
            model(x)[:, 1].abs().mean().backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        passes = {each.id: each for each in facts.passes}
        everything = sorted((use for made in uses(facts).values() for use in made), key=lambda use: use.seq)
        told: set[SiteId | None] = set()
        for optimizer in facts.optimizers:
            for step in facts.steps_of(optimizer):
                for update in step.updates[:64]:
                    found = _polluted(facts, passes, everything, optimizer, step, update.tensor)
                    if found is None or found[1].site in told:
                        continue
                    told.add(found[1].site)
                    yield self._finding(facts, step, optimizer, *found)

    def _finding(
        self,
        facts: Facts,
        step: OptimizerStepped,
        optimizer: OptimizerId,
        first: GradWritten,
        second: GradWritten,
        use: Use,
    ) -> Finding:
        name = facts.describe(first.tensor)
        whose = facts.optimizers[optimizer][-1].name or "its optimizer"
        other = facts.describe(use.tensor)
        return self.finding(
            facts,
            second.site if second.site is not None else facts.place(None),
            f"{name}.grad still holds the gradient of another loss",
            [
                f"The backward on {facts.place(first.site).where} (whose gradients moved {other}) left "
                f"{say(first.after)} in {name}.grad; nothing reset it.",
                f"The backward on {facts.place(second.site).where} added to it, and {whose} stepped with the sum, "
                f"{say(second.after)}.",
            ],
            why="backward() fills the buffers of every parameter that it reaches, whoever's loss it is.",
            fix=f"Reset these buffers right before this backward: {whose}.zero_grad().",
            evidence=[
                facts.evidence(first, f"{name}.grad = {say(first.after)}"),
                facts.evidence(second, f"{name}.grad: {say(second.before)} -> {say(second.after)}"),
                facts.evidence(step, "the step used the sum"),
            ],
            subjects=[name, *(facts.describe(update.tensor) for update in step.updates)],
            edits=_edits(facts, second, facts.optimizers[optimizer][-1].name),
        )


def _polluted(
    facts: Facts,
    passes: dict[BackwardId, Pass],
    everything: list[Use],
    optimizer: OptimizerId,
    step: OptimizerStepped,
    tensor: TensorId,
) -> tuple[GradWritten, GradWritten, Use] | None:
    """Two writes that a step used together, the first of which another owner's update had used before the second."""
    writes: list[GradWritten] = []
    for event in back_from(facts, tensor, step.seq):
        if isinstance(event, GradReset) or len(writes) == WINDOW:
            break
        if isinstance(event, GradWritten):
            writes.insert(0, event)
    if len(writes) < 2:
        return None
    for first, second in pairwise(writes):
        if first.site == second.site:
            continue
        between = _between(everything, first.seq, second.seq)
        if any(use.tensor == tensor for use in between):
            return None
        reached = {write.tensor for write in passes[first.backward].written}
        own = {write.tensor for write in passes[second.backward].written}
        for use in between:
            if use.tensor in reached and use.optimizer != optimizer and use.tensor not in own:
                return first, second, use
    return None


def _between(everything: list[Use], after: int, before: int) -> list[Use]:
    start = bisect_right(everything, after, key=lambda use: use.seq)
    return list(takewhile(lambda use: use.seq < before, islice(everything, start, None)))


def _edits(facts: Facts, write: GradWritten, name: str) -> list[Edit]:
    place = facts.place(write.site)
    source = facts.source(place.path)
    statement = source.statement(place.line)
    return [insert_before(source, statement, f"{name}.zero_grad()")] if name and statement is not None else []
