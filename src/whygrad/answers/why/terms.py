"""The terms of one gradient: through which expressions a backward pass sent it to a leaf."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

import msgspec

from whygrad.answers.why.arithmetic import close, difference, total
from whygrad.answers.why.expression import canonical
from whygrad.answers.why.words import code_of, is_finite, is_spelled_out, joined, short_text
from whygrad.ledger import Ledger
from whygrad.ledger.events import Contribution, GradReturned, GradWritten, Node, SiteId
from whygrad.ledger.values import Value

SHOWN = 6
"""Terms that one sentence spells out."""

USES_SHOWN = 3
"""A term that came in up to so many parts is shown as their sum."""

PYTORCHS = frozenset({"BackwardHookFunctionBackward", "CheckpointFunctionBackward"})
"""Functions of PyTorch's own that look like a user's."""

_CUSTOM = re.compile(r"(\w+?)Backward$")


class Term(msgspec.Struct, frozen=True):
    """What came through one expression: the `parts` (one for each use of the leaf), and their sum."""

    value: Value | None
    parts: tuple[Value, ...]
    site: SiteId | None
    through: str

    @property
    def times(self) -> int:
        return len(self.parts)


def arrived(ledger: Ledger, event: GradWritten | GradReturned) -> tuple[Term, ...]:
    """The terms of one write, or of one returned gradient."""
    folded: dict[Hashable, list[Contribution]] = {}
    for part in event.contributions:
        folded.setdefault((part.site, _through(ledger, part)), []).append(part)
    return tuple(
        Term(
            value=total([part.value for part in parts]) if len(parts) > 1 else parts[0].value,
            parts=tuple(part.value for part in parts),
            site=parts[0].site,
            through=_through(ledger, parts[0]),
        )
        for parts in folded.values()
    )


def amount(written: GradWritten) -> Value | None:
    """What one backward added: the change of the buffer, or the sum of the terms where that says the same."""
    if written.before is None:
        return written.after
    came = total([part.value for part in written.contributions]) if written.contributions else None
    changed = difference(written.after, written.before)
    if came is not None and not is_finite(changed):  # infinity less infinity tells nothing
        return came
    return came if came is not None and (changed is None or close(changed, came)) else changed


def all_through(parts: Sequence[Term]) -> str:
    """The expressions of one backward, for a pair of brackets."""
    names = list(dict.fromkeys(part.through for part in parts))
    return joined(names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} other expressions"])


def sum_of_terms(ledger: Ledger, parts: Sequence[Term]) -> str:
    """`27 through w ** 3 (line 7) + 20 through w * 2 (line 6)`."""
    shown = list(parts) if len(parts) <= SHOWN else list(parts[: SHOWN - 1])
    texts = [_term(ledger, part) for part in shown]
    if len(parts) > len(shown):
        texts.append(f"{len(parts) - len(shown)} further terms")
    return " + ".join(texts)


def place_of(ledger: Ledger, part: Term) -> str:
    return f" ({ledger.where(part.site)})" if part.site is not None else ""


def custom_function(node: Node | None) -> str:
    """The name of the autograd.Function of the user's own that made a node; empty for PyTorch's nodes."""
    match = _CUSTOM.fullmatch(node.name) if node is not None and node.name not in PYTORCHS else None
    return match[1] if match is not None else ""


def uses_text(part: Term) -> str:
    """How several uses add up: `3 + 3, one for each use`, or how many there were."""
    if part.times <= USES_SHOWN and all(is_spelled_out(value) for value in part.parts):
        return f"{' + '.join(short_text(value) for value in part.parts)}, one for each use"
    last = f", the last of them {short_text(part.parts[-1])}" if is_spelled_out(part.parts[-1]) else ""
    return f"the sum of {part.times} terms, one for each use{last}"


def _term(ledger: Ledger, part: Term) -> str:
    size = short_text(part.value) if part.value is not None else f"{part.times} terms"
    times = f", used {part.times} times" if part.times > 1 else ""
    return f"{size} through {part.through}{place_of(ledger, part)}{times}"


def _through(ledger: Ledger, part: Contribution) -> str:
    """`w * 2.0`, or `model.0 in model(x)`, or the operation's name where no line is known."""
    node = ledger.node(part.node)
    code = code_of(ledger, part.site)
    if custom := custom_function(node):
        return f"{custom}.apply" if custom not in code else code
    if not code:
        return part.operation
    module = ledger.module(node.module) if node is not None else None
    if module is None or not module.path or canonical(code).startswith(module.path + "("):
        return code
    site = ledger.site(part.site)
    if site is not None and module.kind in site.function.split("."):  # the module's own code says it all
        return code
    return f"{module.path} in {code}"
