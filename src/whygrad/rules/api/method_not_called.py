"""WG903: a method stands on its line without being called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import dotted, ran, replace, sites_in

METHODS = frozenset(
    {"step", "zero_grad", "backward", "train", "eval", "detach_", "requires_grad_", "reset_parameters", "update",
     "zero_", "retain_grad", "init_weights"}
)  # fmt: skip


class MethodNotCalled(Rule):
    """`optimizer.step` without parentheses does nothing.

    Without `()` the line only looks a method up and throws it away. Python says nothing: no gradient is reset, no step
    is made, the mode does not change. What follows looks like another fault: gradients that add up, a loss that stays
    where it is, dropout in validation.

    **How to put it right.** Add the parentheses.
    """

    code = "WG903"
    slug = "method-not-called"
    explains = ("WG101", "WG102", "WG103", "WG104", "WG109", "WG511", "WG302", "WG301", "WG307")
    search = ("optimizer.zero_grad without parentheses", "model.eval without parentheses", "optimizer.step not called")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            optimizer.zero_grad  # <- here
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        reset = optimizer.zero_grad
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            reset()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        if not facts.events:
            return
        for path in facts.ledger.sources():
            source = facts.source(path)
            for node in ast.walk(source.tree):
                if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Attribute):
                    continue
                if node.value.attr in METHODS and dotted(node.value) and ran(facts, source, node):
                    yield self._finding(facts, source, node, node.value)

    def _finding(self, facts: Facts, source: Source, node: ast.Expr, value: ast.Attribute) -> Finding:
        block = source.parents.get(node, node)
        near = {site.id for site in sites_in(facts, source, block)} if not isinstance(block, ast.Module) else set()
        event = next((one for one in facts.events if one.site in near), facts.events[0])
        return self.finding(
            facts,
            facts.line(source.path, node.lineno),
            f"{dotted(value)} is named, not called",
            [f"`{source.segment(node)}` looks the method up and drops it: nothing was called on that line."],
            why="Without () Python evaluates the method itself.",
            fix=f"{dotted(value)}()",
            evidence=[facts.evidence(event, "the lines around it ran")],
            edits=_edits(source, value),
        )


def _edits(source: Source, value: ast.Attribute) -> list[Edit]:
    return [replace(source, value, f"{source.segment(value)}()")]
