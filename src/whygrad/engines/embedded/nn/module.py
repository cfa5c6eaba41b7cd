"""`torch.nn.Module`: registration, hooks, modes, state, and how a module prints."""

# mypy: no-warn-return-any
from __future__ import annotations

import functools
import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

from .. import dtypes
from ..errors import not_covered
from ..function import Function
from ..graph import RemovableHandle
from ..modes import modes
from ..nn_parameter import Buffer, Parameter
from ..tensor import Tensor
from ..warn import warn

_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])  # type: ignore[name-match]


class IncompatibleKeys(_IncompatibleKeys):
    """What `load_state_dict` reports."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class GlobalHooks:
    """Hooks on all modules (`torch.nn.modules.module.register_module_*`)."""

    forward_pre: OrderedDict[int, Any] = OrderedDict()
    forward: OrderedDict[int, Any] = OrderedDict()


def _indented(text: str, spaces: int) -> str:
    lines = text.split("\n")
    if len(lines) == 1:
        return text
    return lines[0] + "\n" + "\n".join(" " * spaces + line for line in lines[1:])


class Module:
    """Base of all networks: assign parameters, buffers and modules as attributes, define `forward`."""

    __module__ = "torch.nn.modules.module"
    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False
    __constants__: list[str] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("torch.nn.") and "forward" in vars(cls):
            vars(cls)["forward"].__module__ = cls.__module__  # so that tools know PyTorch's own from a user's

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        if not self.call_super_init and args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        put = functools.partial(object.__setattr__, self)
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_non_persistent_buffers_set", set())
        put("_modules", {})
        for name in (
            "_backward_pre_hooks",
            "_backward_hooks",
            "_forward_hooks",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
        ):
            put(name, OrderedDict())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # --- registration -------------------------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def _check_name(self, kind: str, name: Any, own: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in own:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None "
                    "required)"
                )
            if param._edge is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    "explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        self.add_module(name, module)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params, modules, buffers = own.get("_parameters"), own.get("_modules"), own.get("_buffers")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name)
            modules[name] = value
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = value
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or "
                    "None expected)"
                )
            if isinstance(value, Buffer):
                self._forget(name)
                self.register_buffer(name, value, value.__dict__.get("persistent", True))
            else:
                assert buffers is not None
                buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str) -> None:
        for d in (self.__dict__, self._buffers, self._modules, self._parameters):
            if name in d and not (d is self._parameters or d is self._modules):
                del d[name]
        if name in self._modules:
            pass
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            found = own.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for d in (self._parameters, self._buffers, self._modules):
            if name in d:
                del d[name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._modules, *self._buffers})

    def get_submodule(self, target: str) -> Module:
        module: Module = self
        if target:
            for part in target.split("."):
                if not hasattr(module, part):
                    raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
                module = getattr(module, part)
                if not isinstance(module, Module):
                    raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def get_parameter(self, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        path, _, name = target.rpartition(".")
        return getattr(self.get_submodule(path), name)

    # --- calling --------------------------------------------------------------------------------------------------

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if not (
            own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
            or GlobalHooks.forward
            or GlobalHooks.forward_pre
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    __call__ = _call_impl = _wrapped_call_impl

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for number, hook in [*GlobalHooks.forward_pre.items(), *self._forward_pre_hooks.items()]:
            if number in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                            f"{changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        backward = None
        if self._backward_hooks or self._backward_pre_hooks:
            backward = _BackwardHooks(self)
            args = backward.on_inputs(args)
        result = self.forward(*args, **kwargs)
        for number, hook in [*GlobalHooks.forward.items(), *self._forward_hooks.items()]:
            changed = (
                hook(self, args, kwargs, result)
                if number in self._forward_hooks_with_kwargs
                else hook(self, args, result)
            )
            if changed is not None:
                result = changed
        return result if backward is None else backward.on_outputs(result)

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        handle = RemovableHandle(
            self._forward_pre_hooks, hook, extra_dict=self._forward_pre_hooks_with_kwargs, prepend=prepend
        )
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        if always_call:
            not_covered("always_call=True of register_forward_hook")
        handle = RemovableHandle(self._forward_hooks, hook, extra_dict=self._forward_hooks_with_kwargs, prepend=prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        return handle

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        return RemovableHandle(self._backward_hooks, hook, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        return RemovableHandle(self._backward_pre_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Any) -> RemovableHandle:
        not_covered("Module.register_backward_hook (use register_full_backward_hook)")

    # --- walking --------------------------------------------------------------------------------------------------

    def _named_members(
        self, members: Callable[[Module], Any], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[Any]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for k, v in members(module):
                if v is None or id(v) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(v))
                yield module_prefix + ("." if module_prefix else "") + k, v

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[Any]:
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[Any]:
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Any]:
        for _, m in self.named_children():
            yield m

    def named_children(self) -> Iterator[Any]:
        seen: set[int] = set()
        for name, m in self._modules.items():
            if m is not None and id(m) not in seen:
                seen.add(id(m))
                yield name, m

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        for _, m in self.named_modules(remove_duplicate=remove_duplicate):
            yield m

    def named_modules(self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[Any]:
        memo = set() if memo is None else memo
        if id(self) not in memo:
            if remove_duplicate:
                memo.add(id(self))
            yield prefix, self
            for name, m in self._modules.items():
                if m is not None:
                    yield from m.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    # --- modes and types ------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for m in self.children():
            m.train(mode)
        return self

    def eval(self) -> Module:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.parameters():
            if p._grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    g = p.grad
                    if g._edge is not None:
                        g.detach_()
                    else:
                        g.requires_grad_(False)
                    g.zero_()

    def apply(self, fn: Any) -> Module:
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> Module:
        if recurse:
            for m in self.children():
                m._apply(fn)
        for p in self._parameters.values():
            if p is None:
                continue
            before, modes.grad = modes.grad, False
            try:
                p.data = fn(p.data if p._edge is None else p)
                if p._grad is not None:
                    g = fn(p._grad)
                    p._grad = g.requires_grad_(p._grad._rg)
            finally:
                modes.grad = before
        for name, b in self._buffers.items():
            if b is not None:
                self._buffers[name] = fn(b)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        d = kwargs.get("dtype")
        for a in args:
            if isinstance(a, dtypes.dtype):
                d = a
            elif isinstance(a, Tensor):
                d = a.dtype
            elif isinstance(a, (str, dtypes.device)):
                kwargs.setdefault("device", a)
        from ..ops.factories import on_cpu
        from ..ops.shape import usual_order

        on_cpu(kwargs.get("device"))
        usual_order(kwargs.get("memory_format"))
        if d is None:
            return self
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={d}")
        return self._apply(lambda t: t.to(d) if t.dtype.is_floating_point else t)

    def float(self) -> Module:
        return self._apply(lambda t: t.float() if t.dtype.is_floating_point else t)

    def double(self) -> Module:
        return self._apply(lambda t: t.double() if t.dtype.is_floating_point else t)

    def half(self) -> Module:
        return self._apply(lambda t: t.half() if t.dtype.is_floating_point else t)

    def bfloat16(self) -> Module:
        return self._apply(lambda t: t.bfloat16() if t.dtype.is_floating_point else t)

    def type(self, dst_type: Any) -> Module:
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Module:
        return self

    def cuda(self, device: Any = None) -> Module:
        raise AssertionError("Torch not compiled with CUDA enabled")

    def share_memory(self) -> Module:
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        not_covered("Module.compile")

    # --- state ----------------------------------------------------------------------------------------------------

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, m in self._modules.items():
            if m is not None:
                m.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, {})
            if changed is not None:
                destination = changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, p in self._parameters.items():
            if p is not None:
                destination[prefix + name] = p if keep_vars else p.detach()
        for name, b in self._buffers.items():
            if b is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = b if keep_vars else b.detach()

    def register_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
        assign: bool = False,
    ) -> None:
        persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        for name, p in itertools.chain(self._parameters.items(), persistent.items()):
            if p is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            given = state_dict[key]
            if not isinstance(given, Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                    "checkpoint but "
                    f"received {type(given)}"
                )
                continue
            if given._a.shape != p._a.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the "
                    "shape in current "
                    f"model is {p.shape}."
                )
                continue
            before, modes.grad = modes.grad, False
            try:
                if assign:
                    if isinstance(p, Parameter):
                        if not isinstance(given, Parameter):
                            given = Parameter(given, requires_grad=p._rg)
                        else:
                            given.requires_grad_(p._rg)
                    setattr(self, name, given)
                else:
                    p.copy_(given)
            finally:
                modes.grad = before
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + "_extra_state":
                    first = key[len(prefix) :].split(".", 1)
                    if len(first) > 1:
                        if first[0] not in self._modules:
                            unexpected_keys.append(key)
                    elif first[0] not in self._parameters and first[0] not in persistent:
                        unexpected_keys.append(key)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module: Module, prefix: str) -> None:
            for hook in module._load_state_dict_pre_hooks.values():
                hook(module, state_dict, prefix, {}, strict, missing, unexpected, errors)
            module._load_from_state_dict(state_dict, prefix, {}, True, missing, unexpected, errors, assign)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, prefix + name + ".")
            for hook in module._load_state_dict_post_hooks.values():
                hook(module, IncompatibleKeys(missing, unexpected))

        load(self, "")
        if strict:
            if unexpected:
                errors.insert(
                    0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in unexpected))
                )
            if missing:
                errors.insert(0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in missing)))
        if errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
            )
        return IncompatibleKeys(missing, unexpected)

    # --- printing -------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): " + _indented(repr(m), 2) for name, m in self._modules.items()]
        lines = extra_lines + child_lines
        main = self._get_name() + "("
        if lines:
            if len(extra_lines) == 1 and not child_lines:
                main += extra_lines[0]
            else:
                main += "\n  " + "\n  ".join(lines) + "\n"
        return main + ")"


def _typename(o: Any) -> str:
    if isinstance(o, Tensor):
        return str(o.type()) if type(o) is Tensor else f"torch.nn.parameter.{type(o).__name__}"
    cls = type(o)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


class BackwardHookFunction(Function):
    """Identity whose node is where module backward hooks sit."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[a for a in args if not a._rg])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        return args


