"""WG204: a recurrent state loses its history at every time step."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import BackwardBegan, ModuleCalled, Operation, SiteId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.lost import without_suffix
from whygrad.rules.rule import Rule

ENOUGH = 2
"""So many cuts in a row, with no backward between them, are a habit."""


class StateDetachedEveryStep(Rule):
    """A recurrent network cannot learn from earlier steps: its state is detached at every time step.

    `h = cell(x[:, t], h.detach())` keeps the numbers of the state and drops its history, so backward covers the last
    step alone: no gradient tells the cell how an early input changes the result. The loss stays where a model without
    memory would leave it. Truncated backpropagation detaches *between* chunks, after each backward, not within one.

    **How to see it.** Of the many calls of the cell, the backward graph holds one.

    **How to put it right.** Pass the state on as it is, and detach it once after `backward()`.
    """

    code = "WG204"
    slug = "state-detached-every-step"
    severity = Severity.WARNING
    intended = "each step is to be trained without the past"
    search = (
        "RNN does not learn long dependencies", "hidden state detach every step", "GRU cannot remember",
        "truncated BPTT detach inside time loop",
    )  # fmt: skip
    wrong = (
        """
        import torch
        cell, head = torch.nn.GRUCell(1, 4), torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        for _ in range(3):
            x = torch.randn(6, 5, 1)
            h = torch.zeros(6, 4)
            for t in range(5):
                h = cell(x[:, t], h.detach())  # <- here
            loss = (head(h) - x[:, 0]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        cell, head = torch.nn.GRUCell(1, 4), torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        x = torch.randn(6, 12, 1)
        h = torch.zeros(6, 4)
        for chunk in x.split(4, dim=1):
            for t in range(4):
                h = cell(chunk[:, t], h)
            loss = (head(h) - chunk[:, 0]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            h = h.detach()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        chains: dict[SiteId, list[Operation]] = {}
        for operation in facts.of(Operation):
            if operation.site is None or operation.cut not in ("detach", "data") or not operation.outputs:
                continue
            chain = chains.setdefault(operation.site, [])
            if chain and not _continues(facts, chain[-1], operation):
                chain.clear()
            chain.append(operation)
            if len(chain) == ENOUGH + 1:
                entry = _next_pass(facts, operation.seq)
                if entry is not None and (alone := _unused(facts, chain, entry)) is not None:
                    yield self._found(facts, chain, entry, alone)

    def _found(self, facts: Facts, chain: list[Operation], entry: BackwardBegan, alone: bool) -> Finding:
        first, last = chain[0], chain[-1]
        place = facts.place(last.site)
        cuts = sum(
            operation.site == last.site and operation.cut != "" and _between(facts, first.seq, operation.seq)
            for operation in facts.of(Operation)
            if first.seq <= operation.seq < entry.seq
        )
        return self.finding(
            facts,
            place,
            "the state loses its history at every time step",
            [
                f"`{place.code}` cut the history of the state {cuts} times before the backward on "
                f"{facts.place(entry.site).where}, each time of a value computed from the one before.",
                "Only what was computed after the last cut is in that backward's graph; the results of the earlier "
                "steps reach no loss in any other way."
                if alone
                else "Each step has its own term in the loss, and the gradient of none goes back into an earlier step.",
            ],
            why="detach() keeps the number and drops how it came about, so earlier steps get no gradient.",
            fix="Pass the state on with its history; detach it once, after backward().",
            evidence=[
                facts.evidence(first, f"`{place.code}` cut the state's history"),
                facts.evidence(last, "and again, of the value computed from it"),
                facts.evidence(entry, f"the backward covers {entry.nodes} nodes"),
            ],
            subjects=[facts.describe(tensor) for tensor in _inputs(last)],
            severity=None if alone else Severity.NOTE,
            edits=without_suffix(facts, last.site, ("detach", "data")),
        )


def _inputs(operation: Operation) -> list[TensorId]:
    return [operand.tensor for operand in operation.inputs if operand.tensor is not None]


def _between(facts: Facts, after: int, before: int) -> bool:
    """Whether no backward began between two events."""
    return not any(True for _ in facts.between(BackwardBegan, after, before))


def _continues(facts: Facts, earlier: Operation, later: Operation) -> bool:
    """Whether the later cut is of a value computed from the earlier one's, with no backward between them."""
    if not _between(facts, earlier.seq, later.seq):
        return False
    wanted = earlier.outputs[0]
    for tensor in _inputs(later):
        for current, made in facts.flow.upstream(tensor):
            if current == wanted or wanted in made.inputs:
                return True
            if made.seq < earlier.seq:
                break
    return False


def _next_pass(facts: Facts, seq: int) -> BackwardBegan | None:
    return next((began for began in facts.of(BackwardBegan) if began.seq > seq), None)


def _unused(facts: Facts, chain: list[Operation], entry: BackwardBegan) -> bool | None:
    """Whether what was cut reaches no loss with its history: no use but the cut itself goes on to the root.

    None where the steps have their own terms in the loss, and what takes the state is no recurrent layer.
    """
    states = {tensor for operation in chain for tensor in _inputs(operation)}
    graph = {
        tensor
        for root in entry.roots
        for tensor, made in facts.flow.upstream(root)
        if made.cut == "" and facts.flow.requires_grad(tensor)
    }
    cut = {operation.seq for operation in chain}
    for state in states:
        for made in facts.flow.uses.get(state, ()):
            if made.seq in cut or made.cut:
                continue
            if any(output in graph for output in made.outputs):
                return False if _recurrent(facts, chain[-1]) else None
    return True


def _recurrent(facts: Facts, cut: Operation) -> bool:
    """Whether a recurrent layer takes the state."""
    calls = [user for user in facts.users.get(cut.outputs[0], ()) if isinstance(user, ModuleCalled)]
    kinds = {facts.modules[call.module].kind for call in calls}
    return any("RNN" in kind or "GRU" in kind or "LSTM" in kind for kind in kinds)
