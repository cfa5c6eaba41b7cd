"""Which leaves the passes write to that are only counted: found once for passes that are alike, and again when one of
these leaves is gone or the graph leads elsewhere."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from whygrad.engines.pytorch.tensors import Tensors
from whygrad.ledger.events import TensorId

HOPS = 40
"""How far along its first edges a graph is followed to see whether it leads where the last one led."""


class Aim:
    """A leaf that passes write to. `id` is None while the ledger has not met it: one of many, made anew in each step.

    `before` is the leaf, last met, that stood in its place.
    """

    __slots__ = ("before", "id", "is_parameter", "ref", "shape")

    def __init__(self, ref: weakref.ref[Any], tensor: Any, met: TensorId | None, is_parameter: bool) -> None:
        self.ref = ref
        self.shape = tensor.shape
        self.id = met
        self.before: TensorId | None = None
        self.is_parameter = is_parameter

    @property
    def key(self) -> TensorId | Aim:
        """What its writes are counted under."""
        return self if self.id is None else self.id


class BackwardThing:
    """Passes that are alike: from one site, and alike in what came before. `aims` are the leaves that they write to."""

    __slots__ = ("aims", "first", "is_whole", "site")

    def __init__(self, site: int | None) -> None:
        self.site = site
        self.aims: tuple[Aim, ...] | None = None
        self.first: weakref.ref[Any] | None = None
        self.is_whole = False
        """Whether the aims are known and all still there."""

    def leads(self, root: Any) -> bool:
        """Whether the graph of `root` leads along its first edges to the leaf that it led to before."""
        first = self.first
        if first is None:
            return True
        leaf = first_leaf(root)
        return leaf is None or first() is leaf


def first_leaf(root: Any) -> Any:
    """The leaf at the end of the first edges; None where they go far, or to none."""
    node, hops = root.grad_fn, HOPS
    while node is not None:
        edges = node.next_functions
        if not edges:
            return getattr(node, "variable", None)
        node = edges[0][0]
        hops -= 1
        if not hops:
            return None
        if node is None:
            node = next((other for other, _ in edges if other is not None), None)
    return None


class Aims:
    """Finds the aims of things.

    `departed` gets the weak references of aims whose leaf is gone.
    """

    def __init__(self, torch: Any, tensors: Tensors) -> None:
        self.tensors = tensors
        self.departed: list[weakref.ref[Any]] = []
        self._parameter = torch.nn.Parameter
        self._fresh: dict[int, Aim] = {}

    def set(self, thing: BackwardThing, leaves: list[Any], root: Any) -> None:
        """`thing` writes to `leaves`: those of the first time are met, those that come in their place are not yet."""
        old = thing.aims or ()
        alike = len(old) == len(leaves)
        aims = []
        for position, leaf in enumerate(leaves):
            before = old[position] if alike else None
            if before is not None and before.ref() is leaf:
                aims.append(before)
                continue
            succeeds = before is not None and before.ref() is None and before.shape == leaf.shape
            aims.append(self._aim(leaf, before if succeeds else None))
        thing.aims = tuple(aims)
        thing.is_whole = True
        first = None if root is None else first_leaf(root)
        thing.first = None if first is None else weakref.ref(first)

    def miss(self, things: Iterable[BackwardThing]) -> None:
        """Leaves have gone: find the things that aimed at them."""
        self.departed.clear()
        for thing in things:
            thing.is_whole = thing.is_whole and all(aim.ref() is not None for aim in thing.aims or ())

    def pending(self, tensor: Any) -> Aim | None:
        """The aim at a leaf that was not met yet."""
        aim = self._fresh.get(id(tensor))
        return aim if aim is not None and aim.ref() is tensor else None

    def meet(self, aim: Aim) -> TensorId | None:
        """The ledger's id of the leaf, met now if it is still there; else that of the one that stood in its place."""
        if aim.id is None:
            tensor = aim.ref()
            if tensor is None:
                return aim.before
            aim.id = self.tensors.meet(tensor, None).id
            self._fresh.pop(id(tensor), None)
        return aim.id

    def _aim(self, leaf: Any, before: Aim | None) -> Aim:
        known = self.tensors.find(leaf)
        if known is None and before is None:
            known = self.tensors.meet(leaf, None)
        shared = None if known is not None else self.pending(leaf)
        if shared is not None:
            return shared
        ref = weakref.ref(leaf, self.departed.append)
        aim = Aim(ref, leaf, None if known is None else known.id, isinstance(leaf, self._parameter))
        if before is not None:
            aim.before = before.id if before.id is not None else before.before
        if known is None:
            if len(self._fresh) > 64:
                self._fresh = {key: held for key, held in self._fresh.items() if held.ref() is not None}
            self._fresh[id(leaf)] = aim
        return aim
