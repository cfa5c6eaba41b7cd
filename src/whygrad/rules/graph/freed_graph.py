"""WG210: backward goes into a graph that an earlier backward has freed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import ModuleCalled, Named, Node, NodeId, Operation, OptimizerStepped, TensorId
from whygrad.rules.facts import Facts, Maker, Pass
from whygrad.rules.finding import Edit, Evidence, Finding, Place, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source


class Meeting(msgspec.Struct, frozen=True):
    """Where the second graph enters the first: `later` was made after the first pass, `earlier` before it.

    `carrier` is the tensor that `earlier` made, and `name` what the later code calls it; empty where unknown.
    """

    later: Node
    earlier: Node
    carrier: TensorId | None
    name: str


class FreedGraph(Rule):
    """Trying to backward through the graph a second time: a value of the last step still carries its graph.

    `backward()` frees what the graph saved. A second backward that reaches the same nodes raises "Trying to backward
    through the graph a second time". The usual carrier is state that goes from one step to the next: a hidden state, a
    running average or a centre kept on a module, a memory queue; or a loss that was computed once, outside the loop; or
    a part that two losses share, such as the generator's output in the discriminator's loss.

    **How to see it.** The first step works, the second fails.

    **How to put it right.** Detach what is stored (`self.centre = centre.detach()`, `h = h.detach()` after backward),
    compute the loss anew in each step, or add the losses and call backward once. `retain_graph=True` hides the error
    and lets the graph grow.
    """

    code = "WG210"
    slug = "freed-graph"
    search = (
        "Trying to backward through the graph a second time", "retain_graph=True", "saved tensors already been freed",
        "hidden state detach between batches", "GAN backward twice",
    )  # fmt: skip
    wrong = (
        """
        import torch
        cell, head = torch.nn.RNNCell(2, 3), torch.nn.Linear(3, 1)
        h = torch.zeros(4, 3)
        for _ in range(3):
            h = cell(torch.randn(4, 2), h)  # <- here
            loss = head(h).pow(2).mean()
            loss.backward()
        """,
        """
        import torch
        net = torch.nn.Linear(3, 2)
        state = {"mean": torch.zeros(2)}
        class Centre(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.mean = torch.zeros(2)
            def forward(self, features):
                mean = 0.9 * self.mean + 0.1 * features.mean(dim=0)
                self.mean = mean  # <- here
                return (features - mean).pow(2).mean()
        centre = Centre()
        for _ in range(3):
            loss = centre(net(torch.randn(5, 3)))
            loss.backward()
        """,
    )
    right = (
        """
        import torch
        cell, head = torch.nn.RNNCell(2, 3), torch.nn.Linear(3, 1)
        h = torch.zeros(4, 3)
        for _ in range(3):
            h = cell(torch.randn(4, 2), h)
            loss = head(h).pow(2).mean()
            loss.backward()
            h = h.detach()
        """,
        """
        import torch
        w = torch.tensor(2.0, requires_grad=True)
        shared = w.exp()
        first, second = shared * 2, shared.pow(2)
        first.backward(retain_graph=True)
        second.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        passes = {entry.id: entry for entry in facts.passes}
        for second in facts.passes:
            if second.ended is None or "second time" not in second.ended.error or second.ended.freed_by is None:
                continue
            first = passes.get(second.ended.freed_by)
            if first is None:
                continue
            found = self._found(facts, first, second)
            caught = facts.was_expected(second.ended)
            yield msgspec.structs.replace(found, severity=Severity.NOTE) if caught else found

    def _found(self, facts: Facts, first: Pass, second: Pass) -> Finding:
        roots = {node for node in first.began.root_nodes if node is not None}
        if roots & set(second.began.root_nodes):
            return self._same_root(facts, first, second)
        meeting = _meeting(facts, first, second)
        if meeting is None:
            return self._tell(
                facts, facts.place(first.began.site), first, second, "two losses share a part of their graph", [],
                "Add the losses and call backward once, or give the first one retain_graph=True.",
            )  # fmt: skip
        looped = first.began.site == second.began.site or meeting.later.site == meeting.earlier.site
        return self._carried(facts, first, second, meeting) if looped else self._shared(facts, first, second, meeting)

    def _same_root(self, facts: Facts, first: Pass, second: Pass) -> Finding:
        root = facts.describe(second.began.roots[0]) if second.began.roots else "the loss"
        made = facts.flow.maker(second.began.roots[0]) if second.began.roots else None
        once = f"{root} was computed once, and two passes went back from it."
        if made is not None and first.began.site == second.began.site:
            place = facts.place(made.site)
            evidence = [Evidence(made.seq, f"{root} was computed, once", place)]
            fix = f"Compute {root} inside the loop, before each backward."
            return self._tell(
                facts, place, first, second, f"{root} is computed once and used in every step", [once], fix, evidence
            )
        fix = "Call backward once, or compute the value again; retain_graph=True adds the same gradient twice."
        return self._tell(
            facts, facts.place(second.began.site), first, second, f"a second backward from {root}", [once], fix
        )

    def _carried(self, facts: Facts, first: Pass, second: Pass, meeting: Meeting) -> Finding:
        store, edits = _store(facts, meeting, second)
        if (late := _kept_after(facts, first, meeting)) is not None:
            store, edits = late, ()
        what = meeting.name or "a stored value"
        again = facts.place(meeting.later.site)
        happened = [
            f"{what} was computed by `{facts.place(meeting.earlier.site).code}` before the first backward, and "
            f"`{again.code}` ({again.where}) used it after that with its history."
        ]
        evidence = [
            facts.evidence(meeting.earlier, f"{meeting.earlier.name} belongs to the graph of the first backward"),
            facts.evidence(meeting.later, f"{meeting.later.name}, made afterwards, leads into it"),
        ]
        fix = f"Detach it where it is kept ({what} = {what}.detach()), after the backward that used it."
        title = f"{what} carries the graph of the step before into the next one"
        edits = edits or _detached_after(facts, first, meeting)
        return self._tell(facts, store, first, second, title, happened, fix, evidence, edits)

    def _shared(self, facts: Facts, first: Pass, second: Pass, meeting: Meeting) -> Finding:
        what = meeting.name or (facts.describe(meeting.carrier) if meeting.carrier is not None else "one value")
        place, detach = _first_use(facts, first, second, meeting)
        fix = "Add the two losses and call backward once, or call the first one with retain_graph=True."
        if detach:
            fix = f"Use {what}.detach() there: the first loss is not meant to train what made {what}."
        happened = [f"Both losses were computed from {what}; the first backward freed the graph behind it."]
        evidence = [facts.evidence(meeting.earlier, f"{meeting.earlier.name} belongs to both graphs")]
        return self._tell(
            facts, place, first, second, f"{what} is shared by two losses with a backward each", happened, fix, evidence
        )  # fmt: skip

    def _tell(
        self,
        facts: Facts,
        place: Place,
        first: Pass,
        second: Pass,
        title: str,
        happened: list[str],
        fix: str,
        evidence: list[Evidence] | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> Finding:
        one, other = facts.place(first.began.site).where, facts.place(second.began.site).where
        assert second.ended is not None
        return self.finding(
            facts,
            place,
            title,
            [*happened, f"The backward on {one} freed {len(first.ended.freed) if first.ended else 0} nodes; "
             f"the one on {other} needed them again and failed."],
            why="backward() frees the values that its graph saved, so no other pass can go through the same nodes.",
            fix=fix,
            evidence=[
                *(evidence or []),
                facts.evidence(first.ended or first.began, "the first backward freed its graph"),
                facts.evidence(second.ended, "the second backward failed"),
            ],
            subjects=[facts.describe(root) for root in second.began.roots],
            edits=edits,
        )  # fmt: skip


def _meeting(facts: Facts, first: Pass, second: Pass) -> Meeting | None:
    """The edge from the second pass's own nodes into those of the first; one that freed saved values, if possible."""
    old: dict[NodeId, Node] = {}
    for root in first.began.root_nodes:
        old.update(facts.reached(root))
    found: list[tuple[Node, Node]] = []
    for root in second.began.root_nodes:
        for node in facts.reached(root).values():
            if node.id in old:
                continue
            found += [(node, old[edge.node]) for edge in node.edges if edge.node is not None and edge.node in old]
    if not found:
        return None
    later, earlier = next((pair for pair in found if _names(facts, *pair, second)), found[0])
    names = _names(facts, later, earlier, second)
    carrier, name = names[0] if names else (_output(facts, earlier), "")
    return Meeting(later, earlier, carrier, name)


def _output(facts: Facts, node: Node) -> TensorId | None:
    made = next((one for one in facts.of(Operation) if one.node == node.id and one.outputs), None)
    return made.outputs[0] if made is not None else None


def _names(facts: Facts, later: Node, earlier: Node, second: Pass) -> list[tuple[TensorId, str]]:
    """What the later code calls the results of the earlier expression."""
    code = facts.place(later.site).code
    output = _output(facts, earlier)
    uses = [one.seq for one in facts.of_site(later.site) if one.seq < second.began.seq]
    made = max(uses, default=second.began.seq)
    found = []
    for named in facts.of(Named):
        if named.seq > second.began.seq or not _mentions(code, named.name):
            continue
        last = next((one for one in reversed(facts.of(Named)) if one.name == named.name and one.seq < made), named)
        if last.tensor != named.tensor:
            continue
        maker = facts.makers.get(named.tensor)
        if named.tensor == output or (output is None and maker is not None and maker.site == earlier.site):
            found.append((named.tensor, named.name))
    return found


def _kept_after(facts: Facts, first: Pass, meeting: Meeting) -> Place | None:
    """The line that put the value into what outlives the step, where that happened after the backward, in its turn."""
    over = first.ended.seq if first.ended is not None else first.began.seq
    uses = [one.seq for one in facts.of_site(meeting.later.site) if one.seq > over]
    made: list[Maker] = [*facts.of(Operation), *facts.of(ModuleCalled)]
    before = {one.site for one in made if one.seq < over}
    again = min((one.seq for one in made if one.seq > over and one.site in before), default=None)
    if not uses or again is None or uses[0] >= again:
        return None
    return facts.place(meeting.later.site)


def _mentions(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", code) is not None


def _store(facts: Facts, meeting: Meeting, second: Pass) -> tuple[Place, tuple[Edit, ...]]:
    """The line that keeps the carrier: its assignment to the name that is used again, or an append; else its own."""
    made = facts.place(meeting.earlier.site)
    written = max((one.seq for one in facts.of(Operation) if one.node == meeting.earlier.id), default=0)
    for named in facts.of(Named):
        same = named.tensor == meeting.carrier and named.name == meeting.name and named.seq > written
        if same and named.site is not None and named.seq < second.began.seq:
            place = facts.place(named.site)
            if (append := _appended(facts, meeting, made.path)) is not None and "." not in meeting.name:
                return append, ()
            if place.line != made.line or place.path != made.path:
                return place, _detached(facts.source(place.path), place.line)
            break
    append = _appended(facts, meeting, made.path) if not meeting.name else None
    return (append or made), ()


def _appended(facts: Facts, meeting: Meeting, path: str) -> Place | None:
    """The line that puts the carrier into a list."""
    source = facts.source(path)
    for node in ast.walk(source.tree) if meeting.carrier is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            kept = node.func.attr in ("append", "appendleft", "add", "insert", "extend")
            held = [source.segment(argument) for argument in node.args]
            if kept and meeting.carrier is not None and set(held) & set(facts.ledger.names(meeting.carrier)):
                return facts.line(path, node.lineno)
    return None


def _detached(source: Source, line: int) -> tuple[Edit, ...]:
    """`self.mean = mean` as `self.mean = mean.detach()`."""
    statement = source.statement(line)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name | ast.Attribute | ast.Call):
        return ()
    end = statement.value.end_lineno or line
    at = len(source.line(end).encode()[: statement.value.end_col_offset].decode("utf-8", "replace"))
    return (Edit(source.path, end, at, end, at, ".detach()"),)


def _detached_after(facts: Facts, first: Pass, meeting: Meeting) -> tuple[Edit, ...]:
    """A line after the backward that detaches a name."""
    place = facts.place(first.began.site)
    source = facts.source(place.path)
    statement = source.statement(place.line)
    if statement is None or not meeting.name.isidentifier() or place.path != facts.place(meeting.earlier.site).path:
        return ()
    if source.function_at(place.line) is not source.function_at(facts.place(meeting.earlier.site).line):
        return ()
    end = statement.end_lineno or place.line
    indent = " " * statement.col_offset
    at = len(source.line(end))
    return (Edit(place.path, end, at, end, at, f"\n{indent}{meeting.name} = {meeting.name}.detach()"),)


def _first_use(facts: Facts, first: Pass, second: Pass, meeting: Meeting) -> tuple[Place, bool]:
    """The line where the first loss took what both share, if its optimizer does not train what made it."""
    stepped = next((step for step in facts.of(OptimizerStepped) if first.began.seq < step.seq < second.began.seq), None)
    if stepped is not None and meeting.carrier is not None:
        moved = {update.tensor for update in stepped.updates} | set(stepped.skipped)
        behind = [tensor for tensor in first.began.leaves if tensor not in moved]
        if behind:
            for made in facts.flow.uses.get(meeting.carrier, ()):
                if made.seq < first.began.seq:
                    return facts.place(made.site), True
    return facts.place(first.began.site), False
