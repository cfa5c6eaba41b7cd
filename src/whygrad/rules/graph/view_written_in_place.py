"""WG220: an in-place operation on a view that does not allow it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import ModuleCalled, Raised
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Place, Severity
from whygrad.rules.graph.saved_value_written import inplace_module
from whygrad.rules.rule import Rule

TEXT = re.compile(
    r"is a view and is being modified inplace|a view was created in no_grad mode|view .* modified inplace"
)


class ViewWrittenInPlace(Rule):
    """Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace.

    A module with a full backward hook hands on views of its outputs, and `unbind`, `split` or `chunk` give several
    views of one tensor. Writing into one of them in place (`nn.ReLU(inplace=True)` behind the hooked layer,
    `part += 1`) would break the gradient of the others, so PyTorch refuses.

    **How to put it right.** Leave `inplace=True` out behind that layer; write `part = part + 1`.
    """

    code = "WG220"
    slug = "view-written-in-place"
    search = (
        "is a view and is being modified inplace", "BackwardHookFunctionBackward", "output of a function that returns "
        "multiple views", "full backward hook inplace ReLU",
    )  # fmt: skip
    wrong = (
        """
        import torch
        from torch import nn
        first = nn.Linear(4, 4)
        model = nn.Sequential(first, nn.ReLU(inplace=True))  # <- here
        first.register_full_backward_hook(lambda *given: None)
        model(torch.randn(2, 4)).sum().backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        first = nn.Linear(4, 4)
        model = nn.Sequential(first, nn.ReLU())
        first.register_full_backward_hook(lambda *given: None)
        model(torch.randn(2, 4)).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            if TEXT.search(raised.text):
                found = self._found(facts, raised)
                yield found if raised.caught is None else msgspec.structs.replace(found, severity=Severity.NOTE)

    def _found(self, facts: Facts, raised: Raised) -> Finding:
        where = facts.place(raised.site)
        place: Place = where
        edits: tuple[Edit, ...] = ()
        for call in facts.of(ModuleCalled):
            module = facts.modules.get(call.module)
            if call.error and module is not None and (built := inplace_module(facts, module.kind)) is not None:
                place, edits = built
                break
        return self.finding(
            facts,
            place,
            "a view is written in place, which its other views do not allow",
            [f"`{where.code}` ({where.where}) raised: {raised.text.partition('. ')[0]}."],
            why="A write into one view would change what the others saved for their backward.",
            fix="Write out of place there (no inplace=True, `x = x + y` instead of `x += y`).",
            evidence=[facts.evidence(raised, "PyTorch refused the write")],
            edits=edits,
        )
