"""WG517: a layer is made anew in every forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, SiteId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Function
from whygrad.rules.syntax import calls

OFTEN = 2


class LayerMadeInForward(Rule):
    """A layer that is created in `forward` starts from new random weights at every call, and never learns.

    What is made in `forward` exists for that call only. Its weights are random each time, they get a gradient that
    nobody keeps, and `model.parameters()` does not contain them, so no optimizer can know them.

    **How to put it right.** Create the layer once, in `__init__`, as an attribute of the module.
    """

    code = "WG517"
    slug = "layer-made-in-forward"
    explains = ("WG504", "WG505")
    search = (
        "nn.Linear in forward",
        "layer created in forward not trained",
        "output changes at every call random weights",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4)

            def forward(self, x):
                head = nn.Linear(4, 1)  # <- here
                return head(torch.tanh(self.body(x)))

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4)
                self.heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(3)])

            def forward(self, x, task):
                return self.heads[task](nn.Tanh()(self.body(x)))

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for task in range(3):
            optimizer.zero_grad()
            (model(x, task) - y).square().mean().backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        by_site: dict[SiteId | None, list[ModuleCalled]] = {}
        for call in facts.of(ModuleCalled):
            by_site.setdefault(call.site, []).append(call)
        told: set[tuple[str, int]] = set()
        for site, made in by_site.items():
            kinds: dict[str, list[ModuleCalled]] = {}
            for call in made:
                known = facts.modules.get(call.module)
                if known is not None and known.parameters:
                    kinds.setdefault(known.kind, []).append(call)
            for kind, same in kinds.items():
                place = _construction(facts, site, kind)
                if place is None or (place.path, place.line) in told:
                    continue
                times: dict[int, int] = {}
                for call in same:
                    times[call.module] = times.get(call.module, 0) + 1
                if len(times) >= OFTEN and set(times.values()) == {1}:
                    told.add((place.path, place.line))
                    yield self._finding(facts, place, kind, same)

    def _finding(self, facts: Facts, place: Place, kind: str, made: list[ModuleCalled]) -> Finding:
        one, other = (facts.modules[call.module] for call in made[:2])
        weights = [facts.tensors[module.parameters[0][1]] for module in (one, other)]
        return self.finding(
            facts,
            place,
            f"a new {kind} is made at every call",
            [
                f"{len(made)} recorded calls used {len(made)} different {kind} objects, each called once.",
                f"Their weights are new each time: {say(weights[0].value)}, then {say(weights[1].value)}.",
            ],
            why="What forward creates is gone when it returns; no optimizer and no state_dict holds it.",
            fix=f"Create the {kind} once in __init__ and keep it as an attribute.",
            evidence=[facts.evidence(call, f"a {kind} that had not been seen before was called") for call in made[:3]],
            subjects=[facts.describe(tensor) for call in made for _, tensor in facts.modules[call.module].parameters],
        )


def _construction(facts: Facts, site: SiteId | None, kind: str) -> Place | None:
    """The line in the same `forward` where the layer is made."""
    known = facts.site(site)
    if known is None:
        return None
    source = facts.source(known.path)
    function: Function | None = source.function_at(known.line)
    if not isinstance(function, ast.FunctionDef) or function.name not in ("forward", "__call__"):
        return None
    made = [call for call in calls(function, kind) if call.lineno <= known.end_line]
    return facts.line(known.path, made[-1].lineno) if made else None
