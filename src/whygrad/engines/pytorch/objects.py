"""Look at modules and optimizers without running a method of the user's classes.

A class may override `parameters`, `named_modules`, `__eq__` or `__getattribute__`; the program would notice.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from whygrad.ledger.values import number

Held = TypeVar("Held")

PLAIN = frozenset({int, float, bool, str, type(None)})
NO_OPTIONS = frozenset({"training", "call_super_init", "dump_patches"})
TUPLE_LIMIT = 8
OPTIONS_LIMIT = 40
TEXT_LIMIT = 100


class ByIdentity(Generic[Held]):
    """A dictionary whose keys are objects as such, held weakly."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], Held]] = {}

    def __setitem__(self, key: Any, value: Held) -> None:
        number, held = id(key), self._held

        def gone(ref: weakref.ref[Any]) -> None:
            entry = held.get(number)
            if entry is not None and entry[0] is ref:
                del held[number]

        held[number] = (weakref.ref(key, gone), value)

    def __contains__(self, key: Any) -> bool:
        entry = self._held.get(id(key))
        return entry is not None and entry[0]() is key

    def __getitem__(self, key: Any) -> Held:
        if key not in self:
            raise KeyError(id(key))
        return self._held[id(key)][1]

    def get(self, key: Any) -> Held | None:
        entry = self._held.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def forget(self, key: Any) -> None:
        if key in self:
            del self._held[id(key)]


def names_of(owner: Any) -> dict[str, Any]:
    """The instance's own dictionary."""
    return object.__getattribute__(owner, "__dict__")  # type: ignore[no-any-return]


def inside(root: Any) -> Iterator[tuple[str, Any]]:
    """(path below `root`, module) of `root` and of all modules inside it, each once, outer before inner."""
    seen: set[int] = set()
    stack = [("", root)]
    while stack:
        path, module = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        children = [
            (f"{path}.{name}" if path else name, child)
            for name, child in list(names_of(module).get("_modules", {}).items())
            if child is not None
        ]
        stack.extend(reversed(children))


def parameters_of(module: Any) -> list[Any]:
    """The parameters of a module and of all modules inside it."""
    held = [names_of(inner).get("_parameters", {}) for _, inner in inside(module)]
    return [parameter for names in held for parameter in list(names.values()) if parameter is not None]


def plain_options(module: Any) -> dict[str, Any]:
    """The attributes of a module that are numbers, flags, texts or short tuples of these, as the ledger spells them."""
    found: dict[str, Any] = {}
    for name, value in list(names_of(module).items()):
        if type(name) is not str or name.startswith("_") or name in NO_OPTIONS:
            continue
        if type(value) in PLAIN:
            found[name] = _spelled(value)
        elif type(value) in (tuple, list) and len(value) <= TUPLE_LIMIT and all(type(item) in PLAIN for item in value):
            found[name] = [_spelled(item) for item in value]
        if len(found) >= OPTIONS_LIMIT:
            break
    return found


def _spelled(value: Any) -> Any:
    return value[:TEXT_LIMIT] if isinstance(value, str) else number(value) if isinstance(value, float) else value


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """The parameter groups of an optimizer."""
    return list(names_of(optimizer).get("param_groups", ()))
