"""Which of torch's own functions are probed, and what each probe tells the recorder."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

from whygrad.engines.pytorch.probe import ProbeError, Probes
from whygrad.engines.pytorch.recorder import Recorder
from whygrad.engines.pytorch.surroundings import Surroundings
from whygrad.execute.heap import uncollected
from whygrad.ledger.events import Noted, Seeded


def _same(result: Any) -> Any:
    return result


def _nothing() -> None: ...


def _ignore(*_: Any) -> None: ...


class _Calls(threading.local):
    """The first arguments of the calls that run on one thread."""

    def __init__(self) -> None:
        self.owners: list[Any] = []


class Wiring:
    """Which of torch's functions tell what."""

    def __init__(
        self,
        torch: Any,
        recorder: Recorder,
        probes: Probes,
        hooks: list[Any],
        uncompilable: Callable[[], None],
        late: bool = False,
    ) -> None:
        self.torch = torch
        self.recorder = recorder
        self.probes = probes
        self.hooks = hooks
        self.uncompilable = uncompilable
        self.late = late
        self._shields = sys.modules["torch._compile"].__file__
        self._shielded: list[Any] = []
        """Functions that `torch.compile` never reads."""
        self.book = recorder.book

    def install(self) -> None:
        with uncollected():
            self._install()

    def _install(self) -> None:
        torch, recorder, tell = self.torch, self.recorder, self.recorder.tell
        module = torch.nn.Module
        self._add(module._wrapped_call_impl, *self._module_calls())
        self._add(
            module.train,
            lambda owner, mode: tell("a mode", recorder.mode_enter, owner, "train" if mode else "eval"),
            lambda owner: (owner, tell("a mode", recorder.mode_leave))[0],
            lambda: tell("a mode", recorder.mode_fail),
        )
        slot = recorder.parameter_set
        self._around(module.register_parameter, "a parameter", slot, lambda owner: tell("a parameter", slot, owner))
        self._add(torch.autograd.graph._engine_run_backward, *self._backwards())
        optimizer = torch.optim.Optimizer
        built = recorder.optimizer_built
        self._around(optimizer.__init__, "an optimizer", built, lambda owner: tell("an optimizer", built, owner))
        added = self._group_added
        self._around(optimizer.add_param_group, "an optimizer", added, lambda owner: tell("an optimizer", added, owner))
        self._add(optimizer.zero_grad, *self._resets())
        self._add(module.zero_grad, *self._resets())
        Surroundings(torch, recorder, self._add, self.late).install()
        self._around(torch.random.manual_seed, "a seed", self._seeded, self._seeded)
        self._grad_modes()
        recorder.on_switch.append(self.probes.rest)
        self._add(torch.compile, lambda *_: self._compiling(), _same, _nothing)
        step = sys.modules[optimizer.__module__]
        before, after = self._steps()
        self.hooks.append(step.register_optimizer_step_pre_hook(before))
        self.hooks.append(step.register_optimizer_step_post_hook(after))

    def _steps(self) -> tuple[Any, Any]:
        recorder, tell, depth, fold = self.recorder, self.recorder.tell, self.recorder.depth, self.recorder.fold

        def before(owner: Any, *_: Any) -> None:
            if depth.full or fold.sample_due():
                tell("a step", recorder.step_enter, owner)
            elif depth.happening(("step", id(owner)), "a step of another optimizer"):
                tell("a step", recorder.optimizers.before_step, owner, recorder.user_site())
            else:
                fold.count_step()

        def after(owner: Any, *_: Any) -> None:
            if depth.full or fold.flush_due():
                tell("a step", recorder.step_leave, owner)
            else:
                recorder.book.step += 1

        return before, after

    def _module_calls(self) -> tuple[Any, Any, Any]:
        """A light recording looks at the outermost call only, and only for something new."""
        recorder, tell, depth = self.recorder, self.recorder.tell, self.recorder.depth
        calls = recorder.modules.running
        begin_span, end_span = recorder.graph.begin_span, recorder.graph.end_span

        def enter(owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            running = calls.stack
            running.append(None)
            if depth.full:
                tell("a module call", recorder.module_enter, owner, args, kwargs)
            elif len(running) == 1:
                if recorder.root_call(owner, args):
                    tell("a module call", recorder.modules.enter, owner, args, kwargs, recorder.user_site())
                else:
                    begin_span(recorder.user_site())

        def leave(result: Any) -> Any:
            call = calls.stack.pop()
            if not depth.full:
                if not calls.stack:
                    end_span()
            elif call is not None:
                tell("a module call", recorder.modules.leave, call, result)
            return result

        def failed() -> None:
            call = calls.stack.pop()
            if call is not None and depth.full:
                tell("a module call", recorder.modules.fail, call)

        return enter, leave, failed

    def _backwards(self) -> tuple[Any, Any, Any]:
        """A light recording counts a pass and reads its loss, if that is a plain number on the CPU."""
        recorder, tell, depth = self.recorder, self.recorder.tell, self.recorder.depth
        backwards, scalar = recorder.backwards, recorder.reader.scalar
        functions = self.torch._C._len_torch_function_stack
        plain, spans = self.torch.Tensor, recorder.graph.spans
        departed, finished, count = recorder.fold.aims.departed, recorder.fold.finished, recorder.fold.backward

        def enter(roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            backwards.skip()
            if depth.full or functions():
                tell("a backward", recorder.backward_enter, roots, args, kwargs)
                return
            loss = scalar(roots[0]) if len(roots) == 1 else None
            thing = recorder.backward_thing(roots)
            if recorder.look_at_backward(thing, loss):
                tell("a backward", recorder.backward_begin, thing, roots, args, kwargs)
            elif kwargs.get("accumulate_grad"):
                root = roots[0]
                if not thing.is_whole or departed or finished or (type(root) is plain and not thing.leads(root)):
                    tell("a backward", recorder.aim, thing, roots)
                count(thing, loss)
                spans.made.clear()

        def leave(result: Any) -> Any:
            entry = backwards.stack().pop()
            if entry is not None:
                tell("a backward", recorder.backward_leave, entry, result)
            return result

        def failed() -> None:
            entry = backwards.stack().pop()
            if entry is not None:
                tell("a backward", recorder.backward_fail, entry)

        return enter, leave, failed

    def _resets(self) -> tuple[Any, Any, Any]:
        """A light recording counts the resets of owners that have something to reset."""
        recorder, tell, depth = self.recorder, self.recorder.tell, self.recorder.depth
        calls = _Calls()

        def enter(owner: Any, *_: Any) -> None:
            calls.owners.append(owner)
            if not depth.full and recorder.holds_buffers(owner):
                recorder.zeroed_lightly(owner)

        def leave(result: Any) -> Any:
            owner = calls.owners.pop()
            if depth.full:
                tell("a reset", recorder.zeroed, owner)
            return result

        def failed() -> None:
            calls.owners.pop()

        return enter, leave, failed

    def _add(self, function: Any, before: Any, after: Any, failed: Any, rests: bool = False) -> None:
        if getattr(function, "__code__", None) is not None and function.__code__.co_filename == self._shields:
            self._shielded.append(inspect.unwrap(function))
        try:
            self.probes.add(function, before=before, after=after, failed=failed, rests=rests)
        except ProbeError as error:
            self.book.lost(f"calls of {getattr(function, '__qualname__', function)}", error)

    def _around(
        self,
        function: Any,
        what: str,
        told: Callable[[Any], None],
        light: Callable[[Any], None] = _ignore,
        calls: _Calls | None = None,
    ) -> None:
        """Tell when a call that got `owner` first is over; `light` is what a light recording does instead.

        Of calls that share `calls` and run inside each other only the outermost is told.
        """
        calls = calls or _Calls()
        tell, depth = self.recorder.tell, self.recorder.depth

        def leave(result: Any) -> Any:
            owner = calls.owners.pop()
            if calls.owners:
                return result
            if depth.full:
                tell(what, told, owner)
            else:
                light(owner)
            return result

        def enter(owner: Any = None, *_: Any) -> None:
            calls.owners.append(owner)

        def failed() -> None:
            calls.owners.pop()

        self._add(function, enter, leave, failed)

    def _grad_modes(self) -> None:
        torch, tell, recorder = self.torch, self.recorder.tell, self.recorder

        def watch(kind: Any, name: str, entered: bool, by: str) -> None:
            def leave(result: Any) -> Any:
                tell("a grad mode", recorder.grad_mode, by, entered, sys._getframe(1).f_back)
                return result

            self._add(getattr(kind, name), _ignore, leave, _nothing, rests=True)

        for kind in (torch.no_grad, torch.enable_grad, torch.inference_mode):
            watch(kind, "__enter__", True, kind.__name__)
            watch(kind, "__exit__", False, kind.__name__)
        watch(torch.set_grad_enabled, "__init__", True, "set_grad_enabled")
        watch(torch.set_grad_enabled, "__exit__", False, "set_grad_enabled")

    def _group_added(self, optimizer: Any) -> None:
        if optimizer is not None and hasattr(optimizer, "_optimizer_step_pre_hooks"):
            self.recorder.optimizers.meet(optimizer, self.recorder.user_site())

    def _seeded(self, seed: Any) -> None:
        self.book.write(Seeded, self.recorder.user_site(), generator="torch", seed=str(seed))

    def _compiling(self) -> None:
        recorder = self.recorder
        if recorder.compiled:
            self.uncompilable()
            return
        recorder.compiled = True
        text = (
            "torch.compile is used: from here on compiled code is recorded at its boundary, not inside, and functions "
            "are seen by their lines, not by their expressions"
        )
        recorder.tell("torch.compile", lambda: self.book.write(Noted, recorder.user_site(), text=text))
        kept = (self.torch.autograd.graph._engine_run_backward, inspect.unwrap(self.torch.compile), *self._shielded)
        self.probes.restore(keep=kept)
        self.uncompilable()
