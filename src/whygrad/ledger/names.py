"""Which of a tensor's names to say, and which tensor a name means at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Set

from whygrad.ledger.events import Named, TensorId

GLOBAL = "<module>"
"""The scope of global names."""


def best_name(names: Iterable[Named], module_paths: Set[str], owned: str = "") -> str:
    """A module's path (`model.0.weight`) before a global name before a local one; the earliest of equals.

    `owned` is the tensor's name as a parameter of a module, used where its code never named it as such.
    """
    best, best_rank = owned, 3 if owned else 0
    for named in names:
        owner = named.name.rpartition(".")[0]
        rank = 4 if owner and owner in module_paths else 2 if named.scope == GLOBAL else 1
        if rank > best_rank:
            best, best_rank = named.name, rank
    return best


class Bindings:
    """The tensors that one name means, scope by scope, as the events go by."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._by_scope: dict[str, TensorId] = {}
        self._newest: TensorId | None = None

    def bind(self, named: Named) -> None:
        if named.name == self.name:
            self._by_scope[named.scope] = self._newest = named.tensor

    def seen_from(self, function: str) -> TensorId | None:
        """What code in `function` means by the name: its own, else the global one, else an enclosing function's."""
        own = self._by_scope.get(function)
        return own if own is not None else self._by_scope.get(GLOBAL, self._newest)
