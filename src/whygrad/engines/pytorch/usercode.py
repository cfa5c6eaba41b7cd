"""What the taps of the user's code tell: the values of expressions, the names that statements bind, and writes."""

from __future__ import annotations

import weakref
from typing import Any

from whygrad.engines.pytorch.objects import parameters_of
from whygrad.engines.pytorch.parts import Parts
from whygrad.engines.pytorch.taps import SEEDING, TAKES_OUT, write_seed
from whygrad.engines.pytorch.tensors import ELEMENT_LIMIT
from whygrad.execute.sites import Place
from whygrad.ledger.events import Noted


class UserCode(Parts):
    """The slow paths of the taps: there is something to tell."""

    def on_value(self, site: int, value: Any, names: tuple[Any, ...]) -> None:
        place = self.table.places[site]
        kind = type(value)
        if kind in self._plain or isinstance(value, self._tensor):
            self.operations.result(site, place, value, names)
            self._bind_tensor(site, place, value)
        elif isinstance(value, list | tuple):
            if place.operation in TAKES_OUT:
                self.operations.taken_out(site, place, names)
            else:
                self.operations.result(site, place, value, names)
            self._bind_members(site, place, value)
        elif isinstance(value, self._module):
            self.graph.mark_site(site)
            for target in place.targets:
                self.modules.bind(value, target, place.function)
            if place.operation == "requires_grad_":
                self._check_flags(value, site)
        elif isinstance(value, self._optimizer):
            if place.targets:
                self.optimizers.bind(value, place.targets[0], site)
        elif isinstance(value, dict):
            self.graph.mark_site(site)
            self._bind_members(site, place, value)
        else:
            self.graph.mark_site(site)
            if place.operation in TAKES_OUT:
                self.operations.taken_out(site, place, names)
            elif place.operation in SEEDING:
                write_seed(self.book, place, site, names)

    def _check_flags(self, module: Any, site: int) -> None:
        for parameter in parameters_of(module):
            self.tensors.check_flags(parameter, self.tensors.meet(parameter, site), "requires_grad_", site)

    def on_none(self, site: int, names: tuple[Any, ...]) -> None:
        """An expression that can give a tensor gave None."""
        place = self.table.places[site]
        self.graph.mark_site(site)
        if place.operation == "retain_grad" and place.method:
            for tensor, known in self.operations.operands.gather(place, names, site).tensors:
                self.tensors.retain(tensor, known)
        else:
            self.operations.operands.drop(place)

    def on_bound(self, site: int, value: Any) -> None:
        """A statement gave `value` a name while recording is light."""
        if isinstance(value, self._module):
            place = self.table.places[site]
            for target in place.targets:
                self.modules.bind(value, target, place.function)
        elif isinstance(value, self._optimizer):
            self.tell("a name", self.optimizers.bind, value, self.table.places[site].targets[0], site)
        elif isinstance(value, self._tensor) and self._transform() is None and value.is_leaf and value.requires_grad:
            self._bound[site] = weakref.ref(value)

    def name_bound(self) -> None:
        """The leaves that got names while recording was light, and are still there; one made anew in each step is one
        of many, of which only the last is told."""
        bound, self._bound = self._bound, {}
        for site, ref in bound.items():
            value = ref()
            if value is not None and value.is_leaf and value.requires_grad:
                place = self.table.places[site]
                known = self.tensors.meet(value, site, "created")
                for target in place.targets:
                    self.tensors.name(known, target, place.function, site)

    def on_look(self, site: int, value: Any) -> None:
        place = self.table.places[site]
        if isinstance(value, self._tensor):
            self.operations.read(site, value)
            self._bind_tensor(site, place, value)
            if not place.targets and place.code.isidentifier() is False and len(place.code) < 60:
                self.tensors.name(self.tensors.meet(value, site), place.code, place.function, site)
        elif isinstance(value, self._module):
            for target in place.targets:
                self.modules.bind(value, target, place.function)
        elif isinstance(value, list | tuple | dict) and place.targets:
            self._bind_members(site, place, value)

    def on_names(self, site: int, values: tuple[Any, ...]) -> None:
        if self.operations.over(site):
            return
        place = self.table.places[site]
        for name, value in zip(place.targets, values, strict=False):
            if isinstance(value, self._tensor):
                self.tensors.name(self.tensors.meet(value, site, "created"), name, place.function, site)
            elif isinstance(value, self._module):
                self.modules.bind(value, name, place.function)
            elif isinstance(value, self._optimizer):
                self.optimizers.bind(value, name, site)
            elif isinstance(value, list | tuple | dict):
                self._name_members(site, place, value, (name,))

    def before_write(self, owner: Any) -> None:
        """The user's code writes through `owner` while a backward runs (in a hook)."""
        known = self.tensors.find(owner) if isinstance(owner, self._tensor) else None
        if known is not None:
            self.backwards.settle(owner, known)

    def on_wrote(self, site: int, owner: Any, names: tuple[Any, ...] = ()) -> None:
        """A write through an attribute or an item of `owner` is done."""
        place = self.table.places[site]
        if not isinstance(owner, self._tensor):
            self._wrote_other(site, place, owner)
        elif place.attribute == "grad":
            self._wrote_grad(site, place, owner)
        elif not self.depth.full:
            return
        elif place.attribute == "data":
            self.operations.hidden_write(site, place, owner)
        elif place.attribute == "requires_grad":
            self.tensors.check_flags(owner, self.tensors.meet(owner, site), "requires_grad = ", site)
        elif place.attribute and place.attribute != "training":
            self.book.write(Noted, site, text=f"`{place.code}` sets an attribute that PyTorch does not know")
        elif place.item:
            self.operations.written_in_place(site, place, owner, names)

    def _wrote_other(self, site: int, place: Place, owner: Any) -> None:
        self.operations.operands.drop(place)
        if not self.depth.full:
            return
        if isinstance(owner, self._module) and place.attribute == "training":
            self.modules.flag_set(owner, site)
        elif place.item and type(owner).__module__ == "numpy":
            leaf = self.grads.holder(owner.__array_interface__["data"][0])
            if leaf is not None:
                self.grads.observe(leaf.ref(), leaf, "assignment", site, closely=True)

    def _wrote_grad(self, site: int, place: Place, owner: Any) -> None:
        if not self.depth.full:
            if owner.is_leaf and (owner.grad is None or place.operation == "zero_"):
                self.fold.reset_leaf(owner)
            return
        known = self.tensors.meet(owner, site)
        self.tensors.retain(owner, known)
        by = place.operation or "assignment"
        if by == "assignment" and owner.grad is None:
            by = place.written if place.written.startswith("del ") else f"{place.written} = None"
        self.grads.observe(owner, known, by, site, closely=True)

    def on_updated(self, site: int, value: Any, names: tuple[Any, ...]) -> None:
        place = self.table.places[site]
        if not isinstance(value, self._tensor):
            return
        known = self.tensors.find(value)
        if known is not None and known.version != value._version:
            self.operations.written_in_place(site, place, value, names)
        else:
            self.operations.result(site, _out_of_place(place), value, names)
        if not self.operations.is_over(site):
            self.tensors.name(self.tensors.meet(value, site), place.operands[0].code, place.function, site)

    def _bind_tensor(self, site: int, place: Place, value: Any) -> None:
        if place.targets and not self.operations.is_over(site):
            known = self.tensors.meet(value, site)
            for target in place.targets:
                self.tensors.name(known, target, place.function, site)

    def _bind_members(self, site: int, place: Place, value: Any) -> None:
        if not self.operations.is_over(site):
            self._name_members(site, place, value, place.targets)

    def _name_members(self, site: int, place: Place, value: Any, names: tuple[str, ...]) -> None:
        if not names or len(value) > 4 * ELEMENT_LIMIT:
            return
        for index, tensor in self.tensors.members(value):
            known = self.tensors.meet(tensor, site, "created")
            for name in names:
                self.tensors.name(known, name + index, place.function, site)


def _out_of_place(place: Place) -> Place:
    """`x += y` where x was no tensor before: an ordinary addition."""
    return Place(
        place.path,
        place.line,
        place.column,
        place.end_line,
        place.end_column,
        place.function,
        place.code,
        place.operation.removesuffix("_"),
        operands=place.operands,
    )
