"""Leaves whose value went into a loss while their history did not: where the way back was cut."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

import msgspec

from whygrad.answers.why.flow import Made, grad_mode_entry
from whygrad.ledger.events import GradModeChanged, Operation, OptimizerStepped, SiteId, Tensor, TensorId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Edit, Evidence, Place, Severity
from whygrad.rules.memo import once

COPIES = frozenset({"torch.tensor", "item", "float", "int", "bool", "tolist", "numpy", "array", "asarray"})
"""Cuts that copy numbers out of the graph."""

BLOCKS = frozenset({"detach", "detach_", "data", "no_grad", "inference_mode"})
"""Cuts that are asked for by name."""

STEPS = frozenset({"comparison", "argmax", "argmin", "argsort", "integer dtype"})
"""Cuts by values that jump: no derivative exists."""

LEAVES = 60
"""So many leaves are looked at; the others are parts of the same modules, or the list is long enough."""


class Lost(msgspec.Struct, frozen=True):
    """A cut: the pass that stopped there, the leaves behind it, and whether an optimizer is to move them."""

    cut: Made
    entry: Pass
    leaves: tuple[TensorId, ...]
    trained: bool


@once
def lost(facts: Facts) -> tuple[Lost, ...]:
    """The cuts behind which leaves never get a gradient in the whole run, nearest to the loss."""
    found: dict[tuple[object, ...], tuple[Made, Pass, list[TensorId]]] = {}
    passes = list(_distinct(facts))
    for entry in facts.passes:
        if entry.ended is not None and "does not require grad" in entry.ended.error:
            _add_stopped(facts, entry, found)
    for group in _groups(facts):
        for entry, cut in _cuts(facts, group[0], passes):
            key = (cut.site, cut.code)
            kept = found.setdefault(key, (cut, entry, []))[2]
            kept.extend(leaf for leaf in group if leaf not in kept)
            break
    return tuple(
        Lost(cut, entry, tuple(leaves), any(leaf in facts.trained for leaf in leaves))
        for cut, entry, leaves in found.values()
    )


def _add_stopped(facts: Facts, entry: Pass, found: dict[tuple[object, ...], tuple[Made, Pass, list[TensorId]]]) -> None:
    """The cuts of a pass that had nothing to go back through, though what it started from was computed from leaves."""
    leaves = [one.id for one in facts.of(Tensor) if one.leaf and facts.flow.requires_grad(one.id)][:LEAVES]
    for leaf in leaves:
        for root in entry.began.roots:
            if cuts := facts.flow.cuts(root, leaf):
                found.setdefault((cuts[0].site, cuts[0].code), (cuts[0], entry, []))[2].append(leaf)


def lost_by(facts: Facts, kinds: Collection[str]) -> Iterator[Lost]:
    return (one for one in lost(facts) if one.cut.cut in kinds)


def _groups(facts: Facts) -> Iterator[list[TensorId]]:
    """Leaves that should have a gradient and never had one: those of one module together."""
    stepped = bool(facts.of(OptimizerStepped))
    groups: dict[object, list[TensorId]] = {}
    for tensor in facts.of(Tensor):
        if not tensor.leaf or tensor.id in facts.reached_leaves or not facts.flow.requires_grad(tensor.id):
            continue
        if tensor.origin == "grad" or (stepped and tensor.id not in facts.trained):
            continue
        owner = facts.owners.get(tensor.id)
        groups.setdefault(owner[0].module if owner else ("alone", tensor.id), []).append(tensor.id)
    yield from list(groups.values())[:LEAVES]


def _distinct(facts: Facts) -> Iterator[Pass]:
    """The passes that could have reached something, one for each line that began them."""
    seen = set()
    for entry in facts.passes:
        failed = entry.ended is not None and entry.ended.error and "does not require grad" not in entry.ended.error
        if not failed and entry.began.site not in seen:
            seen.add(entry.began.site)
            yield entry


def _cuts(facts: Facts, leaf: TensorId, passes: Iterable[Pass]) -> Iterator[tuple[Pass, Made]]:
    found: list[tuple[Pass, Made]] = []
    for entry in passes:
        for root in entry.began.roots:
            cuts = facts.flow.cuts(root, leaf)
            if cuts == ():
                return
            if cuts:
                found.append((entry, cuts[0]))
    yield from found


# --- words --------------------------------------------------------------------------------------------


def place_of(facts: Facts, cut: Made) -> Place:
    """The line of a cut; for a grad mode, the line that switched recording off."""
    if cut.cut in ("no_grad", "inference_mode"):
        entry = grad_mode_entry(facts.ledger, cut)
        if entry is not None and entry.site is not None:
            return _decorator(facts, entry) or facts.place(entry.site)
    place = facts.place(cut.site)
    return facts.line(place.path, cut.line) if cut.line else place


def _decorator(facts: Facts, entry: GradModeChanged) -> Place | None:
    """The line of the decorator that switched recording off, where the expression that did it is a call."""
    called = facts.place(entry.site)
    if entry.by in called.code or entry.by == "set_grad_enabled":
        return None
    for path in facts.ledger.sources():
        for node in ast.walk(facts.source(path).tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in called.code:
                for decorator in node.decorator_list:
                    if entry.by in facts.source(path).segment(decorator):
                        return facts.line(path, decorator.lineno)
    return None


def severity_of(one: Lost, otherwise: Severity) -> Severity:
    """Worse where an optimizer is to move what was lost."""
    if one.trained:
        return otherwise
    return Severity.WARNING if otherwise is Severity.ERROR else Severity.NOTE


def names_of(facts: Facts, leaves: Iterable[TensorId], limit: int = 3) -> str:
    """`angle`, or `encoder.weight, encoder.bias and 4 more`."""
    names = [facts.describe(leaf) for leaf in leaves]
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def happened(facts: Facts, one: Lost) -> list[str]:
    """What the run shows of a cut."""
    names = names_of(facts, one.leaves)
    verb = "was" if len(one.leaves) == 1 else "were"
    where = facts.place(one.entry.began.site).where
    sentences = [f"The value that the backward on {where} starts from was computed from {names}, through this line."]
    reached = names_of(facts, dict.fromkeys(write.tensor for write in one.entry.written))
    also = f"; it did reach {reached}" if reached and not one.entry.began.inputs else ""
    error = one.entry.ended.error if one.entry.ended is not None else ""
    if error:
        sentences.append(f"It had nothing to go back through: {error.partition(': ')[2].partition('.')[0]}.")
    if not facts.reached_leaves & set(one.leaves):
        sentences.append(f"No pass of this run reached {names}{also}.")
    if one.trained:
        steps = sum(1 for step in facts.of(OptimizerStepped) if set(one.leaves) & set(step.skipped))
        if steps:
            sentences.append(
                f"{names} {verb} skipped in {steps} recorded optimizer step{'s' * (steps > 1)}: .grad is None."
            )
    return sentences


def evidence(facts: Facts, one: Lost) -> list[Evidence]:
    """The cut and the pass."""
    code = one.cut.code or facts.place(one.cut.site).code
    began = one.entry.began
    return [
        Evidence(one.cut.seq, f"`{code}` gave a value without history ({one.cut.cut})", place_of(facts, one.cut)),
        facts.evidence(began, f"the backward reached {len(began.leaves)} leaves, not {names_of(facts, one.leaves)}"),
    ]


def operation_of(facts: Facts, cut: Made) -> Operation | None:
    return next((event for event in facts.of(Operation) if event.seq == cut.seq), None)


def without_suffix(facts: Facts, at: SiteId | None, suffixes: tuple[str, ...]) -> tuple[Edit, ...]:
    """The edit that takes `.detach()` or the like off the end of the expression at a site."""
    site = facts.site(at)
    if site is None:
        return ()
    source = facts.source(site.path)
    node = source.expression(site)
    end = getattr(node, "func", node)
    if not isinstance(end, ast.Attribute) or end.attr not in suffixes or end.value.end_lineno != site.end_line:
        return ()
    text = source.line(site.end_line)
    start = len(text.encode()[: end.value.end_col_offset or 0].decode("utf-8", "replace"))
    return (Edit(site.path, site.end_line, start, site.end_line, site.end_column, ""),)
