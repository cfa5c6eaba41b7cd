"""WG523: a network that was trained is frozen, and never set free again."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import OptimizerStepped, RequiresGradChanged, SiteId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.rule import Rule


class FrozenForGood(Rule):
    """A network stops learning: it was frozen while another one was trained, and is still frozen.

    Adversarial training often freezes the discriminator during the generator's step. If nothing switches
    `requires_grad` on again, its own backward writes nothing from then on, and its optimizer's steps skip everything.

    **How to put it right.** Call `requires_grad_(True)` before the network's own step.
    """

    code = "WG523"
    slug = "frozen-for-good"
    severity = Severity.WARNING
    intended = "this part is to be trained at first and to stand still afterwards"
    search = ("discriminator stops training requires_grad False", "requires_grad not set back to True GAN")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        make, judge = nn.Linear(2, 3), nn.Linear(3, 1)
        make_optimizer = torch.optim.SGD(make.parameters(), lr=0.1)
        judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.1)
        scale = torch.ones(1, requires_grad=True)
        real = torch.randn(8, 3)
        for _ in range(4):
            judge_optimizer.zero_grad()
            fake = make(torch.randn(8, 2))
            (scale * (judge(fake.detach()).mean() - judge(real).mean())).backward()
            judge_optimizer.step()
            judge.requires_grad_(False)  # <- here
            make_optimizer.zero_grad()
            (-judge(fake).mean()).backward()
            make_optimizer.step()
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
        for _ in range(4):
            judge.requires_grad_(True)
            judge_optimizer.zero_grad()
            fake = make(torch.randn(8, 2))
            (judge(fake.detach()).mean() - judge(real).mean()).backward()
            judge_optimizer.step()
            judge.requires_grad_(False)
            make_optimizer.zero_grad()
            (-judge(fake).mean()).backward()
            make_optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        frozen: dict[TensorId, RequiresGradChanged] = {}
        for change in facts.of(RequiresGradChanged):
            if change.to:
                frozen.pop(change.tensor, None)
            else:
                frozen.setdefault(change.tensor, change)
        told: set[SiteId | None] = set()
        for optimizer, built in facts.optimizers.items():
            held = {tensor for group in built[-1].groups for tensor in group.parameters}
            if not held or not held <= set(frozen):
                continue
            freeze = min((frozen[tensor] for tensor in held), key=lambda one: one.seq)
            steps = list(facts.steps_of(optimizer))
            before = [step for step in steps if step.seq < freeze.seq and step.updates]
            after = [step for step in steps if step.seq > freeze.seq and not step.updates and step.skipped]
            if before and after and freeze.site not in told:
                told.add(freeze.site)
                yield self._finding(facts, held, freeze, before[-1], after[0])

    def _finding(
        self,
        facts: Facts,
        held: set[TensorId],
        freeze: RequiresGradChanged,
        before: OptimizerStepped,
        after: OptimizerStepped,
    ) -> Finding:
        name = facts.describe(freeze.tensor)
        return self.finding(
            facts,
            freeze.site if freeze.site is not None else facts.place(after.site),
            f"{name} is frozen here and never set free again, while its optimizer goes on",
            [
                f"Up to step {before.step} the optimizer moved {name}; {facts.place(freeze.site).where} switched its "
                "requires_grad off, and nothing switched it on.",
                f"From then on {facts.place(after.site).where} skips all {len(held)} parameters.",
            ],
            why="A parameter that does not require grad gets no gradient, and a gradient of None is skipped.",
            fix="Switch it on again, with requires_grad_(True), before its own step.",
            evidence=[
                facts.evidence(before, f"the last step that moved {name}"),
                facts.evidence(freeze, f"requires_grad of {name} was switched off"),
                facts.evidence(after, "a step that skipped everything"),
            ],
            subjects=[facts.describe(tensor) for tensor in held],
        )
