"""WG904: a module's forward is called past its hooks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Operation
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import calls, dotted, ran, replace, sites_in

HOOKS = ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "weight_norm",
         "spectral_norm", "DistributedDataParallel", "DDP", "register_full_backward_pre_hook")  # fmt: skip


class ForwardCalled(Rule):
    """`model.forward(x)` skips the module's hooks.

    Calling a module, `model(x)`, runs its hooks around `forward`: those that you registered, and those that weight
    normalisation, pruning or distributed training put there. `model.forward(x)` runs none of them: features are not
    captured, a normalised weight is not recomputed, gradients are not synchronised.

    **How to put it right.** Call the module: `model(x)`.
    """

    code = "WG904"
    slug = "forward-called"
    severity = Severity.WARNING
    search = ("forward hook not called", "model.forward(x) vs model(x)", "register_forward_hook does not run")
    wrong = (
        """
        import torch
        model = torch.nn.Linear(3, 1)
        seen = []
        model.register_forward_hook(lambda module, inputs, output: seen.append(output))
        loss = model.forward(torch.ones(2, 3)).mean()  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn

        class Wide(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 2

        model = Wide(3, 1)
        seen = []
        model.register_forward_hook(lambda module, inputs, output: seen.append(output))
        loss = model(torch.ones(2, 3)).mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for path in facts.ledger.sources():
            source = facts.source(path)
            hooked = next(iter(calls(source.tree, *HOOKS)), None)
            for call in calls(source.tree, "forward"):
                owner = dotted(call.func)[: -len(".forward")] if isinstance(call.func, ast.Attribute) else ""
                named = bool(owner) and owner != "self" and not owner[:1].isupper()
                hooks = any(dotted(one.func).rpartition(".")[0] == owner for one in calls(source.tree, *HOOKS))
                is_module = named and (hooks or _is_module(facts, owner))
                if is_module and ran(facts, source, call):
                    yield self._finding(facts, source, call, owner, hooked)

    def _finding(self, facts: Facts, source: Source, call: ast.Call, owner: str, hooked: ast.Call | None) -> Finding:
        inside = {site.id for site in sites_in(facts, source, call)}
        event = next(
            (one for one in facts.of(Operation) if one.site in inside),
            next((one for one in facts.events if one.site in inside), facts.events[0]),
        )
        told = f"Line {hooked.lineno} registers a hook; it did not run for this call." if hooked is not None else ""
        return self.finding(
            facts,
            facts.line(source.path, call.lineno),
            f"{owner}.forward() is called directly, past the module's hooks",
            [f"`{source.segment(call)}` runs forward alone.", *([told] if told else [])],
            why="Hooks run in the module's __call__, which calls forward.",
            fix=f"Call the module: {owner}(...).",
            evidence=[facts.evidence(event, "forward ran without a call of the module around it")],
            subjects=[owner],
            severity=Severity.WARNING if hooked is not None else Severity.NOTE,
            edits=_edits(source, call),
        )


def _is_module(facts: Facts, owner: str) -> bool:
    tail = owner.removeprefix("self.")
    return any(m.path == owner or m.path.endswith(f".{tail}") for m in facts.modules.values())


def _edits(source: Source, call: ast.Call) -> list[Edit]:
    return [replace(source, call.func, source.segment(call.func)[: -len(".forward")])]
