"""WG215: a leaf that requires grad is written in place with gradients on."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import Raised
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.rule import Rule

TEXTS = (
    "a leaf Variable that requires grad is being used in an in-place operation",
    "a view of a leaf Variable that requires grad is being used in an in-place operation",
)


class LeafWrittenInPlace(Rule):
    """a leaf Variable that requires grad is being used in an in-place operation.

    A hand-written update (`w -= lr * w.grad`), an initialisation (`layer.weight[0] = 0`) or `w.add_(1)` writes into a
    leaf while autograd records. The leaf would lose its old value and become the result of an operation, so PyTorch
    refuses.

    **How to put it right.** Put the write under `with torch.no_grad():`, where it is not recorded.
    """

    code = "WG215"
    slug = "leaf-written-in-place"
    search = (*TEXTS, "manual weight update error")
    wrong = (
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        (w * 2).sum().backward()
        w -= 0.1 * w.grad  # <- here
        """,
    )
    right = (
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        (w * 2).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            if any(text in raised.text for text in TEXTS):
                yield self._found(facts, raised)

    def _found(self, facts: Facts, raised: Raised) -> Finding:
        place = facts.place(raised.site)
        return self.finding(
            facts,
            place,
            "a leaf that requires grad is written in place with gradients on",
            [f"`{place.code}` ({place.where}) raised: {raised.text}"],
            why="A recorded write would turn the leaf into the result of an operation.",
            fix="Put the write under `with torch.no_grad():`.",
            evidence=[facts.evidence(raised, "PyTorch refused the write")],
            edits=_under_no_grad(facts, raised),
            severity=Severity.NOTE if raised.caught is not None else None,
        )


def _under_no_grad(facts: Facts, raised: Raised) -> tuple[Edit, ...]:
    place = facts.place(raised.site)
    source = facts.source(place.path)
    statement = source.statement(place.line)
    if statement is None or statement.lineno != statement.end_lineno or "torch" not in source.text:
        return ()
    line = statement.lineno
    if source.line(line)[: statement.col_offset].strip():
        return ()
    indent = " " * statement.col_offset
    return (Edit(place.path, line, 0, line, statement.col_offset, f"{indent}with torch.no_grad():\n{indent}    "),)
