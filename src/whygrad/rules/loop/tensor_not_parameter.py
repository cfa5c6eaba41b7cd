"""WG518: a learnable tensor of a module is no parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.loop.layers_in_container import hidden_in
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import argument, assignments, class_of, dotted, replace
from whygrad.rules.untrained import Untrained, untrained


class TensorNotParameter(Rule):
    """A tensor with `requires_grad=True` in a module is not trained: it is no `nn.Parameter`.

    A module registers `nn.Parameter`s. A plain tensor that requires grad works in `forward` and gets a gradient, but
    `model.parameters()`, `model.to(device)` and `state_dict()` do not contain it: no optimizer moves it. The same
    happens to `nn.Parameter(...)` that was passed through another operation (`nn.Parameter(x) * 0.1`,
    `nn.Parameter(x).to(device)`): the result is a plain tensor.

    **How to put it right.** `self.w = nn.Parameter(tensor)`; for a constant, `self.register_buffer("w", tensor)`.
    """

    code = "WG518"
    slug = "tensor-not-parameter"
    explains = ("WG504",)
    search = (
        "requires_grad=True tensor in nn.Module not in parameters()",
        "nn.Parameter vs tensor requires_grad",
        "self.weight not updated",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)
                self.scale = torch.ones(1, requires_grad=True)  # <- here

            def forward(self, x):
                return self.layer(x) * self.scale

        model = Scaled()
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

        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)
                self.scale = nn.Parameter(torch.ones(1))
                self.shift = torch.ones(1)

            def forward(self, x):
                return self.layer(x) * self.scale + self.shift

        model = Scaled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4, requires_grad=True), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for one in untrained(facts):
            if one.tensor in facts.owners or one.tensor in hidden_in(facts):
                continue
            found = _attribute(facts, one.tensor)
            if found is not None:
                yield self._finding(facts, one, *found)

    def _finding(self, facts: Facts, one: Untrained, source: Source, name: str, value: ast.expr) -> Finding:
        known = facts.tensors[one.tensor]
        return self.finding(
            facts,
            facts.line(source.path, value.lineno),
            f"{name} requires grad and is no nn.Parameter",
            [
                f"{facts.place(one.write.site).where} wrote its gradient ({say(one.write.after)}); no "
                "module's parameters "
                f"contain it, no optimizer holds it, and it did not move.",
            ],
            why="Modules register nn.Parameter objects only; parameters() gives what is registered.",
            fix=f"{name} = nn.Parameter(...).",
            evidence=[
                facts.evidence(known, f"a plain tensor of shape {known.shape} that requires grad"),
                facts.evidence(one.write, f"its gradient was written: {say(one.write.after)}"),
            ],
            subjects=[facts.describe(one.tensor)],
            severity=Severity.ERROR,
            edits=_edits(source, value),
        )


def _attribute(facts: Facts, tensor: TensorId) -> tuple[Source, str, ast.expr] | None:
    """The assignment `self.name = ...`, in the class of a called module, that gives the tensor its name."""
    kinds = {facts.modules[call.module].kind for call in facts.of(ModuleCalled) if call.module in facts.modules}
    site = facts.site(facts.tensors[tensor].site)
    names = {name.rpartition(".")[2] for name in facts.ledger.names(tensor) if "." in name}
    for path in facts.ledger.sources():
        source = facts.source(path)
        for statement, target, value in assignments(source.tree):
            name = dotted(target)
            owner = class_of(source, statement)
            if not name.startswith("self.") or owner is None or owner.name not in kinds:
                continue
            here = (
                site is not None and site.path == path and statement.lineno <= site.line <= (statement.end_lineno or 0)
            )
            if here or (name[5:] in names and _is_plain(source, value)):
                return source, name, value
    return None


def _is_plain(source: Source, value: ast.expr) -> bool:
    return "requires_grad" in source.segment(value) and "Parameter" not in source.segment(value)


def _edits(source: Source, value: ast.expr) -> list[Edit]:
    if not isinstance(value, ast.Call) or argument(value, "requires_grad") is None:
        return []
    kept = [source.segment(each) for each in value.args]
    kept += [source.segment(each) for each in value.keywords if each.arg != "requires_grad"]
    prefix = (
        "nn" if any(isinstance(node, ast.Name) and node.id == "nn" for node in ast.walk(source.tree)) else "torch.nn"
    )
    return [replace(source, value, f"{prefix}.Parameter({source.segment(value.func)}({', '.join(kept)}))")]
