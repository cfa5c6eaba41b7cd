"""Calls of classification losses, with what the ledger knows of their targets."""

from __future__ import annotations

import ast
import math

import msgspec

from whygrad.ledger.events import Module, ModuleCalled, Operand, Operation, TensorId
from whygrad.ledger.values import Value, as_float
from whygrad.rules.facts import Facts
from whygrad.rules.memo import once
from whygrad.rules.syntax import argument, calls, dotted, number_of

FUNCTIONS = ("cross_entropy", "nll_loss")
MODULES = {"CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss"}
IGNORED = -100


class LossCall(msgspec.Struct, frozen=True):
    """One call of `cross_entropy` or `nll_loss`, as a function or as a module, with class indices as targets.

    `targets` are None where they were not kept whole. `weight_value` are the class weights.
    """

    event: Operation | ModuleCalled
    name: str
    logits: TensorId
    target: TensorId
    targets: tuple[int, ...] | None
    weight: TensorId | None
    weight_value: tuple[float, ...] | None
    reduction: str
    ignored: int
    output: TensorId | None
    value: Value | None

    @property
    def differentiable(self) -> bool:
        return self.output is not None

    @property
    def valid(self) -> int | None:
        """How many targets count."""
        return None if self.targets is None else sum(target != self.ignored for target in self.targets)

    @property
    def classes(self) -> set[int]:
        """The classes among the targets; empty where they are not known."""
        return {target for target in self.targets or () if target != self.ignored}


@once
def loss_calls(facts: Facts) -> tuple[LossCall, ...]:
    """Every such call, in order."""
    found: list[LossCall] = []
    for event in facts.events:
        if isinstance(event, Operation) and event.function.rpartition(".")[2] in FUNCTIONS:
            call = _function_call(facts, event)
        elif isinstance(event, ModuleCalled) and not event.error:
            call = _module_call(facts, event)
        else:
            continue
        if call is not None:
            found.append(call)
    return tuple(found)


def integers(facts: Facts, tensor: TensorId) -> tuple[int, ...] | None:
    """The elements of an integer tensor that was kept whole, when first seen or when made."""
    known = facts.tensors.get(tensor)
    value = known.value if known is not None else None
    if value is None or value.items is None:
        maker = facts.makers.get(tensor)
        value = maker.value if maker is not None else None
    if value is None or value.items is None or "int" not in value.dtype:
        return None
    return tuple(int(item) for item in value.items)


def _function_call(facts: Facts, event: Operation) -> LossCall | None:
    positional = [operand for operand in event.inputs if not operand.keyword]
    named = {operand.keyword: operand for operand in event.inputs if operand.keyword}
    logits = named.get("input", positional[0] if positional else None)
    target = named.get("target", positional[1] if len(positional) > 1 else None)
    if logits is None or target is None or logits.tensor is None or target.tensor is None:
        return None
    weight = named.get("weight", positional[2] if len(positional) > 2 else None)
    return _call(
        facts,
        event,
        event.function.rpartition(".")[2],
        logits.tensor,
        target.tensor,
        weight.tensor if weight is not None else None,
        _constant(named.get("reduction"), "mean"),
        _constant(named.get("ignore_index"), IGNORED),
        event.outputs[0] if event.outputs and event.node is not None else None,
        event.value,
    )


def _module_call(facts: Facts, event: ModuleCalled) -> LossCall | None:
    module = facts.modules.get(event.module)
    if module is None or module.kind not in MODULES or len(event.inputs) != 2:
        return None
    logits, target = event.inputs[0].tensor, event.inputs[1].tensor
    if logits is None or target is None:
        return None
    made = _constructor(facts, module)
    weight, reduction, ignored = None, "mean", IGNORED
    if made is not None:
        given = argument(made, "weight", 0)
        named = facts.ledger.find(dotted(given)) if dotted(given) else ()
        weight = named[0] if named else None
        told = argument(made, "reduction")
        reduction = str(told.value) if isinstance(told, ast.Constant) else "mean" if told is None else ""
        skipped = number_of(argument(made, "ignore_index"))
        ignored = int(skipped) if skipped is not None else IGNORED
    if weight is None:
        weight = dict(module.buffers).get("weight")
    written = _listed(argument(made, "weight", 0)) if made is not None else None
    output = event.outputs[0].tensor if event.outputs else None
    known = facts.tensors.get(output) if output is not None else None
    return _call(
        facts, event, MODULES[module.kind], logits, target, weight, reduction, ignored,
        output if known is not None and known.requires_grad else None, event.value, written,
    )  # fmt: skip


def _listed(node: ast.expr | None) -> tuple[float, ...] | None:
    """The numbers in `torch.tensor([1.0, 10.0])`."""
    listed = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if not isinstance(listed, (ast.List, ast.Tuple)):
        return None
    numbers = [number for each in listed.elts if (number := number_of(each)) is not None]
    return tuple(numbers) if len(numbers) == len(listed.elts) else None


def _call(
    facts: Facts,
    event: Operation | ModuleCalled,
    name: str,
    logits: TensorId,
    target: TensorId,
    weight: TensorId | None,
    reduction: object,
    ignored: object,
    output: TensorId | None,
    value: Value | None,
    written: tuple[float, ...] | None = None,
) -> LossCall:
    return LossCall(
        event, name, logits, target, integers(facts, target), weight, _floats(facts, weight) or written, str(reduction),
        ignored if isinstance(ignored, int) else IGNORED, output, value,
    )  # fmt: skip


def _constructor(facts: Facts, module: Module) -> ast.Call | None:
    """The only call in the program's text that makes a module of this kind."""
    made = [call for path in facts.ledger.sources() for call in calls(facts.source(path).tree, module.kind)]
    return made[0] if len(made) == 1 else None


def _constant(operand: Operand | None, default: object) -> object:
    if operand is None:
        return default
    return operand.constant if operand.constant is not msgspec.UNSET else ""


def _floats(facts: Facts, tensor: TensorId | None) -> tuple[float, ...] | None:
    known = facts.tensors.get(tensor) if tensor is not None else None
    if known is None or known.value is None or known.value.items is None:
        return None
    numbers = tuple(as_float(item) for item in known.value.items)
    return numbers if all(math.isfinite(number) for number in numbers) else None
