"""Finds what a name means at a moment: a tensor, a module, or an expression of the program's own text."""

from __future__ import annotations

import difflib

import msgspec

from whygrad.answers.why.answer import Moment
from whygrad.answers.why.expression import Wanted, canonical
from whygrad.answers.why.units import MODULE, bodies_of, body_at
from whygrad.answers.why.words import joined
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import Module, ModuleId, Named, Operation, TensorId
from whygrad.ledger.names import Bindings

NEAREST = 4
"""How many names are offered in place of one that is not known."""


class Found(msgspec.Struct, frozen=True):
    """What a name means: a tensor or a module, and the tensors that bore the name earlier (oldest first).

    `since` is the event that gave the name to the tensor.
    """

    tensor: TensorId | None = None
    module: ModuleId | None = None
    earlier: tuple[TensorId, ...] = ()
    since: int = 0


def resolve(ledger: Ledger, wanted: Wanted, moment: Moment) -> Found:
    """What `wanted.name` means at `moment`; raises `BadInput` with the nearest names where it means nothing."""
    if (found := _tensor(ledger, wanted.name, moment)) is not None:
        return found
    if (module := _module(ledger, wanted.name)) is not None:
        return Found(module=module)
    if (tensor := _expression(ledger, wanted.name, moment)) is not None:
        return Found(tensor=tensor)
    raise BadInput(_unknown(ledger, wanted, moment))


def _tensor(ledger: Ledger, name: str, moment: Moment) -> Found | None:
    wanted = canonical(name)
    bindings = Bindings(wanted)
    bearers: dict[TensorId, int] = {}
    given = _later_in_this_call(ledger, wanted, moment)
    is_argument = given is not None and _is_argument(ledger, wanted, moment, given)
    for named in ledger.of(Named):
        if canonical(named.name) != wanted:
            continue
        if named.seq > moment.seq and (given is None or named.seq != given.seq or not is_argument):
            break
        if given is not None and named.scope == moment.function and named.seq <= moment.began:
            continue  # an earlier call's
        bindings.bind(msgspec.structs.replace(named, name=wanted))
        bearers.pop(named.tensor, None)
        bearers[named.tensor] = named.seq
    tensor = bindings.seen_from(moment.function)
    if tensor is None:
        tensor = _parameter(ledger, wanted)
    if tensor is None:
        return None
    earlier = tuple(bearer for bearer in bearers if bearer != tensor)
    return Found(tensor=tensor, earlier=earlier, since=bearers.get(tensor, 0))


def _later_in_this_call(ledger: Ledger, wanted: str, moment: Moment) -> Named | None:
    """The name as the rest of the call gives it, where nothing before the moment did.

    An argument is told of when it is first used, and had its name all along.
    """
    if moment.function == MODULE or not moment.began:
        return None
    for named in ledger.of(Named):
        if named.scope != moment.function or named.seq <= moment.began or canonical(named.name) != wanted:
            continue
        return named if named.seq > moment.seq and (not moment.ended or named.seq <= moment.ended) else None
    return None


def _is_argument(ledger: Ledger, wanted: str, moment: Moment, named: Named) -> bool:
    """Whether the call had the tensor from its beginning."""
    at = body_at(bodies_of(ledger.source(moment.path) or ""), moment.line)
    known = ledger.tensor(named.tensor)
    if at is None or wanted not in at[0].parameters or known is None:
        return False
    return known.seq <= moment.seq or known.origin not in ("created", "result")


def _parameter(ledger: Ledger, name: str) -> TensorId | None:
    """A parameter by its module's path, where the program never wrote the name."""
    path, _, attribute = name.rpartition(".")
    for module in ledger.of(Module):
        if canonical(module.path) == path:
            for parameter, tensor in module.parameters:
                if parameter == attribute:
                    return tensor
    return None


def _module(ledger: Ledger, name: str) -> ModuleId | None:
    """The module of that path, the newest of several."""
    wanted = canonical(name)
    found = None
    for module in ledger.of(Module):
        if canonical(module.path) == wanted:
            found = module.id
    return found


def _expression(ledger: Ledger, code: str, moment: Moment) -> TensorId | None:
    """The tensor that an expression of the program gave when it ran last."""
    flat = " ".join(code.split())
    found = None
    for operation in ledger.of(Operation):
        if operation.seq > moment.seq:
            break
        site = ledger.site(operation.site)
        if site is not None and operation.outputs and " ".join(site.code.split()) == flat:
            found = operation.outputs[0]
    return found


def known_names(ledger: Ledger) -> dict[str, int]:
    """Every name of a tensor or module, with the event that first gave it."""
    names: dict[str, int] = {}
    for module in ledger.of(Module):
        if module.path:
            names.setdefault(module.path, module.seq)
            for parameter, _ in module.parameters:
                names.setdefault(f"{module.path}.{parameter}", module.seq)
    for named in ledger.of(Named):
        names.setdefault(named.name, named.seq)
    names.pop("", None)
    return names


def _unknown(ledger: Ledger, wanted: Wanted, moment: Moment) -> str:
    """One sentence: the name is not known, or not yet, and the nearest names that are."""
    names = known_names(ledger)
    name = canonical(wanted.name)
    if name in {canonical(known) for known in names}:
        first = next((one for one in ledger.of(Named) if one.seq > moment.seq and canonical(one.name) == name), None)
        place = f" (it gets the name at {ledger.where(first.site)})" if first is not None else ""
        return f"{wanted.name}: no tensor has this name at {moment.text}{place}."
    if not names:
        return f"{wanted.name}: the ledger names no tensor and no module."
    near = difflib.get_close_matches(wanted.name, list(names), n=NEAREST, cutoff=0.5)
    if not near:
        near = [name for name in names if "." not in name][:NEAREST] or list(names)[:NEAREST]
    return f"{wanted.name}: nothing of this name took part in what was recorded. Known names: {joined(near)}."
