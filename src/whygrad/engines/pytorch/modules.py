"""Modules: their paths, every call with mode and shapes, the contract that a call broke."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.graph import Graph
from whygrad.engines.pytorch.tensors import Tensors
from whygrad.engines.pytorch.values import Reader
from whygrad.ledger.events import ModeChanged, Module, ModuleCalled, ModuleId, Shape

SHAPE_LIMIT = 8

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A module and the arguments that its running call was given."""


class Modules:
    """Follows module calls on every thread."""

    def __init__(self, torch: Any, book: Book, reader: Reader, tensors: Tensors, graph: Graph) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.graph = graph
        self._module = torch.nn.Module
        self._next = itertools.count(1).__next__
        self._ids: weakref.WeakKeyDictionary[Any, ModuleId] = weakref.WeakKeyDictionary()
        self._paths: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._roots: dict[str, tuple[Any, str]] = {}
        self._running = threading.local()

    def stack(self) -> list[Call | None]:
        try:
            return self._running.stack  # type: ignore[no-any-return]
        except AttributeError:
            self._running.stack = []
            return self._running.stack  # type: ignore[no-any-return]

    def bind(self, module: Any, name: str, scope: str) -> None:
        """The user's code calls `module` by `name`."""
        if not name.startswith("self."):
            self._roots[name] = (weakref.ref(module), scope)

    def path(self, module: Any) -> str:
        """How the user's code can write the module: a name it was bound to, or its place in such a module."""
        found = self._paths.get(module)
        if found is None:
            self._name_all()
            found = self._paths.get(module, "")
        return found

    def meet(self, module: Any, site: int | None) -> ModuleId:
        """The id of `module`, written to the ledger if it is new (or has got a path since)."""
        known = self._ids.get(module)
        if known is not None:
            return known
        known = self._ids[module] = ModuleId(self._next())
        path = self.path(module)
        parameters = []
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                entry = self.tensors.meet(parameter, site)
                parameters.append((name, entry.id))
                if path:
                    self.tensors.name(entry, f"{path}.{name}", "<module>", site)
        try:
            config = str(module.extra_repr())
        except Exception:
            config = ""
        self.book.write(
            Module,
            site,
            id=known,
            path=path,
            kind=type(module).__name__,
            parameters=tuple(parameters),
            config=config[:200],
        )
        return known

    def meet_all(self, module: Any, site: int | None) -> None:
        """Meet a module and all inside it, so that its parameters have names."""
        if module not in self._ids:
            for inner in list(self._module.modules(module)):
                self.meet(inner, site)

    def enter(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: int | None) -> None:
        stack = self.stack()
        if not stack:
            self.meet_all(module, site)
        self.graph.mark_module(self._innermost(stack))
        stack.append((module, args, kwargs))

    def leave(self, result: Any, site: int | None) -> None:
        stack = self.stack()
        call = stack.pop()
        if call is None:
            return
        module, args, kwargs = call
        known = self.meet(module, site)
        self.graph.mark_module(known)
        outputs = self._shapes(result, site, "result")
        value = None
        if isinstance(result, self.torch.Tensor):
            value = self.reader.small(result)
        self._write(known, module, args, kwargs, site, len(stack), outputs=outputs, value=value)

    def fail(self, site: int | None) -> None:
        stack = self.stack()
        call = stack.pop()
        if call is None:
            return
        module, args, kwargs = call
        error = sys.exc_info()[1]
        known = self.meet(module, site)
        if type(error).__name__ == "_StopRecomputationError":  # how a checkpoint ends its second forward
            self._write(known, module, args, kwargs, site, len(stack))
            return
        text = f"{type(error).__name__}: {error}"
        broken = broken_contract(module, args, self.torch)
        self._write(known, module, args, kwargs, site, len(stack), error=text, broken=broken)

    def mode_changed(self, root: Any, call: str, before: dict[Any, bool], site: int | None) -> None:
        """`train()` or `eval()` is over: which flags differ from `before`."""
        prefix = self.path(root) or type(root).__name__
        changed = []
        for name, module in self._module.named_modules(root):
            was = before.get(module)
            if was is not None and was != module.training:
                changed.append((f"{prefix}.{name}" if name else prefix, was))
        self.book.write(
            ModeChanged, site, module=self.meet(root, site), call=call, training=root.training, changed=tuple(changed)
        )

    def grad_mode(self) -> str:
        if self.torch.is_inference_mode_enabled():
            return "inference"
        return "on" if self.torch.is_grad_enabled() else "off"

    def _write(
        self,
        known: ModuleId,
        module: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        site: int | None,
        depth: int,
        **more: Any,
    ) -> None:
        self.book.write(
            ModuleCalled,
            site,
            module=known,
            training=bool(module.training),
            grad_mode=self.grad_mode(),
            inputs=self._shapes((*args, *kwargs.values()), site, "unknown"),
            depth=depth,
            **more,
        )

    def _shapes(self, value: Any, site: int | None, origin: str) -> tuple[Shape, ...]:
        found: list[Shape] = []
        self._gather(value, found, site, origin, 0)
        return tuple(found)

    def _gather(self, value: Any, found: list[Shape], site: int | None, origin: str, depth: int) -> None:
        if len(found) >= SHAPE_LIMIT or depth > 3:
            return
        if isinstance(value, self.torch.Tensor):
            known = self.tensors.meet(value, site, origin)
            found.append(Shape(known.id, tuple(value.shape), self.reader.dtype(value)))
        elif isinstance(value, list | tuple):
            for item in value[:SHAPE_LIMIT]:
                self._gather(item, found, site, origin, depth + 1)
        elif type(value) is dict:
            for item in itertools.islice(value.values(), SHAPE_LIMIT):
                self._gather(item, found, site, origin, depth + 1)

    def _innermost(self, stack: list[Call | None]) -> ModuleId | None:
        call = stack[-1] if stack else None
        return None if call is None else self._ids.get(call[0])

    def _name_all(self) -> None:
        """Give every module inside a named one its path; the outermost name wins, a global one first."""
        paths: dict[Any, tuple[int, str]] = {}
        for name, (ref, scope) in list(self._roots.items()):
            root = ref()
            if root is None:
                del self._roots[name]
                continue
            for inner, module in self._module.named_modules(root):
                path = f"{name}.{inner}" if inner else name
                rank = (0 if scope == "<module>" else 1, -path.count("."))
                if module not in paths or (rank[0], rank[1]) < (paths[module][0], 0 - paths[module][1].count(".")):
                    paths[module] = (rank[0], path)
        for module, (_, path) in paths.items():
            self._paths[module] = path


