"""The losses of a run: every call of a loss function or loss module, with its prediction, target and options."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from whygrad.ledger.events import ModuleCalled, Named, Operand, Operation, TensorId
from whygrad.ledger.values import Value, as_float
from whygrad.rules.construction import Construction, Unknown, constructed, option_of
from whygrad.rules.facts import Facts

LOSS_MODULES = {
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "nll_loss",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "MSELoss": "mse_loss",
    "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "KLDivLoss": "kl_div",
    "TripletMarginLoss": "triplet_margin_loss",
}

_SECOND = "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"
_PLAIN = "size_average", "reduce", "reduction"
SIGNATURES: dict[str, tuple[str, ...]] = {
    "cross_entropy": _SECOND,
    "nll_loss": _SECOND,
    "binary_cross_entropy": ("weight", *_PLAIN),
    "binary_cross_entropy_with_logits": ("weight", *_PLAIN, "pos_weight"),
    "mse_loss": (*_PLAIN, "weight"),
    "l1_loss": (*_PLAIN, "weight"),
    "smooth_l1_loss": (*_PLAIN, "beta"),
    "huber_loss": ("reduction", "delta", "weight"),
    "kl_div": (*_PLAIN, "log_target"),
    "triplet_margin_loss": ("margin", "p", "eps", "swap", "size_average", "reduce", "reduction"),
}
"""The arguments after the tensors."""

DEFAULTS: dict[str, Any] = {"reduction": "mean", "ignore_index": -100, "log_target": False, "label_smoothing": 0.0}

CLASS_LOSSES = frozenset({"cross_entropy", "nll_loss"})

Call: TypeAlias = Operation | ModuleCalled


class LossCall(msgspec.Struct, frozen=True, eq=False):
    """One call of a loss. `weight` is its tensor of class or element weights. Options may be `Unknown`."""

    kind: str
    call: Call
    prediction: TensorId | None
    target: TensorId | None
    output: TensorId | None
    options: dict[str, Any]
    weight: TensorId | None = None
    built: Construction | None = None
    third: TensorId | None = None

    @property
    def value(self) -> float | None:
        kept = self.call.value
        if kept is None or kept.scalar is None:
            return None
        try:
            return as_float(kept.scalar)
        except ValueError:
            return None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Of the result, where it was kept or is one of a module."""
        if isinstance(self.call, ModuleCalled):
            return self.call.outputs[0].shape if self.call.outputs else None
        return self.call.value.shape if self.call.value is not None else None

    def option(self, name: str) -> Any:
        return self.options.get(name, DEFAULTS.get(name))


def loss_calls(facts: Facts) -> tuple[LossCall, ...]:
    """Every recorded call of a loss, in order."""
    found: tuple[LossCall, ...] | None = facts.__dict__.get("_loss_calls")
    if found is None:
        found = facts.__dict__["_loss_calls"] = tuple(_loss_calls(facts))
    return found


def value_of(facts: Facts, tensor: TensorId | None) -> Value | None:
    """A tensor's value as it was kept: by the operation that made it, the module that gave it, or when first seen."""
    if tensor is None:
        return None
    known = facts.tensors.get(tensor)
    if known is not None and known.value is not None and known.value.items is not None:
        return known.value
    maker = facts.makers.get(tensor)
    if isinstance(maker, Operation) and maker.outputs[:1] == (tensor,):
        return maker.value
    if isinstance(maker, ModuleCalled) and maker.outputs and maker.outputs[0].tensor == tensor:
        return maker.value
    return None


def numbers_of(facts: Facts, tensor: TensorId | None) -> list[float] | None:
    """The elements of a tensor, where all were kept."""
    value = value_of(facts, tensor)
    if value is None or value.items is None:
        return None
    try:
        return [as_float(item) for item in value.items]
    except ValueError:
        return None


def shape_of(facts: Facts, tensor: TensorId | None) -> tuple[int, ...] | None:
    known = facts.tensors.get(tensor) if tensor is not None else None
    return known.shape if known is not None else None


def plain(function: str) -> str:
    """The last part of an operation's name."""
    return function.rpartition(".")[2]


def _loss_calls(facts: Facts) -> Iterator[LossCall]:
    built: dict[int, Construction | None] = {}
    names = {event.name: event.tensor for event in facts.of(Named)}
    for event in facts.events:
        if isinstance(event, Operation) and event.function.startswith("torch.nn.functional."):
            kind = plain(event.function)
            if kind in SIGNATURES:
                yield _functional(kind, event)
        elif isinstance(event, ModuleCalled):
            module = facts.modules.get(event.module)
            if module is None or module.kind not in LOSS_MODULES:
                continue
            if module.id not in built:
                built[module.id] = constructed(facts, module)
            kind = LOSS_MODULES[module.kind]
            where = built[module.id]
            options = _options(where, kind)
            options.update(_configured(module.config))
            yield LossCall(
                kind,
                event,
                event.inputs[0].tensor if event.inputs else None,
                event.inputs[1].tensor if len(event.inputs) > 1 else None,
                event.outputs[0].tensor if event.outputs else None,
                options,
                names.get(f"{module.path}.weight"),
                where,
                event.inputs[2].tensor if len(event.inputs) > 2 else None,
            )


def _functional(kind: str, event: Operation) -> LossCall:
    count = 3 if kind == "triplet_margin_loss" else 2
    tensors: list[TensorId | None] = []
    options: dict[str, Any] = {}
    weight = None
    for position, operand in enumerate(event.inputs):
        if operand.keyword in ("", "input", "target", "anchor", "positive", "negative") and len(tensors) < count:
            tensors.append(operand.tensor)
            continue
        signature = SIGNATURES[kind]
        index = position - count
        name = operand.keyword or (signature[index] if 0 <= index < len(signature) else "")
        if name == "weight":
            weight = operand.tensor
        options[name] = _given(operand)
    tensors += [None] * (3 - len(tensors))
    return LossCall(
        kind,
        event,
        tensors[0],
        tensors[1],
        event.outputs[0] if event.outputs else None,
        options,
        weight,
        None,
        tensors[2],
    )


def _given(operand: Operand) -> Any:
    if operand.constant is not msgspec.UNSET:
        return operand.constant
    return Unknown(operand.code)


def _options(built: Construction | None, kind: str) -> dict[str, Any]:
    """The options that a loss module was built with."""
    if built is None:
        return {}
    found = {}
    for position, name in enumerate(SIGNATURES[kind]):
        given = option_of(built.source, built.call, name, position, msgspec.UNSET)
        if given is not msgspec.UNSET:
            found[name] = given
    return found


def _configured(config: str) -> dict[str, Any]:
    """The options in a module's own description (`reduction=mean, ignore_index=-100`)."""
    found: dict[str, Any] = {}
    for part in config.split(", "):
        name, equals, text = part.partition("=")
        if equals and name.isidentifier():
            try:
                found[name] = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                found[name] = text if text.isidentifier() else Unknown(text)
    return found
