"""A saved tensor was written in place before its backward: who wrote, who had saved it, which versions."""

from __future__ import annotations

import re

import msgspec

from whygrad.answers.why.answer import Sentence
from whygrad.answers.why.failure import Failure, headline
from whygrad.answers.why.flow import Flow
from whygrad.answers.why.passes import nodes_reached, pass_of
from whygrad.answers.why.words import code_of, quoted
from whygrad.ledger import Ledger
from whygrad.ledger.events import DataChanged, ModuleCalled, Node, Operation, OptimizerStepped, SiteId, TensorId

VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
SHAPE = re.compile(r"\[[\w.]*Tensor \[([\d, ]*)\]\]")

Reason = tuple[str, Sentence, list[Sentence]]


class Written(msgspec.Struct, frozen=True):
    """Which tensor was written, where, and by which event: a write of its own, an optimizer's step, a module's call."""

    tensor: TensorId | None = None
    site: SiteId | None = None
    event: DataChanged | OptimizerStepped | ModuleCalled | None = None


class Keeper(msgspec.Struct, frozen=True):
    """What had saved the tensor: a phrase, and the event."""

    text: str
    seq: int


def explain_version(ledger: Ledger, failure: Failure) -> Reason:
    """The line that wrote, and the line whose operation had saved the tensor."""
    written = _written(ledger, failure)
    keeper = _keeper(ledger, failure, written)
    name = ledger.describe(written.tensor) if written.tensor is not None else "a tensor"
    wrote = f"{name} was written in place"
    if written.site is not None:
        wrote = f"{quoted(ledger, written.site)} wrote into {name} in place"
    kept = f"{keeper.text} had saved it" if keeper is not None else "an operation had saved it"
    seqs = (keeper.seq if keeper else 0, written.event.seq if written.event else 0, failure.seq)
    events = tuple(sorted(seq for seq in seqs if seq))
    sentences = []
    if (versions := VERSIONS.search(failure.text)) is not None:
        now, then = versions.groups()
        sentences.append(Sentence(f"It was saved at version {then}; this backward found it at version {now}.", events))
    sentences.append(Sentence(_advice(ledger, written), events))
    text = headline(ledger, failure, f"{wrote} after {kept} for its backward.")
    return "written in place", Sentence(text, events), sentences


def _advice(ledger: Ledger, written: Written) -> str:
    if isinstance(written.event, OptimizerStepped):
        return (
            "A step updates the parameters in place, so a graph from before it cannot be used after it: run every "
            "backward before the step, or compute the loss again after it."
        )
    if isinstance(written.event, ModuleCalled):
        module = ledger.module(written.event.module)
        config = f"{module.kind}({module.config})" if module is not None else "the module"
        return (
            f"{config} scales the rows that it looks up, in place; call it before the weight is used, or use a clone()."
        )
    return (
        "Use an out-of-place operation there (`x = x + 1` instead of `x += 1` or `x.add_(1)`), or write into a "
        "clone() of it."
    )


def _written(ledger: Ledger, failure: Failure) -> Written:
    """The write that changed the version: as recorded, else the write that fits the error's versions and shape."""
    ended = failure.ended
    if ended is not None and ended.written is not None:
        return _write_of(ledger, failure, ended.written, ended.written_by)
    changes = [change for change in ledger.of(DataChanged) if change.seq < failure.seq]
    steps = [step for step in ledger.of(OptimizerStepped) if step.seq < failure.seq]
    versions = VERSIONS.search(failure.text)
    ours = [change for change in changes if versions is None or change.version == int(versions[1])]
    shapes = (_shape(failure), _shape(failure)[::-1])
    for change in reversed(ours):
        known = ledger.tensor(change.tensor)
        if known is not None and known.shape in shapes:
            return Written(change.tensor, change.site, change)
    for step in reversed(steps):
        for update in step.updates:
            known = ledger.tensor(update.tensor)
            if update.changed and known is not None and known.shape in shapes:
                return Written(update.tensor, step.site, step)
    return Written(ours[-1].tensor, ours[-1].site, ours[-1]) if ours else Written()