class _BackwardHooks:
    """Calls a module's full backward hooks with the gradients of its inputs and outputs."""

    def __init__(self, module: Module):
        self.module = module
        self.pre = list(module._backward_pre_hooks.values())
        self.hooks = list(module._backward_hooks.values())
        self.inputs = 0
        self.places: list[int] = []
        self.grad_outputs: Any = None
        self.has_input = False

    def _through(self, args: tuple[Any, ...]) -> tuple[Any, Any, list[int]]:
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not places or not modes.grad or not any(args[i]._rg for i in places):
            return args, None, places
        new = BackwardHookFunction.apply(*[args[i] for i in places])
        node = next((t.grad_fn for t in new if t._edge is not None), None)
        out = list(args)
        for i, t in zip(places, new, strict=True):
            out[i] = t
        return tuple(out), node, places

    def on_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        new, node, places = self._through(args)
        self.inputs, self.places = len(args), places
        if node is not None:
            self.has_input = True
            node.register_hook(lambda grad_input, _: self._inputs_ready(grad_input))
        return new

    def _spread(self, values: Any, places: list[int], n: int) -> tuple[Any, ...]:
        full: list[Any] = [None] * n
        for i, v in zip(places, values, strict=False):
            full[i] = v
        return tuple(full)

    def _inputs_ready(self, grad_input: Any) -> Any:
        grads = self._spread(grad_input, self.places, self.inputs)
        for hook in self.hooks:
            out = hook(self.module, grads, self.grad_outputs)
            if out is None:
                continue
            out = out if isinstance(out, tuple) else (out,)
            if len(out) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(out)}, but expected {len(grads)}"
                )
            grads = out
        self.grad_outputs = None
        return tuple(grads[i] for i in self.places)

    def on_outputs(self, result: Any) -> Any:
        single = not isinstance(result, tuple)
        args = (result,) if single else result
        new, node, places = self._through(args)
        if node is not None:

            def hook(_: Any, grad_output: Any) -> Any:
                grads = self._spread(grad_output, places, len(args))
                for pre in self.pre:
                    changed = pre(self.module, grads)
                    if changed is not None:
                        grads = changed if isinstance(changed, tuple) else (changed,)
                self.grad_outputs = grads
                if not self.has_input:
                    warn(
                        "Full backward hook is firing when gradients are computed with respect to module outputs "
                        "since no inputs "
                        "require gradients. See "
                        "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                        "register_full_backward_hook for more details."
                    )
                    for h in self.hooks:
                        out = h(self.module, self._spread([], [], self.inputs), grads)
                        if out is not None and not (isinstance(out, tuple) and all(o is None for o in out)):
                            raise RuntimeError(
                                "Backward hook for Modules where no input requires gradient should always return "
                                "None or None for "
                                "all gradients."
                            )
                return tuple(grads[i] for i in places) if self.pre else None

            node.register_hook(hook)
        return new[0] if single else new
