"""Reads the text of a line that failed: which names it used, and on what it called backward()."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.answers.why.expression import canonical
from whygrad.answers.why.failure import Failure
from whygrad.ledger import Ledger
from whygrad.ledger.events import BackwardBegan, Named, Operation, Tensor, TensorId
from whygrad.ledger.names import Bindings


def operands(ledger: Ledger, failure: Failure) -> list[tuple[str, Tensor]]:
    """The tensors whose names stand in the failed line, as the names were bound just before; longest names first."""
    site = ledger.site(failure.site)
    if site is None:
        return []
    found: dict[str, Tensor] = {}
    for text in _chains(site.code):
        if any(other.startswith((text + ".", text + "[")) for other in found):
            continue
        known = ledger.tensor(bound(ledger, text, failure.seq, site.function))
        if known is not None and known.origin != "grad":
            found[text] = known
    return list(found.items())


def inner_results(ledger: Ledger, failure: Failure) -> list[tuple[str, Tensor]]:
    """What the expressions inside the failed line gave just before it failed, by their text."""
    site = ledger.site(failure.site)
    if site is None:
        return []
    found: dict[str, Tensor] = {}
    for operation in ledger.of(Operation):
        if operation.seq >= failure.seq:
            break
        inner = ledger.site(operation.site)
        if inner is None or inner.path != site.path or not operation.outputs:
            continue
        within = (site.line, site.column) <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= (
            site.end_line,
            site.end_column,
        )
        known = ledger.tensor(operation.outputs[0])
        if within and known is not None:
            found[inner.code] = known
    return [
        (code, known) for code, known in found.items() if not any(code in other for other in found if other != code)
    ]


def bound(ledger: Ledger, name: str, before: int, function: str) -> TensorId | None:
    """The tensor that `name` meant in `function` just before event `before`."""
    wanted = canonical(name)
    bindings = Bindings(wanted)
    for named in ledger.of(Named):
        if named.seq >= before:
            break
        if canonical(named.name) == wanted:
            bindings.bind(msgspec.structs.replace(named, name=wanted))
    return bindings.seen_from(function)


def receiver(ledger: Ledger, failure: Failure) -> str:
    """What the failed line called backward() on, as written: `loss`, `(w * 2).sum()`; empty if it called none."""
    site = ledger.site(failure.site)
    return _receiver(site.code) if site is not None else ""


def root_of(ledger: Ledger, failure: Failure) -> TensorId | None:
    """The tensor that the failed line called backward() on."""
    code = receiver(ledger, failure)
    site = ledger.site(failure.site)
    if not code or site is None:
        return None
    if (tensor := bound(ledger, code, failure.seq, site.function)) is not None:
        return tensor
    found = None
    for operation in ledger.of(Operation):
        if operation.seq >= failure.seq:
            break
        made_by = ledger.site(operation.site)
        same_line = made_by is not None and site.line <= made_by.line <= site.end_line
        if made_by is not None and same_line and operation.outputs and _same(made_by.code, code):
            found = operation.outputs[0]
    return found


def root_name(ledger: Ledger, began: BackwardBegan) -> str:
    """What a pass started from, as its line calls it: `loss` rather than an older name of the same tensor."""
    site = ledger.site(began.site)
    code = _receiver(site.code) if site is not None else ""
    if len(began.roots) != 1:
        return f"{len(began.roots)} tensors" if began.roots else "a tensor"
    root = began.roots[0]
    if code.isidentifier() and code in ledger.names(root):
        return code
    name = ledger.name(root)
    return name or (f"`{code}`" if code and len(code) <= 60 else ledger.describe(root))


def _receiver(code: str) -> str:
    tree = parsed(code)
    for node in ast.walk(tree) if tree is not None else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("backward", "grad")
        ):
            owner = ast.unparse(node.func.value)
            if owner.endswith("autograd"):
                return ast.unparse(node.args[0]) if node.args else ""
            if node.func.attr == "backward":
                return owner
    return ""


def parsed(code: str) -> ast.Module | None:
    """The tree of a piece of code: a statement, an expression, or the header of a block."""
    for text in (code, code.rstrip().rstrip(":") + ": pass", f"({code})"):
        try:
            return ast.parse(text.strip())
        except (SyntaxError, ValueError):
            continue
    return None


def _chains(code: str) -> list[str]:
    """The names, attribute chains and items that a piece of code reads, longest first."""
    tree = parsed(code)
    chains = dict.fromkeys(ast.unparse(node).replace("'", '"') for node in _reads(tree)) if tree is not None else {}
    return sorted(chains, key=len, reverse=True)


def _reads(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield node
        elif isinstance(node, ast.AugAssign):
            yield node.target


def _same(a: str, b: str) -> bool:
    """Whether two pieces of code are the same expression."""
    first, second = parsed(a), parsed(b)
    return first is not None and second is not None and ast.dump(first) == ast.dump(second)
