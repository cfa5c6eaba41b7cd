"""Modules: their paths, every call with mode and shapes, the contract that a call broke."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.contracts import broken_contract, configured
from whygrad.engines.pytorch.graph import Graph
from whygrad.engines.pytorch.objects import ByIdentity, inside, names_of, plain_options
from whygrad.engines.pytorch.tensors import Tensors
from whygrad.engines.pytorch.values import Reader, shape
from whygrad.engines.pytorch.writes import Writes
from whygrad.ledger.events import ModeChanged, Module, ModuleCalled, ModuleId, Shape, TensorId

SHAPE_LIMIT = 8

SLOT_LIMIT = 100
"""A module whose parameters are replaced is written anew at most this often."""

Call = tuple[Any, tuple[Any, ...], dict[str, Any], int | None]
"""A module, the arguments that its running call was given, and the site that called it (or something around it)."""


class _Running(threading.local):
    """The calls that run on one thread, the innermost last; None for one that is not followed."""

    def __init__(self) -> None:
        self.stack: list[Call | None] = []


class Modules:
    """Follows module calls on every thread."""

    def __init__(self, torch: Any, book: Book, reader: Reader, tensors: Tensors, graph: Graph, writes: Writes) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.graph = graph
        self.writes = writes
        self._tensor = torch.Tensor
        self._next = itertools.count(1).__next__
        self._ids: ByIdentity[ModuleId] = ByIdentity()
        self._paths: ByIdentity[str] = ByIdentity()
        self._told: ByIdentity[str] = ByIdentity()
        self._held: ByIdentity[tuple[tuple[str, TensorId], ...]] = ByIdentity()
        self._parents: ByIdentity[ModuleId] = ByIdentity()
        self._replaced: ByIdentity[int] = ByIdentity()
        self._roots: dict[tuple[str, str], weakref.ref[Any]] = {}
        self._unmet: list[weakref.ref[Any]] = []
        self.running = _Running()
        tensors.met_parameter = self.meet_named

    def bind(self, module: Any, name: str, scope: str) -> None:
        """The user's code calls `module` by `name`."""
        held = self._roots.get((name, scope))
        if held is None or held() is not module:
            self._roots[name, scope] = weakref.ref(module)
            if not self._told.get(module):
                self._unmet.append(weakref.ref(module))

    def path(self, module: Any) -> str:
        """How the user's code can write the module: a name it was bound to, or its place in such a module."""
        found = self._paths.get(module)
        if found is None:
            self._name_all()
            found = self._paths.get(module) or ""
        return found

    def meet(self, module: Any, site: int | None) -> ModuleId:
        """The id of `module`, written to the ledger if it is new."""
        known = self._ids.get(module)
        if known is None:
            known = self._ids[module] = ModuleId(self._next())
            self._describe(module, known, site)
        return known

    def meet_all(self, module: Any, site: int | None) -> None:
        """Meet a module and all inside it, so that its parameters have names."""
        if self._unmet:
            self.meet_named(site)
        if module not in self._ids:
            for _, inner in list(inside(module)):
                self.meet(inner, site)

    def meet_named(self, site: int | None) -> None:
        """Meet the modules that the user's code has given names, and all inside them, by those names."""
        unmet, self._unmet = self._unmet, []
        named = [module for ref in unmet if (module := ref()) is not None]
        if not named:
            return
        self._name_all()
        named.sort(key=lambda module: (self._paths.get(module) or "").count("."))
        for root in named:  # outer ones first: a module is told by its parent
            for _, module in list(inside(root)):
                known = self._ids.get(module)
                if known is None:
                    self.meet(module, site)
                elif self._told.get(module) != (self._paths.get(module) or ""):
                    self._describe(module, known, site)

    def parameter_set(self, module: Any, site: int | None) -> None:
        """A parameter was put into `module`: in the place of another one, or one more."""
        known = self._ids.get(module)
        if known is None:
            return
        slots = names_of(module)["_parameters"].items()
        held = tuple((name, self.tensors.find(tensor)) for name, tensor in slots if tensor is not None)
        if any(entry is None for _, entry in held) or self._held.get(module) != tuple(
            (name, entry.id) for name, entry in held if entry is not None
        ):
            times = self._replaced[module] = (self._replaced.get(module) or 0) + 1
            if times <= SLOT_LIMIT:
                self._describe(module, known, site)

    def _describe(self, module: Any, known: ModuleId, site: int | None) -> None:
        path = self._told[module] = self.path(module)
        parameters: list[tuple[str, TensorId]] = []
        buffers: list[tuple[str, TensorId]] = []
        for inner in names_of(module).get("_modules", {}).values():
            if inner is not None and inner not in self._parents:
                self._parents[inner] = known
        for origin, held in (("parameter", names_of(module)["_parameters"]), ("buffer", names_of(module)["_buffers"])):
            for name, tensor in list(held.items()):
                if tensor is None:
                    continue
                entry = self.tensors.meet(tensor, site, origin)
                (parameters if origin == "parameter" else buffers).append((name, entry.id))
                if path:
                    self.tensors.name(entry, f"{path}.{name}", "<module>", site)
        self._held[module] = tuple(parameters)
        config = configured(module)
        self.book.write(
            Module,
            site,
            id=known,
            path=path,
            kind=type(module).__name__,
            parameters=tuple(parameters),
            config=config[:200],
            options=plain_options(module),
            buffers=tuple(buffers),
            home=type(module).__module__,
            parent=self._parents.get(module),
        )

    def enter(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: int | None) -> None:
        """A call of `module` begins; it is on the stack already."""
        stack = self.running.stack
        if len(stack) == 1:
            self.meet_all(module, site)
        outer = stack[-2] if len(stack) > 1 else None
        self.graph.mark_module(None if outer is None else self._ids.get(outer[0]))
        if outer is not None and self._told.get(module) == "" and self._told.get(outer[0]):
            self._name_all()
            self._describe(module, self._ids[module], site)
        stack[-1] = (module, args, kwargs, site)

    def leave(self, call: Call, result: Any) -> None:
        """A call is over, and off the stack."""
        module, _, _, site = call
        known = self.meet(module, site)
        self.graph.mark_module(known)
        for parameter in names_of(module).get("_parameters", {}).values():  # an embedding may renormalise its own
            if parameter is not None and (entry := self.tensors.find(parameter)) is not None:
                self.writes.observe(parameter, entry, type(module).__name__, site)
        outputs = self._shapes((result,), site, "result")
        value = self.reader.notable(result) if isinstance(result, self._tensor) else None
        self._write(known, call, outputs=outputs, value=value)

    def fail(self, call: Call) -> None:
        """A call raised, and is off the stack."""
        module, args, kwargs, site = call
        error = sys.exc_info()[1]
        known = self.meet(module, site)
        if type(error).__name__ == "_StopRecomputationError":  # how a checkpoint ends its second forward
            self._write(known, call)
            return
        text = f"{type(error).__name__}: {error}"
        broken = broken_contract(module, (*args, *kwargs.values()), self.torch)
        self._write(known, call, error=text, broken=broken)

    def mode_changed(self, root: Any, call: str, before: dict[int, bool], site: int | None) -> None:
        """`train()` or `eval()` is over: which flags differ from `before`."""
        prefix = self.path(root) or type(root).__name__
        changed = []
        for name, module in inside(root):
            was = before.get(id(module))
            if was is not None and was != module.training:
                changed.append((f"{prefix}.{name}" if name else prefix, was))
        self.book.write(
            ModeChanged, site, module=self.meet(root, site), call=call, training=root.training, changed=tuple(changed)
        )

    def flag_set(self, module: Any, site: int | None) -> None:
        """The user's code set `training` of one module by hand."""
        path = self.path(module) or type(module).__name__
        self.book.write(
            ModeChanged,
            site,
            module=self.meet(module, site),
            call=f"training = {module.training}",
            training=bool(module.training),
            changed=((path, not module.training),),
        )

    def grad_mode(self) -> str:
        if self.torch.is_inference_mode_enabled():
            return "inference"
        return "on" if self.torch.is_grad_enabled() else "off"

    def _write(self, known: ModuleId, call: Call, **more: Any) -> None:
        module, args, kwargs, site = call
        given = (*args, *kwargs.values()) if kwargs else args
        self.book.write(
            ModuleCalled,
            site,
            module=known,
            training=bool(module.training),
            grad_mode=self.grad_mode(),
            inputs=self._shapes(given, site, "unknown", type(module).__name__),
            depth=len(self.running.stack),
            **more,
        )

    def _shapes(self, values: tuple[Any, ...], site: int | None, origin: str, writer: str = "") -> tuple[Shape, ...]:
        """Outlines of the tensors among `values`; notes which of them the module of class `writer` wrote into."""
        found: list[Shape] = []
        tensors: list[Any] = []
        for value in values:
            if isinstance(value, self._tensor):
                tensors.append(value)
            else:
                tensors.extend(self._tensors_in(value, 0))
        for tensor in tensors[:SHAPE_LIMIT]:
            known = self.tensors.meet(tensor, site, origin)
            if writer:
                self.writes.observe(tensor, known, writer, site)
            found.append(Shape(known.id, shape(tensor), self.reader.dtype(tensor)))
        return tuple(found)

    def _tensors_in(self, value: Any, depth: int) -> Iterator[Any]:
        if isinstance(value, self._tensor):
            yield value
        elif depth <= 3 and isinstance(value, list | tuple):
            for item in value[:SHAPE_LIMIT]:
                yield from self._tensors_in(item, depth + 1)
        elif depth <= 3 and type(value) is dict:
            for item in itertools.islice(value.values(), SHAPE_LIMIT):
                yield from self._tensors_in(item, depth + 1)

    def _name_all(self) -> None:
        """Give every module inside a named one its path: a global name first, and of equals the outermost."""
        paths: dict[int, tuple[tuple[int, int], str, Any]] = {}
        for (name, scope), ref in list(self._roots.items()):
            root = ref()
            if root is None:
                del self._roots[name, scope]
                continue
            kind = 2 if name.startswith("self.") else 0 if scope == "<module>" else 1
            for inner, module in inside(root):
                rank = (kind, -inner.count(".") - bool(inner))
                if id(module) not in paths or rank < paths[id(module)][0]:
                    paths[id(module)] = (rank, f"{name}.{inner}" if inner else name, module)
        for _, path, module in paths.values():
            self._paths[module] = path
