"""`torch.autograd.Function`: operations whose backward the user writes, and PyTorch's answers to their mistakes."""

# mypy: no-warn-return-any
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import not_covered
from .graph import FREED_TEXT, Node, Output, sequence
from .modes import modes
from .tensor import Tensor, brackets, share, wrap
from .views import View, check_writable, refresh_views


class FunctionCtx:
    """What `forward` and `backward` share. Also the node itself, as in PyTorch."""

    __module__ = "torch.autograd.function"


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function: `ctx` in user code."""

    __slots__ = ()
    __module__ = "torch.autograd.function"
    raw = False

    to_save: tuple[Any, ...] = ()
    saved_tensors_kept: Any = ()
    materialize_grads = True
    non_differentiable: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    tensor_inputs: tuple[bool, ...] = ()
    function: Any = None

    def save_for_backward(self, *tensors: Any) -> None:
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass

    def mark_dirty(self, *tensors: Any) -> None:
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        pass

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        kept = self.saved_tensors_kept
        if kept is None:
            raise RuntimeError(FREED_TEXT)
        out = []
        for entry in kept:
            out.append(entry if entry is None else self._unpack(entry))
        return tuple(out)

    def _unpack(self, entry: Any) -> Tensor:
        tensor, version, number = entry
        if tensor._vc is not None and tensor._vc[0] != version:
            where = ""
            if number is not None:
                where = f", which is output {number} of {self.name()},"
            elif tensor._edge is not None:
                from .graph import _short, public

                maker, n = public(tensor._edge)
                where = f", which is output {n} of {_short(maker)},"
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[torch.{tensor.dtype.legacy}Tensor [{', '.join(map(str, tensor._a.shape))}]]{where} is at version "
                f"{tensor._vc[0]}; expected version {version} instead. Hint: enable anomaly detection to find the "
                "operation "
                "that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
            )
        if number is None:
            return tensor
        again = wrap(tensor._a, tensor.dtype)
        again._vc = tensor._vc
        again._edge = self if number == 0 else Output(self, number)
        again._rg = True
        return again

    saved_variables = saved_tensors

    @staticmethod
    def rule(F: Any, node: Any, g: Any) -> Any:
        return node.apply(g)

    def apply(self, g: Any) -> Any:
        cls = self.function
        grads = list(g) if self.outputs is not None else [g]
        kinds = self.outputs if self.outputs is not None else [(self.shape, self.dtype)]
        if self.materialize_grads:
            grads = [
                wrap(np.zeros(shape, d.storage)[()], d) if v is None else v
                for v, (shape, d) in zip(grads, kinds, strict=True)
            ]
        backward, jvp = cls.backward, cls.vjp
        if backward is not Function.backward and jvp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one "
                "of them."
            )
        results = (jvp if jvp is not Function.vjp else backward)(self, *grads)
        if not isinstance(results, tuple):
            results = (results,)
        wanted = len(self.needs_input_grad)
        if len(results) > wanted and all(r is None for r in results[wanted:]):
            results = results[:wanted]
        if len(results) != wanted:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {wanted}, got "
                f"{len(results)})"
            )
        out = []
        for index, (result, is_tensor) in enumerate(zip(results, self.tensor_inputs, strict=True)):
            if not is_tensor:
                if result is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different from None at position {index + 1}, "
                        "but the "
                        "corresponding forward input was not a Variable"
                    )
                continue
            if result is not None and not isinstance(result, Tensor):
                raise TypeError("expected Variable or None (got " + type(result).__name__ + ")")
            out.append(result)
        return tuple(out)


class FunctionMeta(type):
    """Each Function class gets a node class of its own, named after it."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]):
        node = type(f"{name}Backward", (BackwardCFunction,), {"__slots__": (), "function": cls})
        cls._backward_cls = node
        super().__init__(name, bases, namespace)


class Function(metaclass=FunctionMeta):
    """Subclass with static `forward(ctx, ...)` and `backward(ctx, *grads)`; call `apply`."""

    __module__ = "torch.autograd.function"
    _backward_cls: Any
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from .warn import warn

        warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of "
            "PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
            "autograd function "
            "with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it "
            "with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        separate = cls.setup_context is not Function.setup_context
        if kwargs:
            if not separate:
                raise TypeError("apply() takes no keyword arguments")
            not_covered("keyword arguments of autograd.Function.apply")
        ctx = cls._backward_cls()
        ctx.tensor_inputs = tuple(isinstance(a, Tensor) for a in args)
        tracked = modes.grad and any(isinstance(a, Tensor) and a._rg for a in args)
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a._rg for a in args)
        before = modes.grad
        modes.grad = False
        versions = [a._vc[0] if isinstance(a, Tensor) and a._vc is not None else None for a in args]
        try:
            if separate:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            modes.grad = before
        del versions
        return _wire(cls, ctx, args, result, tracked)


