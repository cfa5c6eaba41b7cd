"""A recorded computation as something to compute again: values, steps, the target, the roots.

No ledger here: `rebuild` makes a graph from one, `replay` runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NewType

import msgspec

from whygrad.answers.derive.operations.table import Array
from whygrad.ledger.events import SiteId, TensorId
from whygrad.ledger.values import Value

Slot = NewType("Slot", int)
"""A place for one value of one tensor."""


class NotDerivedError(Exception):
    """No expectation can be given; the text says why, with the line."""


class Ref(msgspec.Struct, frozen=True):
    """An argument that is the value in a slot."""

    slot: Slot


class Missing(msgspec.Struct, frozen=True):
    """A plain number that was not recorded (`len(x)`): the recorded operand and result may settle it."""

    code: str


class Result(msgspec.Struct, frozen=True):
    """What a step must give: shape and dtype as recorded, and the value where it was kept whole.

    `flows` is false where autograd sends nothing back (a cut, no_grad, integers): then the value stays as it
    was, whatever becomes of the operands.
    """

    slot: Slot
    shape: tuple[int, ...]
    dtype: str
    value: Value | None
    flows: bool


class Step(msgspec.Struct, frozen=True):
    """One recorded operation. Arguments are constants, `Ref`s, and lists, tuples and slices of them.

    `function` computes it; None for a gradient (`autograd.grad`), which has its recorded value and can at most
    be written down. `choices` are further keyword arguments of which the recorded result decides.
    """

    name: str
    function: Callable[..., Any] | None
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    results: tuple[Result | None, ...]
    code: str
    where: str
    site: SiteId | None = None
    choices: tuple[dict[str, Any], ...] = ({},)

    def refs(self) -> list[Slot]:
        return list(refs((*self.arguments, *self.keywords.values())))

    def said(self) -> str:
        """How a sentence names it: `w * 2.0` (line 7)."""
        return f"`{self.code or self.name}` ({self.where})"


class Root(msgspec.Struct, frozen=True):
    """A tensor that the backward started from. `weight` is the gradient argument: None for ones."""

    slot: Slot
    weight: Array | None


class Graph(msgspec.Struct, frozen=True):
    """What the backward differentiated.

    `steps` are in the order in which they ran. `targets` are the slots of the tensor whose gradient is asked
    for (more than one if it was written between two uses). `tensors` says whose value each slot is, `labels`
    the text of the expression that gave it. `where` is the place of the root. `doubt` says what a disagreement
    may come from, if something about the backward was not recorded.
    """

    given: dict[Slot, Array]
    steps: tuple[Step, ...]
    targets: tuple[Slot, ...]
    roots: tuple[Root, ...]
    tensors: tuple[TensorId, ...]
    labels: dict[Slot, str]
    where: str
    doubt: str = ""

    def live(self) -> frozenset[Slot]:
        """The slots whose value depends on the target as autograd sees it."""
        alive = set(self.targets)
        for step in self.steps:
            if any(slot in alive for slot in step.refs()):
                alive.update(result.slot for result in step.results if result is not None and result.flows)
        return frozenset(alive)


def refs(argument: Any) -> list[Slot]:
    """The slots that an argument mentions."""
    if isinstance(argument, Ref):
        return [argument.slot]
    if isinstance(argument, list | tuple):
        return [slot for item in argument for slot in refs(item)]
    if isinstance(argument, slice):
        return refs((argument.start, argument.stop, argument.step))
    return []


def filled(argument: Any, values: Any) -> Any:
    """An argument with the values in place of the slots."""
    if isinstance(argument, Ref):
        return values[argument.slot]
    if isinstance(argument, list):
        return [filled(item, values) for item in argument]
    if isinstance(argument, tuple):
        return tuple(filled(item, values) for item in argument)
    if isinstance(argument, slice):
        return slice(*(filled(part, values) for part in (argument.start, argument.stop, argument.step)))
    return argument
