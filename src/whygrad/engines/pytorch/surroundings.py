"""Probes of what surrounds a training step: schedulers, clipping, loss scaling, autocast, states saved and loaded, and
conversions of a model in place."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from whygrad.engines.pytorch.objects import groups_of, names_of, parameters_of
from whygrad.engines.pytorch.recorder import Recorder
from whygrad.ledger.events import AutocastChanged, Clipped, Converted, LossScaled, SchedulerStepped, StateMoved
from whygrad.ledger.values import number

LIGHT_LIMIT = 200
"""While recording is light so many scheduler steps and states are written, and no more."""

Add = Callable[..., None]
"""`(function, before, after, failed)`: puts a probe into a function of torch's."""


class _Stack(threading.local):
    """What the probed calls of one thread were given, the innermost last."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def drop(self) -> None:
        self.calls.pop()


class Surroundings:
    """Puts the probes in and tells what they see."""

    def __init__(self, torch: Any, recorder: Recorder, add: Add, late: bool) -> None:
        self.torch = torch
        self.recorder = recorder
        self.book = recorder.book
        self._add = add
        self._late = late
        self._light = 0

    def install(self) -> None:
        torch, tell = self.torch, self.recorder.tell
        module, optimizer = torch.nn.Module, torch.optim.Optimizer
        for owner in (module, optimizer):
            stack = _Stack()
            for name in ("state_dict", "load_state_dict"):
                self._after(getattr(owner, name), stack, partial(self._state, name))
        self._after(module._apply, _Stack(), lambda held: tell("a conversion", self._converted, held, _caller(3)))
        clipping = _Stack()
        for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_"):
            function = getattr(torch.nn.utils, name, None)
            if function is not None:
                self._clipping(function, name, clipping)
        schedulers = torch.optim.lr_scheduler
        self._when_built((schedulers.LRScheduler, schedulers.ReduceLROnPlateau), self._watch_schedulers)
        self._when_built((torch.amp.GradScaler,), self._watch_scalers)
        self._autocast(torch.amp.autocast_mode.autocast)

    def _when_built(self, kinds: tuple[Any, ...], watch: Callable[[], None]) -> None:
        """Watch objects of these classes from the first one on: most programs have none, and a probe takes 1 ms.

        Where torch was imported before the recording began, there may be some already.
        """
        if self._late:
            watch()
            return
        waiting = [watch]

        def enter(*_: Any) -> None:
            if waiting and not self.recorder.compiled:
                waiting.pop()()

        for kind in kinds:
            self._add(kind.__init__, enter, _same, _nothing)

    def _watch_schedulers(self) -> None:
        stack = _Stack()
        for kind in list(vars(self.torch.optim.lr_scheduler).values()):
            own = isinstance(kind, type) and not issubclass(kind, self.torch.optim.Optimizer)
            step = vars(kind).get("step") if own else None
            if step is not None:
                self._scheduling(step, stack)

    def _watch_scalers(self) -> None:
        for name in ("scale", "unscale_", "step", "update"):
            self._scaling(getattr(self.torch.amp.GradScaler, name), name)

    def _after(self, function: Any, stack: _Stack, told: Callable[[Any], None]) -> None:
        """`told(first argument)` when a call is over that is not inside another one of the same stack."""

        def enter(owner: Any = None, *_: Any) -> None:
            stack.calls.append(owner)

        def leave(result: Any) -> Any:
            owner = stack.calls.pop()
            if not stack.calls:
                told(owner)
            return result

        self._add(function, enter, leave, stack.drop)

    # --- states and conversions -------------------------------------------------------------------

    def _state(self, call: str, owner: Any) -> None:
        if self._is_due():
            self.recorder.tell("a state", self._state_moved, call, owner)

    def _state_moved(self, call: str, owner: Any) -> None:
        recorder = self.recorder
        site = recorder.user_site()
        if not isinstance(owner, self.torch.nn.Module):
            self.book.write(StateMoved, site, call=call, optimizer=recorder.optimizers.meet(owner, site))
            return
        recorder.modules.meet_all(owner, site)
        self.book.write(StateMoved, site, call=call, module=recorder.modules.meet(owner, site))
        if call == "load_state_dict" and recorder.depth.full:
            for parameter in parameters_of(owner):
                known = recorder.tensors.find(parameter)
                if known is not None:
                    recorder.writes.observe(parameter, known, f"{type(owner).__name__}.load_state_dict", site)

    def _converted(self, owner: Any, method: str) -> None:
        recorder = self.recorder
        site = None
        for parameter in parameters_of(owner):
            known = recorder.tensors.find(parameter)
            if known is None or known.form is None:
                continue
            form = parameter.dtype, parameter.device
            if form != known.form:
                known.form = form
                site = site or recorder.user_site()
                self.book.write(
                    Converted,
                    site,
                    tensor=known.id,
                    by=f"{type(owner).__name__}.{method}",
                    dtype=recorder.reader.dtype(parameter),
                    device=str(parameter.device),
                )

    # --- clipping, schedules ----------------------------------------------------------------------

    def _clipping(self, function: Any, name: str, stack: _Stack) -> None:
        recorder, calls = self.recorder, stack

        def enter(parameters: Any, limit: Any = None, *_: Any) -> None:  # noqa: ARG001
            calls.calls.append(limit)

        def leave(result: Any) -> Any:
            limit = calls.calls.pop()
            if not calls.calls and recorder.depth.full:
                held = sys._getframe(1).f_locals
                recorder.tell("a change of gradients", self._clipped, name, limit, result, held)
            return result

        self._add(function, enter, leave, calls.drop)

    def _clipped(self, name: str, limit: Any, result: Any, held: Any) -> None:
        """`held` are the function's own variables: it made a list of what it was given, which may be a generator."""
        recorder = self.recorder
        given, grads = held.get("parameters"), held.get("grads")
        is_list = type(given) in (list, tuple)
        with_grad = sum(item.grad is not None for item in given) if is_list else len(grads or ())
        norm = recorder.reader.scalar(result) if isinstance(result, self.torch.Tensor) else None
        self.book.write(
            Clipped,
            recorder.user_site(),
            by=name,
            parameters=len(given) if is_list else None,
            with_grad=with_grad,
            limit=number(float(limit)) if type(limit) in (int, float) else None,
            norm=None if norm is None else number(norm),
        )
        recorder.changed_grads(name)

    def _scheduling(self, step: Any, stack: _Stack) -> None:
        recorder, calls = self.recorder, stack

        def enter(owner: Any, *_: Any) -> None:
            looks = not calls.calls and self._is_due()
            calls.calls.append((owner, self._rates(owner)) if looks else None)

        def leave(result: Any) -> Any:
            call = calls.calls.pop()
            if call is not None:
                recorder.tell("a scheduler", self._scheduled, *call, _caller(2) == "_initial_step")
            return result

        self._add(step, enter, leave, calls.drop)

    def _rates(self, scheduler: Any) -> tuple[float, ...]:
        """The learning rates that are plain numbers."""
        optimizer = names_of(scheduler).get("optimizer")
        groups = [] if optimizer is None else groups_of(optimizer)
        return tuple(float(group["lr"]) for group in groups if type(group.get("lr")) in (float, int))

    def _scheduled(self, scheduler: Any, before: tuple[float, ...], built: bool) -> None:
        optimizer = names_of(scheduler).get("optimizer")
        site = self.recorder.user_site()
        self.book.write(
            SchedulerStepped,
            site,
            kind=type(scheduler).__name__,
            optimizer=None if optimizer is None else self.recorder.optimizers.meet(optimizer, site),
            before=before,
            after=self._rates(scheduler),
            built=built,
        )

    def _is_due(self) -> bool:
        if self.recorder.depth.full:
            return True
        self._light += 1
        return self._light <= LIGHT_LIMIT

    # --- loss scaling, autocast -------------------------------------------------------------------

    def _scaling(self, function: Any, name: str) -> None:
        recorder, calls = self.recorder, _Stack()

        def enter(scaler: Any, given: Any = None, *_: Any) -> None:
            calls.calls.append((scaler, given))

        def leave(result: Any) -> Any:
            scaler, given = calls.calls.pop()
            if recorder.depth.full:
                recorder.tell("a scaled loss", self._scaled, name, scaler, given)
            return result

        self._add(function, enter, leave, calls.drop)

    def _scaled(self, name: str, scaler: Any, given: Any) -> None:
        recorder = self.recorder
        site = recorder.user_site()
        held = names_of(scaler)
        scale = held.get("_scale")
        factor = held.get("_init_scale") if scale is None else recorder.reader.read(scale).scalar
        steps = name in ("step", "unscale_")
        self.book.write(
            LossScaled,
            site,
            call=name,
            factor=factor,
            optimizer=recorder.optimizers.meet(given, site) if steps and given is not None else None,
            enabled=bool(held.get("_enabled", True)),
        )
        if name == "unscale_":
            recorder.changed_grads("unscale_")

    def _autocast(self, kind: Any) -> None:
        recorder = self.recorder

        def watch(method: str, entered: bool) -> None:
            stack = _Stack()

            def enter(region: Any, *_: Any) -> None:
                stack.calls.append(region)

            def leave(result: Any) -> Any:
                region = stack.calls.pop()
                if recorder.depth.full:
                    recorder.tell("autocast", self._cast, region, entered)
                return result

            self._add(getattr(kind, method), enter, leave, stack.drop, rests=True)

        watch("__enter__", True)
        watch("__exit__", False)

    def _cast(self, region: Any, entered: bool) -> None:
        site = self.recorder.user_site()
        if site is None:
            return
        held = names_of(region)
        device = str(held.get("device"))
        self.book.write(
            AutocastChanged,
            site,
            entered=entered,
            device=device,
            dtype=str(held.get("fast_dtype")).removeprefix("torch."),
            enabled=bool(self.torch.is_autocast_enabled(device)),
        )


def _same(result: Any) -> Any:
    return result


def _nothing() -> None: ...


def _caller(above: int) -> str:
    """The name of the function that called the probed one."""
    frame = sys._getframe(above).f_back
    return "" if frame is None else frame.f_code.co_name
