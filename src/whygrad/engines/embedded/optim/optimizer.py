"""`torch.optim.Optimizer`: parameter groups, state, and what all optimizers share."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from ..graph import RemovableHandle
from ..modes import modes
from ..tensor import Tensor
from ..warn import warn


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class GlobalHooks:
    """Hooks on every optimizer's step."""

    before: OrderedDict[int, Any] = OrderedDict()
    after: OrderedDict[int, Any] = OrderedDict()


def _with_hooks(step: Any) -> Any:
    """`step` as users call it: hooks around it, no graph inside, the closure with a graph."""

    @functools.wraps(step)
    def wrapper(self: Any, closure: Any = None, *args: Any, **kwargs: Any) -> Any:
        for hook in [*GlobalHooks.before.values(), *self._optimizer_step_pre_hooks.values()]:
            changed = hook(self, (closure, *args) if closure is not None else args, kwargs)
            if changed is not None:
                args, kwargs = changed
        before, modes.grad = modes.grad, False
        try:
            out = step(self, closure, *args, **kwargs)
        finally:
            modes.grad = before
        for hook in [*self._optimizer_step_post_hooks.values(), *GlobalHooks.after.values()]:
            hook(self, args, kwargs)
        return out

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper


class Optimizer:
    """Holds parameters in groups and updates them from their gradients."""

    __module__ = "torch.optim.optimizer"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not hasattr(step, "hooked"):
            cls.step = _with_hooks(step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._optimizer_step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Any] = OrderedDict()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors "
                "in sets will "
                "change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        named = bool(param_group["params"]) and all(isinstance(p, tuple) for p in param_group["params"])
        if named:
            param_group["param_names"] = [n for n, _ in param_group["params"]]
            param_group["params"] = [p for _, p in param_group["params"]]
        for p in param_group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + _name_of(p))
            if not self.defaults.get("differentiable", None) and not (p._edge is None or p._retained):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len({id(p) for p in params}):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an "
                "error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information"
            )
        seen = {id(p) for g in self.param_groups for p in g["params"]}
        if seen & {id(p) for p in params}:
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters."""
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    if set_to_none:
                        p.grad = None
                    else:
                        if p._grad._edge is not None:
                            p._grad.detach_()
                        else:
                            p._grad.requires_grad_(False)
                        p._grad.zero_()

    def step(self, closure: Any = None) -> Any:
        raise NotImplementedError

    def _closure(self, closure: Any) -> Any:
        if closure is None:
            return None
        before, modes.grad = modes.grad, True
        try:
            return closure()
        finally:
            modes.grad = before

    def state_dict(self) -> dict[str, Any]:
        mapping: dict[int, int] = {}
        start = 0

        def packed(group: dict[str, Any]) -> dict[str, Any]:
            nonlocal start
            out = {k: v for k, v in group.items() if k != "params"}
            mapping.update({id(p): i for i, p in enumerate(group["params"], start) if id(p) not in mapping})
            out["params"] = [mapping[id(p)] for p in group["params"]]
            start += len(out["params"])
            return out

        groups = [packed(g) for g in self.param_groups]
        state = {(mapping[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(self.param_groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        by_number = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved),
                chain.from_iterable(g["params"] for g in self.param_groups),
                strict=True,
            )
        )

        def cast(p: Tensor, value: Any, key: Any = None) -> Any:
            if isinstance(value, Tensor):
                return (
                    value.clone()
                    if key == "step"
                    else value.to(dtype=p.dtype).clone()
                    if p.is_floating_point()
                    else value.clone()
                )
            if isinstance(value, dict):
                return {k: cast(p, v, k) for k, v in value.items()}
            if isinstance(value, Iterable) and not isinstance(value, str):
                return type(value)(cast(p, v) for v in value)  # type: ignore[call-arg]
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for k, v in state_dict["state"].items():
            state[by_number.get(k, k)] = cast(by_number[k], v) if k in by_number else v
        for group, new in zip(self.param_groups, saved, strict=True):
            params = group["params"]
            group.clear()
            group.update(new)
            group["params"] = params
        self.state = state

    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        return RemovableHandle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        return RemovableHandle(self._optimizer_step_post_hooks, hook)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
            "_optimizer_step_pre_hooks": OrderedDict(),
            "_optimizer_step_post_hooks": OrderedDict(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"


def _name_of(o: Any) -> str:
    cls = type(o)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
