"""Optimizers: when they were built, what each step changed and by how much, and what it skipped."""

from __future__ import annotations

import itertools
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.objects import ByIdentity, groups_of
from whygrad.engines.pytorch.tensors import Known, Tensors
from whygrad.engines.pytorch.values import Reader
from whygrad.engines.pytorch.writes import Writes
from whygrad.ledger.events import Group, Optimizer, OptimizerId, OptimizerStepped, TensorId, Update
from whygrad.ledger.values import WHOLE_LIMIT, number

LARGE = 65_536
MEASURED_FIRST = 5
MEASURED_EVERY = 10
"""How far a step moved a parameter of more than `LARGE` elements is measured in the first steps, then every tenth."""

COPY_LIMIT = 50_000_000
"""Parameters of more elements than this in all are not copied to see how far a step moved them."""


class Optimizers:
    """Follows every optimizer of the program."""

    def __init__(self, torch: Any, book: Book, reader: Reader, tensors: Tensors, grads: Grads, writes: Writes) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.grads = grads
        self.writes = writes
        self._next = itertools.count(1).__next__
        self._ids: ByIdentity[OptimizerId] = ByIdentity()
        self._groups: ByIdentity[tuple[Any, ...]] = ByIdentity()
        self._names: ByIdentity[str] = ByIdentity()
        self._copies: dict[TensorId, Any] = {}
        self._steps: dict[int, int] = {}
        self._before: dict[int, list[tuple[Any, Known, Any]]] = {}

    def bind(self, optimizer: Any, name: str, site: int | None) -> None:
        """The user's code calls `optimizer` by `name` (its first name stays)."""
        if optimizer not in self._names:
            self._names[optimizer] = name
            self._groups.forget(optimizer)
        self.meet(optimizer, site)

    def meet(self, optimizer: Any, site: int | None) -> OptimizerId:
        """The id of `optimizer`, written to the ledger when it, its name or its groups are new."""
        held = tuple(id(parameter) for group in groups_of(optimizer) for parameter in group["params"])
        known = self._ids.get(optimizer)
        if known is not None and self._groups.get(optimizer) == held:
            return known
        if known is None:
            known = self._ids[optimizer] = OptimizerId(self._next())
        self._groups[optimizer] = held
        groups = tuple(
            Group(tuple(self.tensors.meet(parameter, site).id for parameter in group["params"]), _options(group))
            for group in groups_of(optimizer)
        )
        kind = type(optimizer).__name__
        self.book.write(Optimizer, site, id=known, kind=kind, groups=groups, name=self._names.get(optimizer) or "")
        self.book.step = max(self.book.step, 1)
        return known

    def parameters(self, optimizer: Any) -> list[Any]:
        return [parameter for group in groups_of(optimizer) for parameter in group["params"]]

    def before_step(self, optimizer: Any, site: int | None) -> None:
        self.meet(optimizer, site)
        parameters = self.parameters(optimizer)
        self.grads.observe_these(parameters, "unseen", site)
        if sum(parameter.numel() for parameter in parameters) > COPY_LIMIT:
            self.book.lost("how far a step moved the parameters", f"they have more than {COPY_LIMIT} elements")
            return
        steps = self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1
        everything = steps <= MEASURED_FIRST or steps % MEASURED_EVERY == 0
        held = self._before[id(optimizer)] = []
        for parameter in parameters:
            known = self.tensors.meet(parameter, site)
            self.writes.observe(parameter, known, "", site)
            self.tensors.check_flags(parameter, known, "unseen", site)
            copied = self._copy(parameter, known) if everything or parameter.numel() <= LARGE else None
            held.append((parameter, known, copied))

    def forget_copies(self) -> None:
        """Give back the memory that full recording needs."""
        self._copies.clear()

    def _copy(self, parameter: Any, known: Known) -> Any:
        copied = self._copies[known.id] = self.reader.copy(parameter, self._copies.get(known.id))
        return copied

    def after_step(self, optimizer: Any, site: int | None) -> None:
        held = self._before.pop(id(optimizer), None)
        if held is None:
            return
        kind = f"{type(optimizer).__name__}.step"
        updates: list[Update] = []
        skipped: list[TensorId] = []
        for parameter, known, before in held:
            if parameter.grad is None:
                skipped.append(known.id)
            written = self.writes.stepped(parameter, known, kind, site)
            if before is None:
                if written:
                    updates.append(Update(known.id, known.grad_value))
                continue
            change, size, changed = self.reader.moved(before, parameter)
            if parameter.grad is None and not changed:
                continue
            after = self.reader.read(parameter) if parameter.numel() <= WHOLE_LIMIT else None
            updates.append(Update(known.id, known.grad_value, change, size, changed, after))
        rates = tuple(float(group["lr"]) for group in groups_of(optimizer) if "lr" in group)
        self.book.write(
            OptimizerStepped,
            site,
            optimizer=self._ids[optimizer],
            updates=tuple(updates),
            skipped=tuple(skipped),
            lr=rates,
        )


def _options(group: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in group.items():
        if isinstance(value, bool | int | float | str) or value is None:
            kept[name] = number(value) if isinstance(value, float) else value
        elif isinstance(value, tuple) and all(isinstance(item, bool | int | float) for item in value):
            kept[name] = [number(item) for item in value]
    return kept