def _write_of(ledger: Ledger, failure: Failure, tensor: TensorId, site: SiteId | None) -> Written:
    """The event that wrote a known tensor past the version that was saved."""
    expected = _expected(failure)
    ours = [
        change
        for change in ledger.of(DataChanged)
        if change.seq < failure.seq and change.tensor == tensor and (site is None or change.site == site)
    ]
    past = [change for change in ours if expected is not None and change.version_before <= expected < change.version]
    stepped = [
        step
        for step in ledger.of(OptimizerStepped)
        if step.seq < failure.seq and step.site == site and any(update.tensor == tensor for update in step.updates)
    ]
    if stepped and (not past or past[-1].site == stepped[-1].site):
        return Written(tensor, site, stepped[-1])
    if past or ours:
        event = past[0] if past else ours[-1]
        return Written(tensor, site if site is not None else event.site, event)
    for call in ledger.of(ModuleCalled):
        module = ledger.module(call.module)
        held = module is not None and any(parameter == tensor for _, parameter in module.parameters)
        if call.seq < failure.seq and module is not None and held and "max_norm=" in module.config:
            return Written(tensor, call.site, call)
    return Written(tensor, site, None)


def _expected(failure: Failure) -> int | None:
    versions = VERSIONS.search(failure.text)
    return int(versions[2]) if versions is not None else None


def _shape(failure: Failure) -> tuple[int, ...]:
    """The shape that the error names; a transposed view is named by its own."""
    found = SHAPE.search(failure.text)
    return tuple(int(size) for size in found[1].replace(" ", "").split(",") if size) if found is not None else ()


def _keeper(ledger: Ledger, failure: Failure, written: Written) -> Keeper | None:
    """The node that kept the tensor; else the last computation that used (or gave) it before it was written."""
    ended = failure.ended
    entry = pass_of(ledger, ended.id) if ended is not None else None
    blamed = ledger.node(ended.blamed) if ended is not None else None
    reached = [ledger.node(node) for node in nodes_reached(ledger, entry)] if entry is not None else []
    operations = {operation.node: operation for operation in ledger.of(Operation) if operation.node is not None}
    for node in (blamed, *reached):
        if (
            node is not None
            and written.tensor is not None
            and _keeps(ledger, node, written.tensor, operations.get(node.id))
        ):
            return Keeper(_made_by(ledger, node), node.seq)
    if written.tensor is None:
        return Keeper(_made_by(ledger, blamed), blamed.seq) if blamed is not None else None
    flow = Flow(ledger, written.event.seq if written.event is not None else failure.seq)
    uses = [*flow.uses.get(written.tensor, ()), *flow.makers.get(written.tensor, ())]
    used = max(
        (made for made in uses if not made.in_place and made.mode == "on"), key=lambda made: made.seq, default=None
    )
    if used is None:
        return None
    place = quoted(ledger, used.site)
    inside = used.module and used.module not in code_of(ledger, used.site)
    return Keeper(f"{used.module} in {place}" if inside else place, used.seq)


def _keeps(ledger: Ledger, node: Node, tensor: TensorId, operation: Operation | None) -> bool:
    """Whether the node keeps the tensor: a product keeps a factor only for the sake of another that requires grad."""
    slots = {saved.slot for saved in node.saved if saved.tensor == tensor}
    if not slots or operation is None or not node.name.startswith(("MulBackward", "DivBackward")):
        return bool(slots)
    others = [operand.tensor for operand in operation.inputs if operand.tensor != tensor]
    return any(known is not None and known.requires_grad for known in map(ledger.tensor, others)) or (
        [operand.tensor for operand in operation.inputs].count(tensor) > 1
    )


def _made_by(ledger: Ledger, node: Node) -> str:
    module = ledger.module(node.module)
    place = quoted(ledger, node.site)
    if module is not None and module.path and module.path not in code_of(ledger, node.site):
        return f"{module.path} in {place}"
    return place
