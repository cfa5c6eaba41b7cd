"""WG502: the optimizer is made anew again and again, and forgets its state each time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Optimizer, OptimizerId, SiteId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import callee, calls

OFTEN = 3
STATELESS_KINDS = frozenset({"SGD"})


class OptimizerRebuilt(Rule):
    """The optimizer is created again in every epoch or step.

    Adam, RMSprop and SGD with momentum remember: averages of gradients, step counts. A new optimizer starts with
    nothing, so each time its first step is a start-up step (for Adam: about `lr * sign(gradient)`, whatever the
    gradient's size), and the parameters keep jumping instead of settling. A learning rate that a scheduler had
    lowered is back at its start, too.

    **How to put it right.** Create the optimizer once, before the loop, and pass it in.
    """

    code = "WG502"
    slug = "optimizer-rebuilt"
    severity = Severity.WARNING
    intended = "each round is to start from a fresh optimizer state, as in warm restarts"
    search = ("optimizer inside training loop", "Adam loses momentum every epoch", "loss jumps at each epoch")
    wrong = (
        """
        import torch
        torch.manual_seed(0)

        def epoch(model, x, y):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)  # <- here
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        model = torch.nn.Linear(4, 1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            epoch(model, x, y)
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for seed in range(4):
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for _ in range(3):
                loss = (model(x) - y).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        built: dict[tuple[SiteId | None, frozenset[TensorId]], dict[OptimizerId, Optimizer]] = {}
        for told in facts.optimizers.values():
            first = told[0]
            held = frozenset(tensor for group in first.groups for tensor in group.parameters)
            if held and _remembers(first):
                built.setdefault((first.site, held), {})[first.id] = first
        for (site, held), optimizers in built.items():
            stepped = {one: sum(1 for _ in facts.steps_of(one)) for one in optimizers}
            used = [count for count in stepped.values() if count]
            if site is None or len(optimizers) < OFTEN or len(used) < OFTEN - 1:
                continue
            first, again = list(optimizers.values())[:2]
            most = max(used)
            yield self.finding(
                facts,
                _place(facts, site),
                f"a new {first.kind} is made {len(optimizers)} times for the same parameters",
                [
                    f"{facts.place(site).where} made {len(optimizers)} optimizers over the same "
                    f"{len(held)} parameters; "
                    + (
                        f"none of them made more than {most} recorded step{'s' if most > 1 else ''} "
                        "before the next took its place."
                    ),
                    "Each starts without the averages and step counts of the one before.",
                ],
                why=f"{first.kind} keeps state from step to step; a new object has none.",
                fix="Create the optimizer once, outside the loop or function, and pass it in.",
                evidence=[
                    facts.evidence(first, f"{first.kind} was built"),
                    facts.evidence(again, f"{again.kind} was built again over the same parameters"),
                ],
                subjects=[facts.describe(tensor) for tensor in held],
            )


def _remembers(optimizer: Optimizer) -> bool:
    if optimizer.kind not in STATELESS_KINDS:
        return True
    return any(group.options.get("momentum") for group in optimizer.groups)


def _place(facts: Facts, site: SiteId) -> Place:
    """Where the optimizer is made; for a function that only returns one, where it is called in a loop."""
    place = facts.place(site)
    source = facts.source(place.path)
    function = source.function_at(place.line)
    statement = source.statement(place.line)
    if isinstance(statement, ast.Return) and isinstance(function, ast.FunctionDef):
        for call in calls(source.tree, function.name):
            if callee(call) == function.name and source.loop_at(call.lineno) is not None:
                return facts.line(place.path, call.lineno)
    return place