def broken_contract(module: Any, args: tuple[Any, ...], torch: Any) -> str:
    """Which expectation of a known module its first argument does not meet; empty if none of those known here."""
    given = args[0] if args else None
    if not isinstance(given, torch.Tensor):
        return ""
    kind, shape = type(module).__name__, tuple(given.shape)
    label = f"{kind}({module.extra_repr()})"
    last = shape[-1] if shape else None
    for attribute in ("in_features", "input_size", "embed_dim", "d_model"):
        wanted = getattr(module, attribute, None)
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            if last != wanted:
                return f"{label} expects {wanted} features in the last dimension, got {last} (shape {shape})"
            break
    channels = getattr(module, "in_channels", None)
    if isinstance(channels, int):
        spatial = len(getattr(module, "kernel_size", ()))
        if len(shape) not in (spatial + 1, spatial + 2):
            return f"{label} expects {spatial + 2} dimensions (or {spatial + 1} without a batch), got {len(shape)}"
        got = shape[-spatial - 1]
        if got != channels:
            return f"{label} expects {channels} channels in dimension {len(shape) - spatial - 1}, got {got}"
    features = getattr(module, "num_features", None)
    if isinstance(features, int) and len(shape) > 1 and shape[1] != features:
        return f"{label} expects {features} channels in dimension 1, got {shape[1]}"
    normalized = getattr(module, "normalized_shape", None)
    if isinstance(normalized, tuple) and shape[len(shape) - len(normalized) :] != normalized:
        return f"{label} expects the last dimensions {tuple(normalized)}, got shape {shape}"
    rows = getattr(module, "num_embeddings", None)
    if isinstance(rows, int) and not given.is_floating_point() and given.numel() and given.device.type == "cpu":
        low, high = int(given.min()), int(given.max())
        if low < 0 or high >= rows:
            return f"{label} expects indices from 0 to {rows - 1}, got {low} to {high}"
    weight = getattr(module, "weight", None)
    if isinstance(weight, torch.Tensor) and given.is_floating_point() and given.dtype != weight.dtype:
        return f"{label} has {_short(weight.dtype)} weights, got a {_short(given.dtype)} input"
    return ""


def _short(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
