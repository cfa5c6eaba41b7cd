"""WG212: a write through .data changed a value that backward uses, unseen."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import DataChanged, ModuleCalled, Node, NodeId, Operation
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule


class HiddenDataWrite(Rule):
    """The gradient is silently wrong: a value was changed through .data after it was saved.

    A write through `.data` does not move the version counter, so backward does not notice that the value it saved
    has changed, and computes with the new one. No error, wrong numbers. (A parameter that is changed through `.data`
    after its backward, as in a hand-written update or an average of weights, does no harm.)

    **How to see it.** The gradient does not agree with finite differences of the loss that was computed.

    **How to put it right.** Do not use `.data`. Write out of place, or under `torch.no_grad()`, where the version
    counter moves and backward would say what is wrong.
    """

    code = "WG212"
    slug = "hidden-data-write"
    search = (".data modified gradient wrong", "version counter not bumped", "tensor.data in place silent")
    wrong = (
        """
        import torch
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        u = w * 1
        loss = (u * u).sum()
        u.data.fill_(100.0)  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        loss = (w * w).sum()
        loss.backward()
        w.data.sub_(0.1 * w.grad)
        w.grad = None
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        hidden = [change for change in facts.of(DataChanged) if change.hidden]
        if not hidden:
            return
        made: dict[NodeId, Operation] = {}
        for operation in facts.of(Operation):
            if operation.node is not None:
                made.setdefault(operation.node, operation)
        for entry in facts.passes:
            if entry.ended is not None and entry.ended.error:
                continue
            for root in entry.began.root_nodes:
                for node in facts.reached(root).values():
                    yield from self._changed(facts, entry, node, made.get(node.id) or _call(facts, entry, node), hidden)

    def _changed(
        self, facts: Facts, entry: Pass, node: Node, made: Operation | ModuleCalled | None, hidden: list[DataChanged]
    ) -> Iterator[Finding]:
        if made is None:
            return
        saved = {one.tensor for one in node.saved if one.tensor is not None}
        for change in hidden:
            if change.tensor in saved and made.seq < change.seq < entry.began.seq:
                what = facts.describe(change.tensor)
                before = facts.value(change.tensor, change.seq)
                place = facts.place(made.site)
                yield self.finding(
                    facts,
                    change.site if change.site is not None else place,
                    f"{what} was changed through .data although backward still needed it",
                    [
                        f"`{place.code}` ({place.where}) saved {what} = {say(before)} for its backward; "
                        f"{change.by} then made it {say(change.after)}, and the version counter stayed at "
                        f"{change.version}.",
                        f"The backward on {facts.place(entry.began.site).where} used the new value: its gradients are "
                        "not those of the loss that was computed.",
                    ],
                    why="Writes through .data hide from the version counter, so backward cannot see them.",
                    fix="Compute out of place, or write after the backward.",
                    evidence=[
                        facts.evidence(node, f"{node.name} saved {what}"),
                        facts.evidence(change, f"{what} was written through .data"),
                        facts.evidence(entry.began, "the backward used it"),
                    ],
                    subjects=[what],
                )


def _call(facts: Facts, entry: Pass, node: Node) -> ModuleCalled | None:
    """The last call of the module that made a node, before a pass."""
    calls = [call for call in facts.of(ModuleCalled) if call.module == node.module and call.seq < entry.began.seq]
    return calls[-1] if calls and node.module is not None else None
