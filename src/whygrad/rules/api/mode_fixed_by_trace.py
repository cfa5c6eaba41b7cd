"""WG908: a traced function keeps the mode that the module had when it was traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import ModeChanged, ModuleCalled
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, calls, dotted, ran


class ModeFixedByTrace(Rule):
    """`train()` and `eval()` have no effect on a traced model.

    `torch.jit.trace` records the operations of one run. Whether dropout was on is part of that recording: a model
    traced in evaluation mode never drops anything again, one traced in training mode always does, whatever is called
    on the module afterwards.

    **How to put it right.** Trace once for each mode, or use `torch.compile` or `torch.jit.script`.
    """

    code = "WG908"
    slug = "mode-fixed-by-trace"
    severity = Severity.WARNING
    search = ("torch.jit.trace dropout eval", "traced model ignores train()", "jit trace training mode")
    wrong = (
        """
        import torch
        model = torch.nn.Dropout(0.5)
        traced = torch.jit.trace(model.eval(), torch.ones(4))
        model.train()  # <- here
        print(traced(torch.ones(4)))
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Linear(4, 2)
        model.train()
        model(torch.ones(4)).sum().backward()
        model.eval()
        traced = torch.jit.trace(model, torch.ones(4))
        print(traced(torch.ones(4)))
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for path in facts.ledger.sources():
            source = facts.source(path)
            for statement, target, value in assignments(source.tree):
                if callee(value) != "trace" or not isinstance(value, ast.Call) or not value.args:
                    continue
                traced, model = dotted(target), _model(value.args[0])
                switch = _switch(source, model, traced, statement.lineno)
                if traced and model and switch is not None and ran(facts, source, switch):
                    yield self._finding(facts, source, statement, traced, model, switch)

    def _finding(
        self, facts: Facts, source: Source, statement: ast.stmt, traced: str, model: str, switch: ast.Call
    ) -> Finding:
        events: list[ModeChanged | ModuleCalled] = [*facts.of(ModeChanged), *facts.of(ModuleCalled)]
        here = [one for one in events if facts.place(one.site).line == switch.lineno]
        evidence = [facts.evidence(one, "the mode was switched after the trace") for one in (here or events)[:1]]
        return self.finding(
            facts,
            facts.line(source.path, switch.lineno),
            f"{traced} keeps the mode that {model} had when it was traced",
            [
                f"Line {statement.lineno} traced {model}; `{source.segment(switch)}` comes after it and does not reach "
                f"{traced}.",
            ],
            why="A trace is a list of operations; the training flag was read while it was recorded.",
            fix="Trace the model again after switching its mode, or use torch.compile.",
            evidence=evidence,
            subjects=[model, traced],
        )


def _model(node: ast.expr) -> str:
    """`model` of `model`, `model.eval()` or `model.train()`."""
    if isinstance(node, ast.Call) and callee(node) in ("eval", "train") and isinstance(node.func, ast.Attribute):
        return dotted(node.func.value)
    return dotted(node)


def _switch(source: Source, model: str, traced: str, line: int) -> ast.Call | None:
    """A change of the model's mode after the trace, and before a call of what was traced."""
    last = max((call.lineno for call in calls(source.tree) if dotted(call.func) == traced), default=0)
    for call in calls(source.tree, "train", "eval"):
        if line < call.lineno <= last and dotted(call.func).rpartition(".")[0] in (model, traced):
            return call
    return None
