"""WG403: a normalisation over one element, whose result is a constant."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import Module, ModuleCalled, Operation
from whygrad.rules.construction import constructed
from whygrad.rules.facts import Facts, Maker
from whygrad.rules.finding import Finding, Place
from whygrad.rules.flow import constant, operand
from whygrad.rules.losscalls import loss_calls, plain, shape_of
from whygrad.rules.rule import Rule

FUNCTIONS = frozenset({"softmax", "log_softmax", "softmin"})
MODULES = frozenset({"Softmax", "LogSoftmax", "Softmin"})


class Alone(msgspec.Struct, frozen=True, eq=False):
    """What normalised a dimension of size 1: what it gives always, and where it was called or built."""

    what: str
    always: str
    place: Place
    event: Maker
    shape: tuple[int, ...]
    instead: str


class NormalisedAlone(Rule):
    """The loss is constant and every gradient zero: softmax (or a normalisation) over a single element.

    A softmax over a dimension of size 1 is 1, whatever the input; `log_softmax` is 0, so `CrossEntropyLoss` of a model
    with one output is exactly 0 and learns nothing. `LayerNorm(1)` always gives its bias, since a number minus itself
    is 0.

    **How to see it.** The output does not depend on the input, and the gradient behind it is exactly zero.

    **How to put it right.** For two classes and one output use `BCEWithLogitsLoss` (a sigmoid), or give the model one
    output for each class. Normalise over a dimension that has several elements.
    """

    code = "WG403"
    slug = "normalised-alone"
    explains = ("WG605", "WG606", "WG607", "WG608", "WG609")
    search = (
        "cross entropy loss is 0 from the start",
        "softmax of one output always 1",
        "binary classification one output softmax",
        "all gradients zero softmax",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        probability = torch.softmax(model(torch.randn(8, 4)), dim=1)  # <- here
        loss = F.binary_cross_entropy(probability, torch.ones(8, 1) * 0.5)
        loss.backward()
        """,
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        loss = F.cross_entropy(model(torch.randn(8, 4)), torch.zeros(8, dtype=torch.long))  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        output = model(torch.randn(8, 4))
        loss = F.binary_cross_entropy(torch.sigmoid(output), torch.ones(8, 1) * 0.5)
        loss = loss + (torch.softmax(output, dim=0) * output).sum()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for event in facts.of(Operation):
            if plain(event.function) in FUNCTIONS and event.inputs:
                shape = shape_of(facts, event.inputs[0].tensor)
                dim = constant(operand(event, 1, "dim"))
                if event.node is None or not shape or max(shape) == 1 or not isinstance(dim, int):
                    continue
                if -len(shape) <= dim < len(shape) and shape[dim] == 1:
                    yield self._found(facts, self._function(facts, event, shape))
        for call in facts.of(ModuleCalled):
            alone = self._module(facts, call)
            if alone is not None and call.grad_mode == "on":
                yield self._found(facts, alone)
        for loss in loss_calls(facts):
            shape = shape_of(facts, loss.prediction)
            target = facts.tensors.get(loss.target) if loss.target is not None else None
            if loss.kind != "cross_entropy" or shape is None or len(shape) < 2 or shape[1] != 1 or target is None:
                continue
            yield self._found(
                facts,
                Alone(
                    "cross_entropy takes the log_softmax",
                    "0",
                    facts.place(loss.call.site),
                    loss.call,
                    shape,
                    "Use binary_cross_entropy_with_logits for one output, or give the model one output for each class.",
                ),
            )

    def _function(self, facts: Facts, event: Operation, shape: tuple[int, ...]) -> Alone:
        name = plain(event.function)
        always = "0" if name.startswith("log") else "1"
        instead = "Use torch.sigmoid for a single output, or normalise over a dimension that has several elements."
        return Alone(f"this is a {name}", always, facts.place(event.site), event, shape, instead)

    def _module(self, facts: Facts, call: ModuleCalled) -> Alone | None:
        module = facts.modules.get(call.module)
        if module is None or not call.inputs:
            return None
        shape = call.inputs[0].shape
        instead = "Use a sigmoid for a single output, or normalise over a dimension that has several elements."
        if module.kind in MODULES:
            found = re.search(r"dim=(-?\d+)", module.config)
            dim = int(found[1]) if found else None
            if dim is not None and -len(shape) <= dim < len(shape) and shape[dim] == 1 and max(shape) > 1:
                always = "0" if module.kind.startswith("Log") else "1"
                what = f"{module.path or 'this'} is a {module.kind}"
                return Alone(what, always, _built(facts, module, call), call, shape, instead)
        if module.kind == "LayerNorm" and module.config.startswith("(1,)"):
            what = f"{module.path or 'this'} is a LayerNorm"
            return Alone(
                what, "its bias", _built(facts, module, call), call, shape, "Normalise over more than one feature."
            )
        return None

    def _found(self, facts: Facts, alone: Alone) -> Finding:
        return self.finding(
            facts,
            alone.place,
            f"{alone.what} over a dimension of size 1: its result is always {alone.always}",
            [
                f"On {facts.place(alone.event.site).where} the input has shape {alone.shape}; over its single element "
                f"the result is {alone.always}, whatever the input is, and the gradient behind it is exactly zero."
            ],
            why="A normalisation of one element leaves nothing of it.",
            fix=alone.instead,
            evidence=[facts.evidence(alone.event, f"a dimension of size 1 of {alone.shape} was normalised")],
        )


def _built(facts: Facts, module: Module, call: ModuleCalled) -> Place:
    """Where the layer was built, or else called."""
    built = constructed(facts, module)
    return built.place if built is not None else facts.place(call.site)
