"""WG521: values that were kept to compare with, or to average, share the parameter's memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import DataChanged, Operation, OptimizerStepped, StepsFolded, TensorId
from whygrad.rules.facts import Facts, inputs_of
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.steps import is_zero
from whygrad.rules.syntax import replace

VIEWS = frozenset({"detach", "data", "view", "reshape", "flatten", "squeeze", "unsqueeze", "ravel", "t", "view_as"})
COMPARED = frozenset(
    {"sub", "rsub", "dist", "mse_loss", "eq", "ne", "equal", "allclose", "isclose", "abs", "cosine_similarity"}
)


class SnapshotIsLive(Rule):
    """The weights seem not to change: the "old" values are a view of the new ones.

    `w.detach()`, `w.data` and `list(model.parameters())` give no copy: they share memory with the parameter, and the
    optimizer writes into that memory. A comparison of "before" and "after" gives exactly zero although the weight
    moved; an average that is kept this way follows the weight exactly.

    **How to put it right.** Copy the values: `w.detach().clone()`.
    """

    code = "WG521"
    slug = "snapshot-is-live"
    severity = Severity.WARNING
    search = (
        "weights before and after training are equal",
        "detach shares memory",
        "parameter difference is zero after optimizer.step",
        "EMA weights equal model weights",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        start = model.weight.detach()  # <- here
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        print((model.weight - start).abs().max())
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        start = model.weight.detach().clone()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        print((model.weight - start).abs().max())
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        steps: list[OptimizerStepped | StepsFolded] = [*facts.of(OptimizerStepped), *facts.of(StepsFolded)]
        if not steps:
            return
        views = _views(facts)
        told: set[int | None] = set()
        for event in facts.of(Operation):
            given = list(inputs_of(event))
            if event.function.rpartition(".")[2] not in COMPARED or len(given) < 2 or not is_zero(event.value):
                continue
            for tensor in given:
                made = views.get(tensor)
                if made is None or made.site in told or _source_of(views, tensor) not in given:
                    continue
                parameter = _source_of(views, tensor)
                between = [step for step in steps if made.seq < step.seq < event.seq]
                if between and parameter in facts.held:
                    told.add(made.site)
                    yield self._compared(facts, made, event, parameter, between[0])
        for change in facts.of(DataChanged):
            made = views.get(change.tensor)
            if made is None or made.site in told or change.hidden or not change.by.endswith("_"):
                continue
            parameter = _source_of(views, change.tensor)
            if parameter in facts.held and _mixes(facts, change, parameter):
                told.add(made.site)
                yield self._averaged(facts, made, change, parameter)

    def _compared(
        self, facts: Facts, made: Operation, event: Operation, parameter: TensorId, step: OptimizerStepped | StepsFolded
    ) -> Finding:
        name, kept = facts.describe(parameter), facts.describe(made.outputs[0])
        return self.finding(
            facts,
            facts.place(made.site),
            f"{kept} shares its memory with {name}",
            [
                f"{facts.place(made.site).where} kept {kept} without a copy; the optimizer then wrote into {name}, and "
                f"so into {kept}.",
                f"{facts.place(event.site).where} compares them: {say(event.value)}, whatever the training did.",
            ],
            why="detach() and .data give a view of the same memory.",
            fix="Copy the values: .detach().clone().",
            evidence=[
                facts.evidence(made, "a view was kept"),
                facts.evidence(step, "the optimizer wrote into the shared memory"),
                facts.evidence(event, f"the comparison gives {say(event.value)}"),
            ],
            subjects=[name],
            edits=_edits(facts, made),
        )

    def _averaged(self, facts: Facts, made: Operation, change: DataChanged, parameter: TensorId) -> Finding:
        name = facts.describe(parameter)
        return self.finding(
            facts,
            facts.place(made.site),
            f"the average of {name} is {name} itself",
            [
                f"{facts.place(made.site).where} kept a view of {name}, not a copy; "
                f"{facts.place(change.site).where} writes "
                f"the average into it ({change.by}), and so into {name}.",
            ],
            why="detach() and .data give a view of the same memory.",
            fix="Start the average from a copy: .detach().clone().",
            evidence=[
                facts.evidence(made, "a view was kept"),
                facts.evidence(change, f"{change.by} wrote into the shared memory"),
            ],
            subjects=[name],
            edits=_edits(facts, made),
        )


def _views(facts: Facts) -> dict[TensorId, Operation]:
    """Results that share memory with a leaf that requires grad, and the operation that gave each."""
    leaves = {tensor.id for tensor in facts.tensors.values() if tensor.leaf and tensor.requires_grad}
    found: dict[TensorId, Operation] = {}
    for event in facts.of(Operation):
        given = event.inputs[0].tensor if event.inputs else None
        if event.function in VIEWS and event.outputs and given is not None and (given in leaves or given in found):
            found[event.outputs[0]] = event
    return found


def _source_of(views: dict[TensorId, Operation], tensor: TensorId) -> TensorId:
    while (made := views.get(tensor)) is not None and made.inputs[0].tensor is not None:
        tensor = made.inputs[0].tensor
    return tensor


def _mixes(facts: Facts, change: DataChanged, parameter: TensorId) -> bool:
    """Whether an in-place write mixes the parameter's own values into its view, as a moving average does."""
    written = [one for one in facts.of_site(change.site) if one.in_place and change.tensor in one.outputs]
    views = _views(facts)
    return any(_source_of(views, one) == parameter for event in written for one in list(inputs_of(event))[1:])


def _edits(facts: Facts, made: Operation) -> list[Edit]:
    place = facts.place(made.site)
    source, site = facts.source(place.path), facts.site(made.site)
    node = source.expression(site) if site is not None else None
    while isinstance(parent := source.parents.get(node) if node is not None else None, (ast.Attribute, ast.Call)):
        node = parent if isinstance(parent, ast.Call) else node
        if isinstance(parent, ast.Attribute):
            break
    return [replace(source, node, f"{source.segment(node)}.clone()")] if isinstance(node, ast.expr) else []