Function.vjp = Function.backward


def _wire(cls: type, ctx: Any, args: tuple[Any, ...], result: Any, tracked: bool) -> Any:
    """Give the outputs of a custom forward their history."""
    single = not isinstance(result, tuple)
    outputs = (result,) if single else result
    for number, o in enumerate(outputs):
        if single and not isinstance(o, Tensor):
            raise TypeError(
                f"{cls.__name__}.forward: expected Tensor or tuple of Tensor (got {type(o).__name__}) for return "
                f"value {number}"
            )
    ctx.saved_tensors_kept = ()
    if not tracked:
        ctx.saved_tensors_kept = tuple(None if t is None else (t, t._vc[0] if t._vc else 0, None) for t in ctx.to_save)
        return result
    inputs = [a for a in args if isinstance(a, Tensor)]
    ctx.edges = tuple((a._edge or a) if a._rg else None for a in inputs)
    ctx.saved = ()
    ctx.versions = ()
    ctx.seq = next(sequence)
    flat = [o for o in outputs if isinstance(o, Tensor)]
    ctx.outputs = [(o._a.shape, o.dtype) for o in flat]
    ctx.shape, ctx.dtype = None, flat[0].dtype
    dirty = {id(t) for t in ctx.dirty_tensors}
    outside = {id(t) for t in ctx.non_differentiable}
    for t in ctx.dirty_tensors:
        check_writable(t)
    replaced: dict[int, Tensor] = {}
    number = 0
    wired = []
    for o in outputs:
        if not isinstance(o, Tensor):
            wired.append(o)
            continue
        edge = ctx if number == 0 else Output(ctx, number)
        if id(o) in outside or o.dtype.kind not in "fc":
            new = o
            if any(o is a for a in inputs):
                new = o.detach()
        elif id(o) in dirty:
            new = o
            new._edge, new._rg = edge, True
            if new._vc is not None:
                new._vc[0] += 1
            refresh_views(new)
        elif any(o is a for a in inputs) or o._rg or o._edge is not None:
            share(o)
            new = wrap(o._a, o.dtype)  # an input returned as it is becomes a view of it
            new._vc = o._vc
            base = o if o._view is None else o._view.base
            new._view = View(base, "custom", (ctx.name().removesuffix("Backward"), number))
            new._edge, new._rg = edge, True
        else:
            new = o
            new._edge, new._rg = edge, True
            if new._view is not None:
                new._view = View(new._view.base, "custom", (ctx.name().removesuffix("Backward"), number))
        replaced[id(o)] = new
        wired.append(new)
        number += 1
    kept = []  # type: ignore[var-annotated]
    for t in ctx.to_save:
        if t is None:
            kept.append(None)  # type: ignore[arg-type]
            continue
        if not isinstance(t, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(kept)} is of type {type(t).__name__}"
            )
        position = next((i for i, o in enumerate(flat) if o is t), None)
        version = t._vc[0] if t._vc is not None else 0
        if position is not None:
            plain = wrap(t._a, t.dtype)
            plain._vc = t._vc
            kept.append((plain, version, position))
        else:
            kept.append((t, version, None))  # type: ignore[arg-type]
    ctx.saved_tensors_kept = tuple(kept)
    ctx.to_save = ()
    if ctx.outputs is not None and len(ctx.outputs) == 1:
        ctx.shape, ctx.dtype = ctx.outputs[0]
        ctx.outputs = None
    return wired[0] if single else tuple(wired)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A backward that cannot itself be differentiated."""
    import functools

    @functools.wraps(function)
    def wrapper(ctx: Any, *args: Any) -> Any:
        before = modes.grad
        modes.grad = False
        try:
            outputs = function(ctx, *args)
        finally:
            modes.grad = before
        if not before or not any(isinstance(a, Tensor) and a._rg for a in args):
            return outputs
        many = outputs if isinstance(outputs, tuple) else (outputs,)
        refused = []  # type: ignore[var-annotated]
        for o in many:
            if o is None:
                refused.append(None)
                continue
            plain = o.detach()
            plain._edge = _DelayedError.make(plain)
            plain._rg = True
            refused.append(plain)
        return tuple(refused) if isinstance(outputs, tuple) else refused[0]

    return wrapper


class _DelayedError(Node):
    """Stands where a gradient may not be differentiated again."""

    __slots__ = ()

    @staticmethod
    def make(out: Tensor) -> _DelayedError:
        node = _DelayedError()
        node.edges, node.saved, node.versions = (), (), None
        node.seq, node.shape, node.dtype = next(sequence), out._a.shape, out.dtype
        return node

    @staticmethod
    def rule(F: Any, node: Any, g: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


__all__ = ["Function", "FunctionCtx", "brackets", "once_differentiable"]
