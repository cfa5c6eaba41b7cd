"""One recorded run: compiles nothing and executes nothing, but watches while the program does.

Torch is probed at the moment the program imports it, not before: settings that the program makes first
(environment variables, warning filters) keep their effect.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from whygrad.engines.book import Book, Sink
from whygrad.engines.pytorch.probe import ProbeError, Probes
from whygrad.engines.pytorch.recorder import Recorder
from whygrad.engines.pytorch.taps import Taps, message, raising_site
from whygrad.execute.sites import SiteTable
from whygrad.ledger.events import Ended, Environment, Noted, Raised, Seeded, Warned

IMPORT_FRAMES = "<frozen importlib._bootstrap_external>"
"""Python leaves frames of this file out of the tracebacks of failed imports."""


class Session:
    """Records one program on PyTorch.

    `taps` go into the instrumented code. `start` before the program runs, `finish` when it is over.
    """

    def __init__(self, sink: Sink, table: SiteTable, depth: str = "auto") -> None:
        self.table = table
        self.book = Book(sink, table)
        self.taps = Taps(self.book, table)
        self.depth = depth
        self.probes = Probes()
        self.recorder: Recorder | None = None
        self._finder: _Finder | None = None
        self._hooks: list[Any] = []
        self._environment: dict[str, Any] = {}

    def start(self) -> None:
        self._watch_warnings()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        if "torch" in sys.modules:
            self._torch_imported(sys.modules["torch"])
        else:
            self._finder = _Finder(self._torch_imported)
            sys.meta_path.insert(0, self._finder)

    def finish(self, how: str, exit_code: int, error: BaseException | None = None) -> None:
        """Write what is still open, take the probes away, end the ledger."""
        recorder = self.recorder
        if recorder is not None:
            recorder.tell("the end of the run", recorder.finish)
            self._write_environment(recorder.torch)
        if error is not None and how in ("exception", "interrupted"):
            site = raising_site(error, self.table)
            self.book.write(Raised, site, kind=type(error).__name__, text=message(error))
        self.detach()
        self.book.write(Ended, how=how, exit_code=exit_code)
        self.book.close()

    def detach(self) -> None:
        """Leave torch and the interpreter as they were found."""
        self.taps.recorder = None
        self.probes.restore()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if self._finder is not None and self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def _forked(self) -> None:
        """A child made by `fork` goes on without us."""
        self.book.close()
        self.taps.recorder = None

    # --- torch ------------------------------------------------------------------------------------

    def _torch_imported(self, torch: Any) -> None:
        try:
            self._write_environment(torch)
            recorder = Recorder(torch, self.book, self.table, self.depth)
            self.recorder = recorder
            _Wiring(torch, recorder, self.probes, self._hooks, self._uncompilable).install()
            self.taps.recorder = recorder
        except Exception as error:
            self.book.lost("everything about torch", error)

    def _write_environment(self, torch: Any) -> None:
        numpy = sys.modules.get("numpy")
        found = {
            "engine": "pytorch",
            "version": str(torch.__version__),
            "numpy": str(getattr(numpy, "__version__", "")),
            "threads": int(torch.get_num_threads()),
            "deterministic": bool(torch.are_deterministic_algorithms_enabled()),
            "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
            "device": "cuda" if torch.cuda.is_initialized() else "cpu",
        }
        if found != self._environment:
            self._environment = found
            self.book.write(Environment, **found)

    def _uncompilable(self) -> None:
        """`torch.compile` reads bytecode: give it the program's own, without taps and probes."""
        import gc
        from types import FunctionType

        plain = self.table.plain
        for function in gc.get_objects():
            if type(function) is FunctionType:
                original = plain.get(function.__code__)
                if original is not None:
                    function.__code__ = original

    # --- warnings ---------------------------------------------------------------------------------

    def _watch_warnings(self) -> None:
        def shown(shown: Any) -> None:
            try:
                site = self.table.statement(shown.filename, shown.lineno) if shown.filename in self.table.files else None
                text = str(shown.message).split(" (Triggered internally")[0]
                self.book.write(Warned, site, kind=shown.category.__name__, text=text)
            except Exception as error:
                self.book.lost("a warning", error)

        try:
            self.probes.add(
                warnings._showwarnmsg,  # type: ignore[attr-defined]
                before=shown,
                after=_same,
                failed=_nothing,
            )
        except (ProbeError, AttributeError) as error:
            self.book.lost("warnings", error)


def _same(result: Any) -> Any:
    return result


def _nothing() -> None: ...


def _ignore(*_: Any) -> None: ...


