"""WG103: the reset empties some buffers, and forgets others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from whygrad.ledger.events import GradReset, GradWritten, OptimizerStepped, SiteId, TensorId
from whygrad.rules.buffers.gradient_not_reset import added_to, used_by
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import uses
from whygrad.rules.untrained import untrained

GROWN = 3


class ResetMissesParameters(Rule):
    """Some parameters keep their old gradients: the reset does not reach them.

    `optimizer.zero_grad()` resets the tensors that *this optimizer* holds, `model.zero_grad()` those of *this
    module*. A second network, a learnable temperature or perturbation, or a layer outside the optimizer is not among
    them: its buffer grows from step to step while all others start fresh.

    **How to put it right.** Reset by the owner of all that is trained: the optimizer that holds them, or each of the
    modules and tensors.
    """

    code = "WG103"
    slug = "reset-misses-parameters"
    search = (
        "model.zero_grad vs optimizer.zero_grad",
        "some parameters accumulate gradients",
        "two networks zero_grad",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        scale = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            model.zero_grad()  # <- here
            loss = (scale * model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        scale = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (scale * model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        for optimizer in facts.optimizers:
            for earlier, later in pairwise(facts.steps_of(optimizer)):
                used = [update.tensor for update in later.updates if update.tensor in used_by(earlier)]
                added = [(tensor, write) for tensor in used if (write := added_to(facts, tensor, earlier, later))]
                if not 0 < len(added) < len(used):
                    continue
                missed = {tensor for tensor, _ in added}
                reset = _reset_of_others(facts, used, missed, earlier.seq, later.seq)
                if reset is not None and reset.site not in told:
                    told.add(reset.site)
                    yield self._finding(facts, reset, added, later, Severity.ERROR)
        yield from self._never_used(facts, told)

    def _never_used(self, facts: Facts, told: set[SiteId | None]) -> Iterator[Finding]:
        """Buffers that only grow, while those of the same passes are reset; nothing uses them."""
        known = {one.tensor for one in untrained(facts)} | set(uses(facts))
        writes: dict[TensorId, list[GradWritten]] = {}
        for write in facts.of(GradWritten):
            writes.setdefault(write.tensor, []).append(write)
        resets = {reset.tensor for reset in facts.of(GradReset)}
        grown = [
            (tensor, made[-1])
            for tensor, made in writes.items()
            if len(made) >= GROWN and tensor not in resets and tensor not in known and made[-1].before is not None
        ]
        if not grown:
            return
        last = {write.backward for _, write in grown}
        beside = [
            tensor for tensor, made in writes.items() if tensor in resets and {one.backward for one in made} & last
        ]
        reset = _reset_of_others(facts, beside, {tensor for tensor, _ in grown}, 0, grown[0][1].seq)
        if reset is not None and reset.site not in told:
            yield self._finding(facts, reset, grown, None, Severity.NOTE)

    def _finding(
        self,
        facts: Facts,
        reset: GradReset,
        missed: list[tuple[TensorId, GradWritten]],
        later: OptimizerStepped | None,
        severity: Severity,
    ) -> Finding:
        tensor, write = missed[0]
        name, other = facts.describe(tensor), facts.describe(reset.tensor)
        more = f" and {len(missed) - 1} more" if len(missed) > 1 else ""
        used = (
            f"{facts.place(later.site).where} stepped with the sum."
            if later is not None
            else "Nothing has used it so far."
        )
        return self.finding(
            facts,
            reset.site if reset.site is not None else write.site or facts.place(None),
            f"this reset does not reach {name}{more}",
            [
                f"{reset.by} reset {other}.grad, and left {name}.grad at {say(write.before)}; the next backward "
                f"({facts.place(write.site).where}) made it {say(write.after)}.",
                used,
            ],
            why="An optimizer's or module's zero_grad() resets only the parameters that it holds.",
            fix="Reset by the optimizer that holds all of them, or reset each owner.",
            evidence=[
                facts.evidence(reset, f"{reset.by} reset {other}.grad"),
                facts.evidence(write, f"{name}.grad: {say(write.before)} -> {say(write.after)}"),
                *([facts.evidence(later, "the step used the sum")] if later is not None else []),
            ],
            subjects=[facts.describe(one) for one, _ in missed],
            severity=severity,
        )


def _reset_of_others(
    facts: Facts, tensors: list[TensorId], missed: set[TensorId], after: int, before: int
) -> GradReset | None:
    for tensor in tensors:
        if tensor not in missed:
            for reset in facts.resets_of(tensor):
                if after < reset.seq < before:
                    return reset
    return None
