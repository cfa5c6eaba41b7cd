"""WG207: a score-function loss whose sample carries a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygrad.answers.why.flow import Made
from whygrad.ledger.events import GradWritten, Operation, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.flow import is_zero
from whygrad.rules.rule import Rule
from whygrad.rules.terms import tensors_of

LOG_PROB = re.compile(r"\.log_prob\s*\((?:[^()]|\([^()]*\))*\)$")
CHAIN = frozenset({"sum", "mean", "neg", "torch.sum", "squeeze", "view", "reshape", "unsqueeze", "getitem", "call"})
WEIGHTS = frozenset({"mul", "torch.mul", "mul_"})


class SampleWithGradientInScore(Rule):
    """REINFORCE with rsample: the gradient of the mean is zero.

    The score-function estimator is `log_prob(action) * return` with the action held fixed. `rsample()` makes the action
    `mean + std * eps`, so `(action - mean) / std` is `eps` and no longer depends on the mean: in `log_prob(action)`
    the two paths cancel and the policy's mean gets a gradient of exactly zero, whatever the returns.

    **How to see it.** The gradient of the mean's layer is zero while that of the standard deviation is not.

    **How to put it right.** Draw with `sample()`, or use `action.detach()` in `log_prob`. Use `rsample()` where the
    loss is a differentiable function of the action itself (as in SAC or a VAE).
    """

    code = "WG207"
    slug = "sample-with-gradient-in-score"
    intended = "the pathwise gradient through the action is wanted too"
    search = (
        "REINFORCE gradient zero", "rsample vs sample", "policy mean does not learn", "log_prob of rsample",
        "policy gradient zero",
    )  # fmt: skip
    wrong = (
        """
        import torch
        from torch.distributions import Normal
        policy = torch.nn.Linear(3, 2)
        state, returns = torch.randn(5, 3), torch.randn(5)
        dist = Normal(policy(state), torch.ones(2))
        action = dist.rsample()  # <- here
        loss = -(dist.log_prob(action).sum(dim=1) * returns).mean()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        from torch.distributions import Normal
        policy = torch.nn.Linear(3, 2)
        state, returns = torch.randn(5, 3), torch.randn(5)
        dist = Normal(policy(state), torch.ones(2))
        action = dist.sample()
        loss = -(dist.log_prob(action).sum(dim=1) * returns).mean()
        loss.backward()
        """,
        """
        import torch
        from torch.distributions import Normal
        policy, critic = torch.nn.Linear(3, 2), torch.nn.Linear(5, 1)
        state = torch.randn(5, 3)
        dist = Normal(policy(state), torch.ones(2))
        action = dist.rsample()
        log_prob = dist.log_prob(action).sum(dim=1, keepdim=True)
        loss = (0.2 * log_prob - critic(torch.cat([state, action], dim=1))).mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        for scored in facts.of(Operation):
            code = facts.place(scored.site).code
            if scored.site in seen or not scored.outputs or not LOG_PROB.search(code):
                continue
            sample = next((one for one in tensors_of(scored.inputs) if facts.flow.requires_grad(one)), None)
            drawn = facts.flow.maker(sample) if sample is not None else None
            weighted = _weighted(facts, scored.outputs[0])
            if sample is None or drawn is None or weighted is None or not _of_the_same(facts, scored, sample):
                continue
            seen.add(scored.site)
            yield self._found(facts, scored, drawn, weighted, sample)

    def _found(self, facts: Facts, scored: Operation, drawn: Made, weighted: Operation, sample: TensorId) -> Finding:
        drawn = _origin(facts, drawn)
        place = facts.place(drawn.site)
        zeros = [write for write in facts.of(GradWritten) if write.seq > scored.seq and is_zero(write.after)]
        happened = [
            f"{facts.describe(sample)} has a history (`{place.code}`), and "
            f"`{facts.place(scored.site).code}` is multiplied by weights on {facts.place(weighted.site).where}: "
            "the log-probability of a sample that moves with the distribution.",
        ]
        if zeros:
            names = ", ".join(dict.fromkeys(facts.describe(write.tensor) for write in zeros[:3]))
            happened.append(f"The gradient of {names} is exactly 0 in this run.")
        return self.finding(
            facts,
            place,
            "the sample in a score-function loss carries a gradient, which cancels that of the mean",
            happened,
            why="(action - mean) / std does not depend on the mean when the action is mean + std * eps.",
            fix="Draw the action with sample(), or pass action.detach() to log_prob.",
            evidence=[
                facts.evidence(scored, "the log-probability of a sample with a history"),
                facts.evidence(weighted, "is weighted, as in a score-function estimator"),
                *(facts.evidence(write, f"{facts.describe(write.tensor)}.grad is 0") for write in zeros[:2]),
            ],
            subjects=[facts.describe(sample)],
            edits=_sampled(facts, drawn),
        )


def _origin(facts: Facts, drawn: Made) -> Made:
    """Where the sample was drawn, behind what only reshaped or squashed it."""
    current = drawn
    for _ in range(6):
        if "rsample" in facts.place(current.site).code:
            return current
        behind = [facts.flow.maker(one) for one in current.inputs if one > 0 and facts.flow.requires_grad(one)]
        if len(behind) != 1 or behind[0] is None:
            return drawn
        current = behind[0]
    return drawn


def _of_the_same(facts: Facts, scored: Operation, sample: TensorId) -> bool:
    """Whether the sample was drawn by `rsample`, or computed as mean + std * noise."""
    for _, made in facts.flow.upstream(sample):
        if "rsample" in facts.place(made.site).code:
            return True
        if made.seq < scored.seq and made.function == "add":
            noisy = [facts.flow.maker(one) for one in made.inputs]
            if any(one is not None and one.function == "mul" and _has_noise(facts, one) for one in noisy):
                return True
    return False


def _has_noise(facts: Facts, made: Made) -> bool:
    makers = [facts.flow.maker(one) for one in made.inputs]
    return any(one is not None and "rand" in one.function for one in makers)


def _weighted(facts: Facts, tensor: TensorId) -> Operation | None:
    """The product of the log-probability with weights (one for each sample, without history)."""
    queue = [tensor]
    for current in queue:
        if len(queue) > 20:
            return None
        for made in facts.users.get(current, ()):
            if not isinstance(made, Operation) or not made.outputs:
                continue
            if made.function in WEIGHTS:
                others = [one for one in tensors_of(made.inputs) if one != current]
                known = facts.tensors.get(others[0]) if others else None
                if known is not None and known.shape not in ((), (1,)) and not facts.flow.requires_grad(known.id):
                    return made
            if made.function in CHAIN or made.function in WEIGHTS:
                queue.append(made.outputs[0])
    return None


def _sampled(facts: Facts, drawn: Made) -> tuple[Edit, ...]:
    site = facts.site(drawn.site)
    if site is None or site.line != site.end_line or site.code.count("rsample") != 1:
        return ()
    at = site.column + site.code.index("rsample")
    return (Edit(site.path, site.line, at, site.line, at + len("rsample"), "sample"),)
