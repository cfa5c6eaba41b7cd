"""WG105: one loss is differentiated twice, and the sum is used."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradReset, GradWritten, NodeId, SiteId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import uses
from whygrad.rules.syntax import delete_line


class BackwardTwice(Rule):
    """The gradient is twice as large as it should be: `backward()` ran twice on one loss.

    A second `backward()` through the same graph is possible with `retain_graph=True`, and it adds the same gradient
    once more. The step then moves twice as far as the learning rate says.

    **How to put it right.** Call `backward()` once. For several losses, add them and differentiate the sum.
    """

    code = "WG105"
    slug = "backward-twice"
    severity = Severity.WARNING
    intended = "the gradient is to be doubled"
    search = ("retain_graph=True gradient doubled", "backward called twice", "gradient is twice the expected value")
    wrong = (
        """
        import torch
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        loss = w * 2
        loss.backward(retain_graph=True)
        loss.backward()  # <- here
        optimizer.step()
        """,
    )
    right = (
        """
        import torch
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        shared = w.exp()
        loss, penalty = shared * 2, shared ** 2
        loss.backward(retain_graph=True)
        penalty.backward()
        optimizer.step()
        """,
        """
        import torch
        w = torch.tensor(3.0, requires_grad=True)
        loss = w * 2
        loss.backward(retain_graph=True)
        loss.backward()
        print(w.grad)
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        passes = {each.id: each for each in facts.passes}
        told: set[SiteId | None] = set()
        for tensor, made in uses(facts).items():
            roots: dict[tuple[NodeId | None, ...], GradWritten] = {}
            for event in facts.history(tensor):
                if isinstance(event, GradReset):
                    roots.clear()
                elif isinstance(event, GradWritten):
                    began = passes[event.backward].began
                    plain = began.gradient is None and not began.create_graph and None not in began.root_nodes
                    first = roots.setdefault(began.root_nodes, event) if plain else event
                    if first is event and plain:
                        inside = facts.reached(began.root_nodes[0])
                        first = next(
                            (one for root, one in roots.items() if one is not event and root[0] in inside), event
                        )
                    used = next((use for use in made if use.seq > event.seq), None)
                    if (
                        first is not event
                        and used is not None
                        and event.site not in told
                        and _one_update(made, first, event)
                    ):
                        told.add(event.site)
                        yield self._finding(facts, first, event, facts.place(used.site).where)

    def _finding(self, facts: Facts, first: GradWritten, second: GradWritten, used: str) -> Finding:
        name = facts.describe(first.tensor)
        return self.finding(
            facts,
            second.site if second.site is not None else facts.place(None),
            "the same loss is differentiated a second time",
            [
                f"{facts.place(first.site).where} wrote {name}.grad = {say(first.after)}; the pass on "
                f"{facts.place(second.site).where} went through the same loss again and made it {say(second.after)}.",
                f"{used} used the sum.",
            ],
            why="backward() adds; a second pass through a retained graph adds the same gradient again.",
            fix="Call backward() once; add several losses up before it.",
            evidence=[
                facts.evidence(first, f"the first pass wrote {say(first.after)}"),
                facts.evidence(second, f"the second made it {say(second.after)}"),
            ],
            subjects=[name],
            edits=_edits(facts, second, _same_root(facts, first, second)),
        )


def _one_update(made: list, first: GradWritten, second: GradWritten) -> bool:  # type: ignore[type-arg]
    return not any(first.seq < use.seq < second.seq for use in made)


def _same_root(facts: Facts, first: GradWritten, second: GradWritten) -> bool:
    roots = {each.id: each.began.root_nodes for each in facts.passes}
    return roots[first.backward] == roots[second.backward]


def _edits(facts: Facts, second: GradWritten, same: bool) -> list[Edit]:
    place = facts.place(second.site)
    source = facts.source(place.path)
    statement = source.statement(place.line)
    return (
        [delete_line(source, statement)]
        if same and statement is not None and place.code in source.segment(statement)
        else []
    )