class _Wiring:
    """Which of torch's functions tell what."""

    def __init__(
        self, torch: Any, recorder: Recorder, probes: Probes, hooks: list[Any], uncompilable: Callable[[], None]
    ) -> None:
        self.torch = torch
        self.recorder = recorder
        self.probes = probes
        self.hooks = hooks
        self.uncompilable = uncompilable
        self.book = recorder.book

    def install(self) -> None:
        torch, recorder, tell = self.torch, self.recorder, self.recorder.tell
        module = torch.nn.Module
        self._add(module._wrapped_call_impl, *self._module_calls())
        self._add(
            module.train,
            lambda owner, mode: tell("a mode", recorder.mode_enter, owner, "train" if mode else "eval"),
            lambda result: tell("a mode", recorder.mode_leave),
            lambda: tell("a mode", recorder.mode_fail),
        )
        self._add(torch.autograd.graph._engine_run_backward, *self._backwards())
        optimizer = torch.optim.Optimizer
        built = recorder.optimizer_built
        self._around(optimizer.__init__, "an optimizer", built, lambda owner: tell("an optimizer", built, owner))
        self._around(optimizer.add_param_group, "an optimizer", self._group_added)
        self._around(optimizer.zero_grad, "a reset", recorder.zeroed, recorder.zeroed_lightly)
        self._around(module.zero_grad, "a reset", recorder.zeroed, recorder.zeroed_lightly)
        for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_"):
            function = getattr(torch.nn.utils, name, None)
            if function is not None:
                self._around(function, "a change of gradients", lambda _, by=name: recorder.changed_grads(by))
        self._around(torch.amp.GradScaler.unscale_, "a change of gradients", lambda _: recorder.changed_grads("unscale_"))
        self._around(torch.random.manual_seed, "a seed", self._seeded, self._seeded)
        self._grad_modes()
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
                fold.step()

        def after(owner: Any, *_: Any) -> None:
            if depth.full or fold.flush_due():
                tell("a step", recorder.step_leave, owner)
            else:
                recorder.book.step += 1

        return before, after

    def _module_calls(self) -> tuple[Any, Any, Any]:
        """A light recording looks at the outermost call only, and only for something new."""
        recorder, tell, depth = self.recorder, self.recorder.tell, self.recorder.depth
        stack = recorder.modules.stack

        def enter(owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if depth.full:
                tell("a module call", recorder.module_enter, owner, args, kwargs)
                return
            running = stack()
            if running or not recorder.root_call(owner, args):
                running.append(None)
            else:
                tell("a module call", recorder.modules.enter, owner, args, kwargs, recorder.user_site())

        def leave(result: Any) -> None:
            running = stack()
            if running and running[-1] is None:
                running.pop()
            else:
                tell("a module call", recorder.module_leave, result)

        return enter, leave, lambda: tell("a module call", recorder.module_fail)

    def _backwards(self) -> tuple[Any, Any, Any]:
        """A light recording counts a pass and reads its loss, if that is a plain number on the CPU."""
        recorder, tell, depth = self.recorder, self.recorder.tell, self.recorder.depth
        stack, scalar, functions = recorder.backwards.stack, recorder.reader.scalar, self.torch._C._len_torch_function_stack

        def enter(roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if depth.full or functions():
                tell("a backward", recorder.backward_enter, roots, args, kwargs)
                return
            site = recorder.user_site()
            loss = scalar(roots[0]) if len(roots) == 1 else None
            if recorder.look_at_backward(site, loss):
                tell("a backward", recorder.backward_begin, site, roots, args, kwargs)
            else:
                stack().append(None)
                if kwargs.get("accumulate_grad"):
                    recorder.fold.backward(site, loss)

        def leave(result: Any) -> None:
            running = stack()
            if running and running[-1] is None:
                running.pop()
            else:
                tell("a backward", recorder.backward_leave, result)

        return enter, leave, lambda: tell("a backward", recorder.backward_fail)

    def _add(self, function: Any, before: Any, after: Any, failed: Any) -> None:
        def passed_on(result: Any) -> Any:
            after(result)
            return result

        try:
            self.probes.add(function, before=before, after=passed_on, failed=failed)
        except ProbeError as error:
            self.book.lost(f"calls of {getattr(function, '__qualname__', function)}", error)

    def _around(self, function: Any, what: str, told: Callable[[Any], None], light: Callable[[Any], None] = _ignore) -> None:
        """Tell when a call that got `owner` first is over; `light` is what a light recording does instead."""
        running: list[Any] = []
        tell, depth = self.recorder.tell, self.recorder.depth

        def leave(result: Any) -> None:  # noqa: ARG001
            owner = running.pop() if running else None
            if depth.full:
                tell(what, told, owner)
            else:
                light(owner)

        def failed() -> None:
            if running:
                running.pop()

        self._add(function, lambda owner, *_: running.append(owner), leave, failed)

    def _grad_modes(self) -> None:
        torch, tell, recorder = self.torch, self.recorder.tell, self.recorder

        def watch(kind: Any, name: str, entered: bool, by: str) -> None:
            def leave(result: Any) -> None:  # noqa: ARG001
                if recorder.depth.full:
                    tell("a grad mode", recorder.grad_mode, by, entered, sys._getframe(2).f_back)

            self._add(getattr(kind, name), _ignore, leave, _nothing)

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
        text = "torch.compile is used: from here on compiled code is recorded at its boundary, not inside"
        recorder.tell("torch.compile", lambda: self.book.write(Noted, recorder.user_site(), text=text))
        self.probes.restore(keep=(self.torch.autograd.graph._engine_run_backward,))
        self.uncompilable()


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find torch, and calls back when it has been imported."""

    def __init__(self, imported: Callable[[Any], None]) -> None:
        self._imported = imported

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                loader = spec.loader
                loader.exec_module = _calling_back(loader, self._imported, self)  # type: ignore[method-assign]
                return spec
        return None


def _calling_back(loader: Any, imported: Callable[[Any], None], finder: _Finder) -> Callable[[ModuleType], None]:
    plain = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        plain(module)
        imported(module)

    exec_module.__code__ = exec_module.__code__.replace(co_filename=IMPORT_FRAMES)
    return exec_module
