"""WG525: an optimizer gets an iterator of parameters that was used up before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Raised
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, dotted, replace

EMPTY = "optimizer got an empty parameter list"
LAZY = frozenset({"parameters", "named_parameters", "filter", "map", "chain", "iter"})


class IteratorUsedUp(Rule):
    """optimizer got an empty parameter list, although the model has parameters.

    `model.parameters()` and `filter(...)` give *iterators*: they can be gone through once. A loop that counts or prints
    the parameters, or a first optimizer, leaves nothing for the next user.

    **How to put it right.** Keep a list, `parameters = list(model.parameters())`, or call `model.parameters()` again.
    """

    code = "WG525"
    slug = "iterator-used-up"
    search = ("ValueError: optimizer got an empty parameter list", "model.parameters() generator empty second time")
    wrong = (
        """
        import torch
        model = torch.nn.Linear(4, 1)
        parameters = model.parameters()  # <- here
        print(sum(p.numel() for p in parameters))
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Linear(4, 1)
        parameters = list(model.parameters())
        print(sum(p.numel() for p in parameters))
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            place = facts.place(raised.site)
            if EMPTY not in raised.text or not place.path:
                continue
            source = facts.source(place.path)
            found = _iterator(source, place.line)
            if found is not None:
                name, value = found
                yield self.finding(
                    facts,
                    facts.line(place.path, value.lineno),
                    f"{name} is an iterator, and was used up before the optimizer got it",
                    [f"{place.where} raised: {raised.text}. `{name}` can be gone through once, and had been."],
                    why="parameters() and filter() give iterators; the first loop over one leaves it empty.",
                    fix=f"Make it a list: {name} = list(...).",
                    evidence=[facts.evidence(raised, raised.text)],
                    subjects=[name],
                    edits=_edits(source, value),
                )


def _iterator(source: Source, line: int) -> tuple[str, ast.expr] | None:
    """The variable that the statement uses and that holds an iterator, and the expression that gave it."""
    statement = source.statement(line)
    used = {dotted(node) for node in ast.walk(statement)} if statement is not None else set()
    for _, target, value in assignments(source.tree):
        name = dotted(target)
        lazy = isinstance(value, ast.GeneratorExp) or callee(value) in LAZY
        if name in used and lazy and value.lineno < line:
            return name, value
    return None


def _edits(source: Source, value: ast.expr) -> list[Edit]:
    return [replace(source, value, f"list({source.segment(value)})")]
