"""WG519: two layers that are to share a weight have one each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradWritten, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, class_of, dotted, ran, replace

COPIES = frozenset({"deepcopy", "Parameter", "clone", "detach", "copy", "tensor", "t", "contiguous"})


class TyingBroken(Rule):
    """Tied weights are not tied: each layer has a weight of its own, and they drift apart.

    `decoder.weight = encoder.weight` makes both layers use one parameter. A copy in between breaks that:
    `nn.Parameter(encoder.weight)`, `copy.deepcopy(...)`, `.clone()` make a second parameter, which starts equal and is
    trained on its own; `decoder.weight.data = encoder.weight.data` shares the numbers but not the gradient. So does a
    later assignment of a new weight or layer to one of the two.

    **How to put it right.** Assign the parameter object itself, after everything that creates or loads weights.
    """

    code = "WG519"
    slug = "tying-broken"
    severity = Severity.WARNING
    intended = "the weights are to start equal and be trained apart"
    explains = ("WG504",)
    search = ("tie weights embedding decoder", "weight tying does not work", "tied weights differ after training")
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(6, 4)
                self.head = nn.Linear(4, 6, bias=False)
                self.head.weight = nn.Parameter(self.embed.weight.clone())  # <- here

            def forward(self, ids):
                return self.head(self.embed(ids))

        model = Tied()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ids = torch.randint(0, 6, (8,))
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(ids), ids).backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(6, 4)
                self.head = nn.Linear(4, 6, bias=False)
                self.head.weight = self.embed.weight

            def forward(self, ids):
                return self.head(self.embed(ids))

        model = Tied()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ids = torch.randint(0, 6, (8,))
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(ids), ids).backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        written = {write.tensor: write for write in facts.of(GradWritten)}
        if len(written) < 2:
            return
        for path in facts.ledger.sources():
            source = facts.source(path)
            for statement, target, value in assignments(source.tree):
                one, other = _weight(dotted(target)), _copied(value)
                direct = _weight(dotted(value))
                if not one or not (other or direct) or one == (other or direct) or not ran(facts, source, statement):
                    continue
                pair = _parameters(facts, source, statement, one, other or direct)
                if pair is None or pair[0] == pair[1] or not (pair[0] in written and pair[1] in written):
                    continue
                if facts.tensors[pair[0]].shape == facts.tensors[pair[1]].shape:
                    yield self._finding(facts, source, statement, value, pair, written, bool(direct))

    def _finding(
        self,
        facts: Facts,
        source: Source,
        statement: ast.stmt,
        value: ast.expr,
        pair: tuple[TensorId, TensorId],
        written: dict[TensorId, GradWritten],
        direct: bool,
    ) -> Finding:
        names = facts.describe(pair[0]), facts.describe(pair[1])
        by = _replaced_by(source, statement, value) if direct and ".data" not in source.segment(value) else None
        line = by.lineno if by is not None else statement.lineno
        return self.finding(
            facts,
            facts.line(source.path, line),
            f"{names[0]} and {names[1]} are two parameters, not one",
            [
                f"Each has a gradient of its own: {names[0]}.grad = {say(written[pair[0]].after)}, {names[1]}.grad = "
                f"{say(written[pair[1]].after)}; tied weights would have one, the sum.",
            ],
            why="Only the same parameter object in both places ties two layers.",
            fix="Assign the parameter itself, and do it after everything that makes or loads weights.",
            evidence=[
                facts.evidence(written[pair[0]], f"{names[0]} got a gradient of its own"),
                facts.evidence(written[pair[1]], f"{names[1]} got another"),
            ],
            subjects=names,
            edits=_edits(source, value) if by is None and not direct else (),
        )


def _weight(name: str) -> str:
    """`self.head.weight` of `self.head.weight` or `self.head.weight.data`; empty for a name that is no layer's."""
    plain = name.removesuffix(".data")
    return plain if plain.count(".") >= 1 and plain.rpartition(".")[2] in ("weight", "bias") else ""


def _copied(value: ast.expr) -> str:
    """The weight that an expression copies."""
    if isinstance(value, ast.Call) and callee(value) in COPIES:
        inner = value.args[0] if value.args else value.func.value if isinstance(value.func, ast.Attribute) else None
        if inner is not None:
            return _weight(dotted(inner)) or _copied(inner)
    return ""


def _parameters(
    facts: Facts, source: Source, statement: ast.stmt, one: str, other: str
) -> tuple[TensorId, TensorId] | None:
    """The parameters that two spelled weights are at the end of the run, in one and the same module."""
    owner = class_of(source, statement)
    roots = [""] if owner is None else [f"{m.path}." for m in facts.modules.values() if m.kind == owner.name]
    for root in roots:
        paths = [root + each.removeprefix("self.") if owner is not None else each for each in (one, other)]
        found = [_at(facts, path) for path in paths]
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
    return None


def _at(facts: Facts, path: str) -> TensorId | None:
    where, _, name = path.rpartition(".")
    latest: TensorId | None = None
    for module in facts.modules.values():
        if module.path == where:
            latest = dict(module.parameters).get(name, latest)
    return latest


def _replaced_by(source: Source, statement: ast.stmt, value: ast.expr) -> ast.stmt | None:
    """A later assignment to one of the tied layers, or to its weight."""
    mine = [_weight(dotted(value))]
    mine += [_weight(dotted(target)) for one, target, _ in assignments(source.tree) if one is statement]
    for other, target, _ in assignments(source.tree):
        name = dotted(target)
        tail = name.removeprefix("self.").partition(".")[2] or name
        if other.lineno > statement.lineno and name:
            for weight in mine:
                inner = weight.removeprefix("self.")
                if name in (weight, weight.rpartition(".")[0]) or tail in (inner, inner.rpartition(".")[0]):
                    return other
    return None


def _edits(source: Source, value: ast.expr) -> list[Edit]:
    return [replace(source, value, _copied(value))]
