"""Assignments that look like a switch of `requires_grad` and are none: a misspelt name, or a module's attribute."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygrad.answers.why.answer import Sentence
from whygrad.answers.why.expression import canonical
from whygrad.ledger import Ledger
from whygrad.ledger.events import Tensor

_ASSIGNMENT = re.compile(r"^\s*(?P<owner>[\w.\[\]\"']+?)\.(?P<name>requires?_grad(?:ient)?)\s*=(?!=)")


def misspelt(ledger: Ledger, name: str, known: Tensor) -> Iterator[Sentence]:
    """Lines of the program's text that meant to switch the flag of this tensor, and did not."""
    names = {canonical(each) for each in (name, *ledger.names(known.id), ledger.name(known.id))}
    for path in ledger.sources():
        for line, text in enumerate((ledger.source(path) or "").splitlines(), 1):
            match = _ASSIGNMENT.match(text)
            if match is None:
                continue
            owner, attribute = canonical(match["owner"]), match["name"]
            if owner in names and attribute != "requires_grad":
                yield Sentence(
                    f"Line {line} sets .{attribute}, which is no attribute of tensors; it is spelled requires_grad."
                )
            elif owner not in names and any(each.startswith(owner + ".") for each in names):
                yield Sentence(
                    f"Line {line} sets {match['owner']}.{attribute}, an attribute of the module that switches "
                    f"nothing; {match['owner']}.requires_grad_(...) does."
                )
