"""The operands of an expression, as the taps know them: tensors by id, constants by value."""

from __future__ import annotations

from typing import Any

from whygrad.engines.pytorch.graph import Used
from whygrad.engines.pytorch.tensors import Known, Tensors, version
from whygrad.execute.sites import Child, Constant, OperandForm, Passed, Place, Several
from whygrad.ledger.events import Operand, TensorId
from whygrad.ledger.values import number

PLAIN = (int, float, bool, str, type(None))
LIST_LIMIT = 64


class Gathered:
    """The operands of one operation.

    `tensors` are the tensor operands that are at hand as objects; `used` stand in call order, None for others.
    """

    __slots__ = ("inputs", "tensors", "used", "wants_grad")

    def __init__(self) -> None:
        self.inputs: list[Operand] = []
        self.used: list[Used | None] = []
        self.tensors: list[tuple[Any, Known]] = []
        self.wants_grad = False


class Operands:
    """Turns what a tap was given into operands. `last` holds the tensor that each expression gave last."""

    def __init__(self, torch: Any, tensors: Tensors) -> None:
        self.torch = torch
        self.tensors = tensors
        self.last: dict[int, TensorId | tuple[TensorId | None, ...]] = {}

    def gather(self, place: Place, names: tuple[Any, ...], site: int) -> Gathered:
        found = Gathered()
        for form in place.operands:
            found.inputs.append(self._operand(form, names, site, found))
        return found

    def _operand(self, given: OperandForm, names: tuple[Any, ...], site: int, found: Gathered) -> Operand:
        form = given.form
        if isinstance(form, Constant):
            found.used.append(None)
            return Operand(constant=_constant(form.value), keyword=given.keyword, code=given.code)
        if isinstance(form, Passed):
            return self._object(names[form.index], given, site, found)
        if isinstance(form, Child):
            known = self.last.get(form.site)
            if isinstance(known, tuple):
                return self._members(known, given, found)
            tensor = None if known is None else self.tensors.alive(known)
            if tensor is not None:
                return self._object(tensor, given, site, found)
            found.used.append(None)
            return Operand(tensor=known, keyword=given.keyword, code=given.code)
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
            found.tensors.extend(inner.tensors)
            found.wants_grad |= inner.wants_grad
            return Operand(items=items, keyword=given.keyword, code=given.code)
        if isinstance(value, self.torch.dtype | self.torch.device):
            return Operand(constant=str(value), keyword=given.keyword, code=given.code)
        return Operand(keyword=given.keyword, code=given.code)

    def _members(self, known: tuple[TensorId | None, ...], given: OperandForm, found: Gathered) -> Operand:
        items = []
        found.used.append(None)
        for member in known:
            tensor = None if member is None else self.tensors.alive(member)
            if tensor is not None:
                inner = Gathered()
                self._use(tensor, self.tensors.meet(tensor, None), inner)
                found.tensors.extend(inner.tensors)
                found.wants_grad |= inner.wants_grad
            items.append(Operand(tensor=member))
        return Operand(items=tuple(items), keyword=given.keyword, code=given.code)

    def _use(self, tensor: Any, known: Known, found: Gathered) -> None:
        found.tensors.append((tensor, known))
        found.used.append(Used(known.id, version(tensor), tuple(tensor.shape)))
        found.wants_grad |= tensor.requires_grad

    def _several(
        self, form: Several, given: OperandForm, names: tuple[Any, ...], site: int, found: Gathered
    ) -> Operand:
        if form.kind == "ellipsis":
            found.used.append(None)
            return Operand(constant={"ellipsis": True}, code=given.code)
        inner = Gathered()
        items = tuple(self._operand(item, names, site, inner) for item in form.items)
        found.tensors.extend(inner.tensors)
        found.wants_grad |= inner.wants_grad
        found.used.append(None)
        if form.kind == "slice":
            bounds = [item.constant for item in items]
            if all(type(bound) in (int, type(None)) for bound in bounds):
                return Operand(constant={"slice": bounds}, code=given.code)
            return Operand(code=given.code)
        return Operand(items=items, keyword=given.keyword, code=given.code)


def _constant(value: Any) -> Any:
    if isinstance(value, bytes):
        return repr(value)
    return number(value) if isinstance(value, float | complex) else value
