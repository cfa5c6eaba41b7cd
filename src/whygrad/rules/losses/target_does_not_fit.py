"""WG415: targets of a dtype, or with class indices, that the loss does not take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Raised, TensorId
from whygrad.rules.facts import Facts, inputs_of
from whygrad.rules.finding import Finding, Place
from whygrad.rules.losscalls import LOSS_MODULES, SIGNATURES, numbers_of
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import argument, callee, calls, dotted

BOUNDS = re.compile(r"Target (-?\d+) is out of bounds")
DTYPES = re.compile(
    r"expected scalar type (Long|Float|Double) but found|result type Float can't be cast|Found dtype (Long|Double|Int)"
    r"|not implemented for '(Int|Float|Double|Long|Short|Char|Byte)'|Expected floating point type for target"
)
LOSS_NAMES = {*LOSS_MODULES, *SIGNATURES}


class TargetDoesNotFit(Rule):
    """The loss rejects the targets: class index out of bounds, or the wrong dtype.

    `cross_entropy` and `nll_loss` take class indices from 0 to C - 1 as int64. Labels that count from 1, or a last
    layer with too few outputs, raise "Target 3 is out of bounds" (on a GPU, a device-side assert). Regression and
    binary losses take float targets: integer labels raise "Found dtype Long but expected Float" or "result type Float
    can't be cast to the desired output type Long".

    **How to put it right.** Subtract 1 from labels that count from 1, or give the model an output for each class;
    `target.long()` for class indices, `target.float()` for binary and regression losses.
    """

    code = "WG415"
    slug = "target-does-not-fit"
    search = (
        "IndexError: Target 3 is out of bounds",
        "CUDA error: device-side assert triggered cross entropy",
        "expected scalar type Long but found Float",
        "Found dtype Long but expected Float",
        "result type Float can't be cast to the desired output type Long",
        "nll_loss_forward_reduce_cuda_kernel_2d_index not implemented for Int",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        labels = torch.tensor([1, 2, 3])
        loss = F.cross_entropy(model(torch.randn(3, 4)), labels)  # <- here
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        labels = torch.tensor([1, 2, 3])
        loss = F.cross_entropy(model(torch.randn(3, 4)), labels - 1)
        F.cross_entropy(model(torch.randn(3, 4)), torch.rand(3, 3).softmax(1))
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            bound, dtype = BOUNDS.search(raised.text), DTYPES.search(raised.text)
            if bound is None and (dtype is None or not _of_loss(facts, raised)):
                continue
            target = _target(facts, raised)
            place = facts.place(raised.site)
            if bound is not None:
                yield self._out_of_bounds(facts, raised, target, place, int(bound[1]))
            else:
                yield self._dtype(facts, raised, target, place)

    def _out_of_bounds(
        self, facts: Facts, raised: Raised, target: TensorId | None, place: Place, index: int
    ) -> Finding:
        labels = numbers_of(facts, target)
        sentences = [f"It raised: {raised.text}."]
        fix = "Give the model one output for each class, or relabel."
        if labels and min(labels) >= 1:
            sentences.append(f"The labels go from {min(labels):g} to {max(labels):g}: they seem to count from 1.")
            fix = "Subtract 1 from the labels: classes count from 0."
        elif labels:
            sentences.append(f"The labels go from {min(labels):g} to {max(labels):g}.")
        return self.finding(
            facts,
            place,
            f"class index {index} is out of bounds: the model has too few outputs for the labels",
            sentences,
            why="Class indices select one of the C outputs: 0 to C - 1.",
            fix=fix,
            evidence=[facts.evidence(raised, raised.text)],
        )

    def _dtype(self, facts: Facts, raised: Raised, target: TensorId | None, place: Place) -> Finding:
        known = facts.tensors.get(target) if target is not None else None
        what = f"{facts.describe(target)} is {known.dtype} of shape {known.shape}. " if known is not None else ""
        wants = "int64 class indices" if "type Long but" in raised.text or "nll_loss" in raised.text else "floats"
        cast = ".long()" if wants.startswith("int64") else ".float()"
        return self.finding(
            facts,
            place,
            f"the targets have the wrong dtype: this loss takes {wants}",
            [f"{what}It raised: {raised.text}."],
            why="Classification losses take class indices (int64), the others take floats like the prediction.",
            fix=f"Convert the targets: target{cast}.",
            evidence=[facts.evidence(raised, raised.text)],
        )


def _of_loss(facts: Facts, raised: Raised) -> bool:
    """Whether the line that raised calls a loss: one of torch's by name, or a loss module by its name."""
    place = facts.place(raised.site)
    if not place.path:
        return False
    names = {one.path.rpartition(".")[2] for one in facts.modules.values() if one.kind in LOSS_MODULES}
    source = facts.source(place.path)
    statement = source.statement(place.line)
    return statement is not None and any(
        callee(one) in LOSS_NAMES or callee(one) in names or dotted(one.func) in names for one in calls(statement)
    )


def _target(facts: Facts, raised: Raised) -> TensorId | None:
    """The target of the call that raised: of the failed module, or the second argument by its name."""
    for call in reversed(facts.of(ModuleCalled)):
        if call.error and call.seq < raised.seq and facts.modules[call.module].kind in LOSS_MODULES:
            return next(iter(list(inputs_of(call))[1:2]), None)
    place = facts.place(raised.site)
    statement = facts.source(place.path).statement(place.line) if place.path else None
    for one in calls(statement) if statement is not None else ():
        given = argument(one, "target", 1) if callee(one) in LOSS_NAMES else None
        found = facts.ledger.find(dotted(given)) if given is not None and dotted(given) else ()
        if found:
            return found[0]
    return None
