"""WG504: a parameter gets gradients, and no optimizer holds it."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import OptimizerId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.loop.layers_in_container import hidden_in
from whygrad.rules.loop.optimizer_holds_old import successors
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.untrained import Untrained, is_parameter, thawed_by, untrained


class ParameterNotInOptimizer(Rule):
    """A layer gets gradients but never moves: the optimizer does not know it.

    An optimizer moves the tensors that it was given when it was built. A parameter that was frozen at that time and
    filtered out, that was forgotten in a list of parameters, or that belongs to another network, gets gradients like
    all others and stays where it is. `optimizer.zero_grad()` does not reach it either, so its buffer grows.

    **How to put it right.** Give the optimizer all parameters from the start (it skips those without a gradient),
    or call `optimizer.add_param_group({"params": ...})` when a layer is unfrozen. Where a part is to stand still,
    say so with `requires_grad_(False)`: that also saves its gradients.
    """

    code = "WG504"
    slug = "parameter-not-in-optimizer"
    intended = "this part is to stand still (then requires_grad_(False) says so and saves the work)"
    search = ("unfrozen layer does not train", "weights do not change", "gradient not None but parameter not updated")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        model[0].requires_grad_(False)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)  # <- here
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for epoch in range(4):
            if epoch == 2:
                model[0].requires_grad_(True)
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        model[0].requires_grad_(False)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for epoch in range(4):
            if epoch == 2:
                model[0].requires_grad_(True)
                optimizer.add_param_group({"params": model[0].parameters()})
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        elsewhere = {*hidden_in(facts), *successors(facts)}
        groups: dict[tuple[OptimizerId, bool], list[Untrained]] = {}
        for one in untrained(facts):
            if one.tensor in elsewhere or not is_parameter(facts, one.tensor):
                continue
            built = facts.optimizers[one.beside.id][0]
            late = thawed_by(facts, one.tensor, built.seq) is not None
            groups.setdefault((built.id, late), []).append(one)
        for (optimizer, late), members in groups.items():
            yield self._finding(facts, optimizer, late, members)

    def _finding(self, facts: Facts, optimizer: OptimizerId, late: bool, members: list[Untrained]) -> Finding:
        built = facts.optimizers[optimizer][0]
        first = members[0]
        names = [facts.describe(one.tensor) for one in members]
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        evidence = [
            facts.evidence(built, f"{built.kind} was built without {names[0]}"),
            facts.evidence(first.write, f"{names[0]}.grad = {say(first.write.after)}"),
        ]
        happened = [
            f"{names[0]}{others} got gradients ({names[0]}.grad = {say(first.write.after)}, "
            f"{facts.place(first.write.site).where}); no optimizer holds them, and nothing moved them.",
        ]
        thawed = thawed_by(facts, first.tensor, built.seq)
        if thawed is not None:
            happened.append(
                f"They became trainable on {facts.place(thawed.site).where}, after the optimizer was built from the "
                "parameters that were trainable then."
            )
            evidence.insert(1, facts.evidence(thawed, f"{names[0]} became trainable"))
        return self.finding(
            facts,
            built.site if built.site is not None else first.write.site or facts.place(None),
            f"{names[0]}{others}: gradients, and no optimizer that would use them",
            happened,
            why="An optimizer moves only the tensors in its parameter groups.",
            fix="Give the optimizer all parameters from the start, or add_param_group() after unfreezing."
            if late
            else "Add them to the optimizer, or freeze them with requires_grad_(False) if they are to stand still.",
            evidence=evidence,
            subjects=names,
            severity=Severity.ERROR if late else Severity.NOTE,
        )
