"""The recorder of a PyTorch program: what the probes of torch's own functions tell; `usercode` has the taps.

The probes here decide quickly whether there is anything to tell; the telling is done by the modules beside this one.
"""

from __future__ import annotations

import sys
from typing import Any

from whygrad.engines.pytorch.aims import BackwardThing
from whygrad.engines.pytorch.backward import Call, Pass
from whygrad.engines.pytorch.objects import groups_of, inside, names_of, parameters_of
from whygrad.engines.pytorch.usercode import UserCode
from whygrad.ledger.events import GradModeChanged


class Recorder(UserCode):
    """Records one program."""

    def module_enter(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(self.modules.running.stack) == 1:
            self.root_call(module, args)
        if self.depth.full:
            self.modules.enter(module, args, kwargs, self.user_site())

    def root_call(self, module: Any, args: tuple[Any, ...]) -> bool:
        """The user's code calls a module; returns whether to look at it fully."""
        first: Any = args[0] if args else None
        shape = (first.shape, first.dtype) if type(first) is self._tensor else None
        held = names_of(module)
        who = id(module) if held.get("_parameters") or held.get("_modules") else type(module)
        self._busy.called |= self._bits.get(who) or self._bits.setdefault(who, 1 << len(self._bits))
        thing = (who, module.training, shape, self._grad_enabled())
        return self.depth.happening(thing, "a module call with a shape or in a mode not seen before")

    def mode_enter(self, module: Any, call: str) -> None:
        before = {id(inner): inner.training for _, inner in inside(module)}
        self._modes().append((module, call, before))

    def mode_leave(self) -> None:
        modes = self._modes()
        if not modes:
            return
        module, call, before = modes.pop()
        if not modes and self.depth.happening((id(module), call), f"{call}() of {type(module).__name__}"):
            self.modules.mode_changed(module, call, before, self.user_site())

    def mode_fail(self) -> None:
        if self._modes():
            self._modes().pop()

    def _modes(self) -> list[tuple[Any, str, dict[int, bool]]]:
        return self._busy.modes

    def parameter_set(self, module: Any) -> None:
        if module is not None:
            self.modules.parameter_set(module, self.user_site())

    def backward_enter(self, roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loss = self.reader.scalar(roots[0]) if len(roots) == 1 else None
        thing = self.backward_thing(roots)
        if self.look_at_backward(thing, loss):
            self.backward_begin(thing, roots, args, kwargs)
        elif kwargs.get("accumulate_grad"):
            self.aim(thing, roots)
            self.fold.backward(thing, loss)
            self.graph.spans.made.clear()

    def backward_thing(self, roots: Any) -> BackwardThing:
        """What tells this pass from others: its line and the line that called the function that it is in, the modules
        called since the last one, what made the root."""
        site, outer = self._sites()
        busy = self._busy
        key = (site, outer, busy.called, type(getattr(roots[0], "grad_fn", None)))
        busy.called = 0
        thing = self._things.get(key)
        if thing is None:
            thing = self._things[key] = BackwardThing(site)
        return thing

    def aim(self, thing: BackwardThing, roots: Any) -> None:
        """Find the leaves of a pass that is only counted, where they are not known or others than before."""
        fold = self.fold
        if fold.aims.departed or fold.finished:
            fold.aims.miss(self._things.values())
        root = roots[0] if isinstance(roots[0], self._tensor) else None
        if not thing.is_whole or fold.finished or (root is not None and not thing.leads(root)):
            nodes = [root.grad_fn for root in roots if isinstance(root, self._tensor) and root.grad_fn is not None]
            fold.aim(thing, self.graph.reach(nodes), root)

    def backward_begin(self, thing: BackwardThing, roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        gradients, keep, create, inputs = args[0], bool(args[1]), bool(args[2]), args[3]
        accumulate = bool(kwargs.get("accumulate_grad"))
        call = Call(tuple(roots), tuple(gradients), keep, create, tuple(inputs or ()), accumulate)
        entry = self.backwards.begin(thing.site, call)
        if entry is not None and self.reader.is_bad(roots):
            self.not_finite.look(entry)
        if accumulate and entry is not None:
            targets = entry.arrivals.targets.values()
            root = roots[0] if isinstance(roots[0], self._tensor) else None
            self.fold.aims.set(thing, [target.tensor for target in targets if target.tensor.is_leaf], root)

    def look_at_backward(self, thing: BackwardThing, loss: float | None) -> bool:
        full = self.depth.happening(thing, "a backward from a line, or of modules, not seen before")
        if not full and loss is not None and loss - loss != 0:  # nan or inf
            return self.depth.happening(("not finite", thing), "the loss is not finite")
        return full

    def backward_leave(self, entry: Pass, result: Any) -> None:
        self.backwards.end(entry, result)

    def backward_fail(self, entry: Pass) -> None:
        self.backwards.fail(entry, sys.exc_info()[1])

    def optimizer_built(self, optimizer: Any) -> None:
        self.fold.begins(optimizer)
        self.optimizers.meet(optimizer, self.user_site())

    def zeroed(self, owner: Any) -> None:
        """`zero_grad` of an optimizer or a module is over."""
        held = parameters_of(owner) if isinstance(owner, self._module) else self.optimizers.parameters(owner)
        self.grads.observe_these(held, f"{type(owner).__name__}.zero_grad", self.user_site())

    def holds_buffers(self, owner: Any) -> bool:
        """Whether any parameter of an optimizer or a module has a buffer."""
        if isinstance(owner, self._module):
            return any(parameter.grad is not None for parameter in parameters_of(owner))
        for group in groups_of(owner):
            for parameter in group["params"]:
                if parameter.grad is not None:
                    return True
        return False

    def zeroed_lightly(self, owner: Any) -> None:
        self.fold.reset(owner, parameters_of if isinstance(owner, self._module) else self.optimizers.parameters)

    def step_enter(self, optimizer: Any) -> None:
        full = self.depth.happening(("step", id(optimizer)), f"a step of {type(optimizer).__name__}")
        if full:
            self.optimizers.before_step(optimizer, self.user_site())
        else:
            self.fold.step()

    def step_leave(self, optimizer: Any) -> None:
        if self.depth.full:
            self.optimizers.after_step(optimizer, self.user_site())
        self.book.step += 1
        self.fold.stepped()
        self.depth.step_over()

    def changed_grads(self, by: str) -> None:
        """Something that changes buffers (clipping, unscaling) is over."""
        if self.depth.full:
            self.grads.observe_all(by, self.user_site(), closely=by == "unscale_")

    def grad_mode(self, by: str, entered: bool, frame: Any) -> None:
        """The user's own code switched the grad mode."""
        if not self.depth.full:
            return
        if frame.f_code.co_filename not in self.table.files:
            if frame.f_code.co_name != "decorate_context":
                return
            function = frame.f_locals.get("func")
            code = getattr(function, "__code__", None)
            if code is None or code.co_filename not in self.table.files:
                return
        self.book.write(GradModeChanged, self.user_site(), by=by, entered=entered, mode=self.modules.grad_mode())

    def finish(self) -> None:
        self.fold.flush()
        if self.depth.full:
            self.grads.observe_all("unseen", None)
