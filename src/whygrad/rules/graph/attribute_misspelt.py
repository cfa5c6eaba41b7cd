"""WG219: requires_grad was misspelt, or set as an attribute of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradWritten, Module
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import ran

MISSPELT = frozenset(
    {"require_grad", "require_grads", "requires_grads", "required_grad", "requiresgrad", "requires_gradient"}
)


class AttributeMisspelt(Rule):
    """Freezing has no effect: require_grad (misspelt), or model.requires_grad = False on a module.

    Python lets any attribute be set. `p.require_grad = False` makes an attribute that PyTorch does not know, and
    `model.requires_grad = False` one that a module does not use: its parameters keep `requires_grad` True, get
    gradients and are trained.

    **How to see it.** `[p.requires_grad for p in model.parameters()]` after the line.

    **How to put it right.** `p.requires_grad = False` for a tensor, `model.requires_grad_(False)` for a module.
    """

    code = "WG219"
    slug = "attribute-misspelt"
    search = ("require_grad", "model.requires_grad = False does not freeze", "frozen layer still trains")
    wrong = (
        """
        import torch
        model = torch.nn.Linear(3, 1)
        model.weight.require_grad = False  # <- here
        model(torch.randn(4, 3)).sum().backward()
        """,
        """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
        model[0].requires_grad = False  # <- here
        model(torch.randn(4, 3)).sum().backward()
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
        model[0].requires_grad_(False)
        model[1].bias.requires_grad = False
        for p in model[0].parameters():
            p.requires_grad = False
        model(torch.randn(4, 3)).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        modules = {module.path: module for module in facts.of(Module) if module.path}
        for path in facts.ledger.sources():
            source = facts.source(path)
            for node in ast.walk(source.tree):
                if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                    continue
                target = node.targets[0]
                if isinstance(target, ast.Attribute) and ran(facts, source, node):
                    yield from self._assigned(facts, source, node, target, modules)

    def _assigned(
        self, facts: Facts, source: Source, node: ast.Assign, target: ast.Attribute, modules: dict[str, Module]
    ) -> Iterator[Finding]:
        owner = source.segment(target.value)
        told = f"`{source.segment(node)}` ran; "
        if target.attr in MISSPELT:
            yield self._say(
                facts, source, node, f"{target.attr} is no attribute of tensors: requires_grad is meant",
                told + "PyTorch has no such attribute, so nothing changed.", "requires_grad", target,
            )  # fmt: skip
        elif target.attr == "requires_grad" and (module := _module(owner, modules)) is not None:
            below = [
                tensor
                for path, one in modules.items()
                if path == module.path or path.startswith(module.path + ".")
                for _, tensor in one.parameters
            ]
            got = sum(1 for write in {w.tensor for w in facts.of(GradWritten)} if write in below)
            number = f"{got} of its {len(below)} parameters got gradients in this run" if below else "nothing changed"
            yield self._say(
                facts, source, node, f"{owner} is a module: setting requires_grad on it freezes nothing",
                f"{told}{owner} is a {module.kind}, whose parameters have their own requires_grad: {number}.",
                "", target,
            )  # fmt: skip

    def _say(
        self,
        facts: Facts,
        source: Source,
        node: ast.Assign,
        title: str,
        happened: str,
        spelling: str,
        target: ast.Attribute,
    ) -> Finding:
        line = source.line(node.lineno)
        end = len(line.encode()[: target.end_col_offset].decode("utf-8", "replace"))
        edits: tuple[Edit, ...] = ()
        if spelling:
            edits = (Edit(source.path, node.lineno, end - len(target.attr), node.lineno, end, spelling),)
        elif node.end_lineno == node.lineno and node.end_col_offset is not None:
            last = len(line.encode()[: node.end_col_offset].decode("utf-8", "replace"))
            edits = (Edit(source.path, node.lineno, end, node.lineno, last, f"_({source.segment(node.value)})"),)
        fix = "Spell it requires_grad." if spelling else "Call requires_grad_(...) on the module."
        return self.finding(
            facts,
            facts.line(source.path, node.lineno),
            title,
            [happened],
            why="Python sets any attribute on any object, known or not.",
            fix=fix,
            evidence=[],
            subjects=[source.segment(target.value)],
            edits=edits,
        )


def _module(owner: str, modules: dict[str, Module]) -> Module | None:
    """The module that an expression means: `model[0]` is `model.0`."""
    path = owner.replace("[", ".").replace("]", "")
    return modules.get(path)
