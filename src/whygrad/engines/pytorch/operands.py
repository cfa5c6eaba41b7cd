"""The operands of an expression, as the taps know them: tensors by id, constants by value."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgspec

from whygrad.engines.pytorch.graph import Used
from whygrad.engines.pytorch.tensors import Known, Tensors, version
from whygrad.engines.pytorch.values import shape
from whygrad.execute.sites import Child, Constant, OperandForm, Passed, Place, Several, SiteTable
from whygrad.ledger.events import Operand
from whygrad.ledger.values import number

PLAIN = (int, float, bool, str, type(None))
LIST_LIMIT = 64

WAITING_LIMIT = 64
"""Results that wait for the expression around theirs: more than one only where that expression calls itself."""


class Number(msgspec.Struct, frozen=True, eq=False):
    """A value that is no tensor: a number, a text or None."""

    value: Any


Result = Known | tuple[Known, ...] | Number
"""What an expression gave."""

TRIES = 3
"""So often a number is offered to the expression around its own, unless that asks for it."""


class Gathered:
    """The operands of one operation.

    `tensors` are the tensor operands that are at hand as objects; `used` stand in call order, None for others.
    `has_tensors` and `wants_grad` count those too that are gone already.
    """

    __slots__ = ("has_tensors", "inputs", "tensors", "used", "wants_grad")

    def __init__(self) -> None:
        self.inputs: list[Operand] = []
        self.used: list[Used | None] = []
        self.tensors: list[tuple[Any, Known]] = []
        self.has_tensors = False
        self.wants_grad = False

    def include(self, inner: Gathered) -> None:
        self.tensors.extend(inner.tensors)
        self.has_tensors |= inner.has_tensors
        self.wants_grad |= inner.wants_grad


class _Waiting(threading.local):
    """For each expression of one thread, the results that the expression around it has not used yet."""

    def __init__(self) -> None:
        self.results: dict[int, list[Result]] = {}


class Operands:
    """Turns what a tap was given into operands."""

    def __init__(self, torch: Any, tensors: Tensors, table: SiteTable) -> None:
        self.torch = torch
        self.tensors = tensors
        self._places = table.places
        self._parameters = table.parameters
        self._looked_at = 0
        self._inner: set[int] = set()
        self._waiting = _Waiting()
        self._offered: dict[int, int] = {}

    def give(self, site: int, result: Result) -> None:
        """The expression at `site` gave `result`; the expression around it, if there is one, will ask for it."""
        if self._is_inner(site):
            waiting = self._waiting.results.setdefault(site, [])
            waiting.append(result)
            if len(waiting) > WAITING_LIMIT:
                del waiting[0]

    def give_number(self, site: int, value: Any) -> bool:
        """The expression at `site` gave no tensor. Returns whether the expression around it may want to know what."""
        if not self._is_inner(site):
            return False
        offered = self._offered[site] = self._offered.get(site, 0) + 1
        if offered > TRIES:
            del self._offered[site]
            self._waiting.results.pop(site, None)
            return False
        if type(value) in PLAIN:
            self.give(site, Number(value))
        return True

    def _is_inner(self, site: int) -> bool:
        """Whether there is an expression around `site` whose operand it is."""
        if self._looked_at < len(self._places):
            for place in self._places[self._looked_at :]:
                self._inner.update(_children(place.operands))
            self._looked_at = len(self._places)
        return site in self._inner

    def take(self, site: int) -> Result | None:
        waiting = self._waiting.results.get(site)
        return waiting.pop() if waiting else None

    def drop(self, place: Place) -> None:
        """Nobody will ask for the operands of `place`."""
        for site in _children(place.operands):
            self.take(site)

    def forget(self) -> None:
        """An exception, or a stretch without taps, left results behind (on this thread)."""
        self._waiting.results.clear()

    def gather(self, place: Place, names: tuple[Any, ...], site: int) -> Gathered:
        found = Gathered()
        for form in place.operands:
            found.inputs.append(self._operand(form, names, site, found))
        given = self._parameters.get((place.path, place.function))
        if given:
            for name in place.operands:
                if isinstance(name.form, Passed) and name.code in given:
                    self._name(names[name.form.index], name.code, place.function, site)
        return found

    def _name(self, value: Any, name: str, function: str, site: int) -> None:
        """A function of the user's calls what it was given by a name of its own."""
        if isinstance(value, self.torch.Tensor):
            self.tensors.name(self.tensors.meet(value, site), name, function, site)

    def _operand(self, given: OperandForm, names: tuple[Any, ...], site: int, found: Gathered) -> Operand:
        form = given.form
        if isinstance(form, Constant):
            found.used.append(None)
            return Operand(constant=_constant(form.value), keyword=given.keyword, code=given.code)
        if isinstance(form, Passed):
            return self._object(names[form.index], given, site, found)
        if isinstance(form, Child):
            result = self.take(form.site)
            if isinstance(result, tuple):
                return self._members(result, given, found)
            if isinstance(result, Number):
                self._offered[form.site] = 0
                found.used.append(None)
                return Operand(constant=_constant(result.value), keyword=given.keyword, code=given.code)
            if result is not None:
                self._use(result.ref(), result, found)
                return Operand(tensor=result.id, keyword=given.keyword, code=given.code)
            found.used.append(None)
            return Operand(keyword=given.keyword, code=given.code)
        if isinstance(form, Several):
            return self._several(form, given, names, site, found)
        found.used.append(None)
        return Operand(keyword=given.keyword, code=given.code)

    def _object(self, value: Any, given: OperandForm, site: int, found: Gathered) -> Operand:
        if isinstance(value, self.torch.Tensor):
            known = self.tensors.meet(value, site)
            self._use(value, known, found)
            return Operand(tensor=known.id, keyword=given.keyword, code=given.code)
        found.used.append(None)
        if type(value) in PLAIN:
            return Operand(constant=_constant(value), keyword=given.keyword, code=given.code)
        if isinstance(value, list | tuple) and len(value) <= LIST_LIMIT:
            inner = Gathered()
            items = tuple(self._object(item, OperandForm(Constant(None)), site, inner) for item in value)
            found.include(inner)
            return Operand(items=items, keyword=given.keyword, code=given.code)
        if isinstance(value, self.torch.dtype | self.torch.device):
            return Operand(constant=str(value), keyword=given.keyword, code=given.code)
        return Operand(keyword=given.keyword, code=given.code)

    def _members(self, members: tuple[Known, ...], given: OperandForm, found: Gathered) -> Operand:
        inner = Gathered()
        for known in members:
            self._use(known.ref(), known, inner)
        found.include(inner)
        found.used.append(None)
        items = tuple(Operand(tensor=known.id) for known in members)
        return Operand(items=items, keyword=given.keyword, code=given.code)

    def _use(self, tensor: Any, known: Known, found: Gathered) -> None:
        """`tensor` is None where the operand is gone already; then it was as it was last seen."""
        found.has_tensors = True
        if tensor is None:
            found.used.append(Used(known.id, known.version, known.shape))
            found.wants_grad |= known.requires_grad
        else:
            found.tensors.append((tensor, known))
            found.used.append(Used(known.id, version(tensor), shape(tensor)))
            found.wants_grad |= tensor.requires_grad

    def _several(
        self, form: Several, given: OperandForm, names: tuple[Any, ...], site: int, found: Gathered
    ) -> Operand:
        if form.kind == "ellipsis":
            found.used.append(None)
            return Operand(constant={"ellipsis": True}, code=given.code)
        inner = Gathered()
        items = tuple(self._operand(item, names, site, inner) for item in form.items)
        found.include(inner)
        found.used.append(None)
        if form.kind == "slice":
            bounds = [item.constant for item in items]
            if all(type(bound) in (int, type(None)) for bound in bounds):
                return Operand(constant={"slice": bounds}, code=given.code)
            return Operand(code=given.code)
        return Operand(items=items, keyword=given.keyword, code=given.code)


def _children(operands: tuple[OperandForm, ...]) -> Iterator[int]:
    """The sites of the expressions among some operands."""
    for operand in operands:
        if isinstance(operand.form, Child):
            yield operand.form.site
        elif isinstance(operand.form, Several):
            yield from _children(operand.form.items)


def _constant(value: Any) -> Any:
    if isinstance(value, bytes):
        return repr(value)
    return number(value) if isinstance(value, float | complex) else value
