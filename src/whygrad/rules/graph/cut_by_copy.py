"""WG201: numbers are copied out of the graph and come back without history."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.answers.why.flow import Made
from whygrad.ledger.events import Operand
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.lost import (
    COPIES,
    Lost,
    evidence,
    happened,
    lost_by,
    names_of,
    operation_of,
    place_of,
    severity_of,
    without_suffix,
)
from whygrad.rules.rule import Rule


class CutByCopy(Rule):
    """The gradient is None since the value was copied out of the graph.

    `torch.tensor(...)` of tensors, `.item()`, `float()`, `.tolist()`, `.numpy()` and `np.array(...)` give numbers.
    A tensor made from them has the right value and no history: backward stops there, and everything before it keeps
    `.grad` None, or "element 0 of tensors does not require grad and does not have a grad_fn" is raised. A new tensor
    with `requires_grad=True` does not help: it is a new leaf.

    **How to see it.** The loss changes when the parameter changes, but its `.grad` stays None.

    **How to put it right.** Stay in tensors: build a matrix with `torch.stack` or `torch.cat`, use the tensor itself
    instead of its `.item()`, write NumPy steps with torch functions. Take numbers out only for printing.
    """

    code = "WG201"
    slug = "cut-by-copy"
    intended = "the value is to be a constant of the loss"
    search = (
        "grad is None after backward", "torch.tensor of tensors no gradient", "requires_grad=True on loss",
        "Converting a tensor with requires_grad=True to a scalar", "numpy breaks gradient", "item() breaks graph",
    )  # fmt: skip
    wrong = (
        """
        import torch
        angle = torch.tensor(0.1, requires_grad=True)
        shift = torch.zeros(2, requires_grad=True)
        optimizer = torch.optim.SGD([angle, shift], lr=0.1)
        points = torch.randn(9, 2)
        for _ in range(3):
            rotation = torch.tensor([[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]])  # <- here
            loss = (points @ rotation.T + shift - 1.0).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        scale = torch.tensor(2.0, requires_grad=True)
        bias = torch.tensor(0.0, requires_grad=True)
        optimizer = torch.optim.SGD([scale, bias], lr=0.1)
        for _ in range(3):
            factor = scale.exp().item()  # <- here
            loss = (factor * torch.ones(3) + bias).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        angle = torch.tensor(0.1, requires_grad=True)
        optimizer = torch.optim.SGD([angle], lr=0.1)
        points = torch.randn(9, 2)
        losses = []
        for _ in range(3):
            rows = [torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])]
            loss = (points @ torch.stack(rows).T - 1.0).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean = torch.tensor(losses).mean()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for one in lost_by(facts, COPIES):
            yield self._found(facts, one)

    def _found(self, facts: Facts, one: Lost) -> Finding:
        names = names_of(facts, one.leaves)
        what = {"torch.tensor": "torch.tensor(...)", "item": ".item()", "tolist": ".tolist()", "numpy": ".numpy()"}
        by = what.get(one.cut.cut, f"{one.cut.cut}()")
        return self.finding(
            facts,
            place_of(facts, one.cut),
            f"{names} gets no gradient: {by} copies numbers out of the graph",
            happened(facts, one),
            why="A copy of the numbers has no history, so backward cannot go past it.",
            fix="Compute with the tensors themselves (torch.stack or torch.cat to put them together).",
            evidence=evidence(facts, one),
            subjects=[facts.describe(leaf) for leaf in one.leaves],
            severity=severity_of(one, self.severity),
            edits=_stacked(facts, one.cut) or without_suffix(facts, None if one.cut.line else one.cut.site, ("item",)),
        )


def _stacked(facts: Facts, cut: Made) -> tuple[Edit, ...]:
    """`torch.tensor([a, b])` as `torch.stack([a, b])`, where every entry is a tensor."""
    operation = operation_of(facts, cut)
    site = facts.site(cut.site)
    if operation is None or site is None or cut.cut != "torch.tensor" or len(operation.inputs) != 1:
        return ()
    source = facts.source(site.path)
    node = source.expression(site)
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return ()
    text = _stack(source.segment, node.args[0], operation.inputs[0])
    return (Edit(site.path, site.line, site.column, site.end_line, site.end_column, text),) if text else ()


def _stack(segment: object, node: ast.expr, operand: Operand) -> str:
    if operand.tensor is not None:
        return segment(node) if callable(segment) else ""
    if not isinstance(node, ast.List | ast.Tuple) or not operand.items or len(operand.items) != len(node.elts):
        return ""
    parts = [_stack(segment, child, item) for child, item in zip(node.elts, operand.items, strict=True)]
    return f"torch.stack([{', '.join(parts)}])" if all(parts) else ""
