"""WG116: two optimizers step one parameter with one gradient."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from whygrad.ledger.events import OptimizerId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import Use, history_between, uses


class GradientUsedTwice(Rule):
    """A parameter is in two optimizers, and each of them steps it.

    Two optimizers that hold the same tensor both apply its gradient: it moves twice per backward, with two learning
    rates, two momenta and twice the weight decay.

    **How to put it right.** Give each parameter one owner; for different learning rates use parameter groups of one
    optimizer.
    """

    code = "WG116"
    slug = "gradient-used-twice"
    severity = Severity.WARNING
    intended = "both optimizers are to move this parameter with each gradient"
    search = ("parameter in two optimizers", "parameter updated twice", "shared parameters two optimizers")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        body, head = nn.Linear(4, 4), nn.Linear(4, 1)
        slow = torch.optim.SGD(body.parameters(), lr=0.01)
        fast = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)  # <- here
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            slow.zero_grad()
            fast.zero_grad()
            (head(body(x)) - y).square().mean().backward()
            slow.step()
            fast.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        body, head = nn.Linear(4, 4), nn.Linear(4, 1)
        slow = torch.optim.SGD(body.parameters(), lr=0.01)
        fast = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for optimizer in (slow, fast, fast):
            optimizer.zero_grad()
            (head(body(x)) - y).square().mean().backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        pairs: dict[tuple[OptimizerId, OptimizerId], list[tuple[TensorId, Use, Use]]] = {}
        for tensor, made in uses(facts).items():
            if len(facts.held.get(tensor, ())) < 2:
                continue
            for first, second in pairwise(made):
                if first.optimizer is None or second.optimizer is None or first.optimizer == second.optimizer:
                    continue
                quiet = not any(True for _ in history_between(facts, tensor, first.seq, second.seq))
                if quiet and first.moved and second.moved:
                    one, other = sorted((first.optimizer, second.optimizer))
                    pairs.setdefault((one, other), []).append((tensor, first, second))
                    break
        for (one, other), members in pairs.items():
            earlier, later = facts.optimizers[one][0], facts.optimizers[other][0]
            if earlier.site == later.site:
                continue
            tensor, first, second = members[0]
            name = facts.describe(tensor)
            more = f" and {len(members) - 1} more" if len(members) > 1 else ""
            yield self.finding(
                facts,
                later.site if later.site is not None else facts.place(None),
                f"{name}{more} is in two optimizers, and both step it",
                [
                    f"{facts.place(first.site).where} moved {name} with its gradient ({say(first.grad)}); "
                    f"{facts.place(second.site).where} moved it again with the same one.",
                ],
                why="Each optimizer applies the gradient of every tensor that it holds.",
                fix="Leave these parameters to one optimizer; use parameter groups for different rates.",
                evidence=[
                    facts.evidence(earlier, f"{earlier.kind} was built with {name}"),
                    facts.evidence(later, f"{later.kind} was built with {name} as well"),
                ],
                subjects=[facts.describe(each) for each, _, _ in members],
            )
