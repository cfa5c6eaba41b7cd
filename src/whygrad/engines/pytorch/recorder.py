"""The recorder of a PyTorch program: the taps of the user's code and the probes of torch, and what each tells.

The taps and probes here decide quickly whether there is anything to tell; the telling is done by the modules
beside this one. Whatever fails in the telling becomes a `recording lost` event; the program never sees it.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from whygrad.engines.book import Book
from whygrad.engines.pytorch.backward import Backwards, Call, Pass
from whygrad.engines.pytorch.depth import BackwardThing, Depth, Fold
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.graph import Graph
from whygrad.engines.pytorch.modules import Call as ModuleCall
from whygrad.engines.pytorch.modules import Modules
from whygrad.engines.pytorch.objects import groups_of, inside, parameters_of
from whygrad.engines.pytorch.operations import Operations
from whygrad.engines.pytorch.optimizers import Optimizers
from whygrad.engines.pytorch.taps import SEEDING, TAKES_OUT, write_seed
from whygrad.engines.pytorch.tensors import ELEMENT_LIMIT, Tensors
from whygrad.engines.pytorch.values import Reader
from whygrad.engines.pytorch.writes import Writes
from whygrad.execute.sites import Place, SiteTable
from whygrad.ledger.events import GradModeChanged, Noted

T = TypeVar("T")


class _Busy(threading.local):
    """Whether this thread is telling something; the mode changes that are running on it; the modules that it called
    since its last backward."""

    def __init__(self) -> None:
        self.on = False
        self.modes: list[tuple[Any, str, dict[int, bool]]] = []
        self.called: set[object] = set()


class Recorder:
    """Everything that watches one program, once torch is imported."""

    def __init__(self, torch: Any, book: Book, table: SiteTable, policy: str) -> None:
        self.torch = torch
        self.book = book
        self.table = table
        self.reader = Reader(torch)
        self.tensors = Tensors(torch, book, self.reader)
        self.graph = Graph(torch, book, self.tensors)
        self.grads = Grads(book, self.reader, self.tensors)
        self.writes = Writes(book, self.reader, self.tensors, self.grads)
        self.backwards = Backwards(torch, book, self.reader, self.tensors, self.graph, self.grads, self.writes)
        self.modules = Modules(torch, book, self.reader, self.tensors, self.graph, self.writes)
        self.operations = Operations(
            torch,
            book,
            self.reader,
            self.tensors,
            self.graph,
            self.grads,
            self.writes,
            table,
            self.outer_site,
            policy == "auto",
        )
        self.optimizers = Optimizers(torch, book, self.reader, self.tensors, self.grads, self.writes)
        self.fold = Fold(book, self.tensors, self.grads)
        self.depth = Depth(policy, book, self.fold, self.switched)
        self.compiled = False
        self.on_switch: list[Callable[[bool], None]] = []
        self._tensor = torch.Tensor
        self._plain = frozenset({torch.Tensor, torch.nn.Parameter})
        self._module = torch.nn.Module
        self._optimizer = torch.optim.Optimizer
        self._unseen = torch._C.DisableTorchFunction
        self._grad_enabled = torch.is_grad_enabled
        self._transform = torch._C._functorch.peek_interpreter_stack
        self._tracing = torch._C._get_tracing_state
        self._busy = _Busy()

    # --- safety -----------------------------------------------------------------------------------

    def tell(self, what: str, action: Callable[..., None], *arguments: Any) -> None:
        """Run `action` so that neither its failure nor its own operations reach the program."""
        busy = self._busy
        if busy.on or not self.book.is_open or self._transform() is not None or self._tracing() is not None:
            return
        busy.on = True
        try:
            with self._unseen():
                action(*arguments)
        except Exception as error:
            self.book.lost(what, error)
        finally:
            busy.on = False

    def user_site(self) -> int | None:
        """What the user's own code is executing."""
        files = self.table.files
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in files:
                return self.table.running(frame)
            frame = frame.f_back
        return None

    def outer_site(self) -> int | None:
        """What the user's code around the innermost function of the user's is executing."""
        files = self.table.files
        frame: FrameType | None = sys._getframe(1)
        inside = False
        while frame is not None:
            if frame.f_code.co_filename in files:
                if inside:
                    return self.table.running(frame)
                inside = True
            frame = frame.f_back
        return None

    def switched(self, full: bool) -> None:
        """Recording went to full or light depth."""
        for told in self.on_switch:
            told(full)
        if full:
            self.operations.operands.forget()
            self.graph.mark_site(None)
            self.graph.mark_module(None)
            self.grads.remember_all()
            for tensor, known in self.tensors.live_leaves():
                known.version = tensor._version
        else:
            self.optimizers.forget_copies()

    # --- the taps of the user's code (slow paths) ---------------------------------------------------

    def on_value(self, site: int, value: Any, names: tuple[Any, ...]) -> None:
        place = self.table.places[site]
        kind = type(value)
        if kind in self._plain or isinstance(value, self._tensor):
            self.operations.result(site, place, value, names)
            self._bind_tensor(site, place, value)
        elif isinstance(value, list | tuple):
            if place.operation in TAKES_OUT:
                self.operations.taken_out(site, place, names)
            else:
                self.operations.result(site, place, value, names)
            self._bind_members(site, place, value)
        elif isinstance(value, self._module):
            self.graph.mark_site(site)
            for target in place.targets:
                self.modules.bind(value, target, place.function)
            if place.operation == "requires_grad_":
                self._check_flags(value, site)
        elif isinstance(value, self._optimizer):
            if place.targets:
                self.optimizers.bind(value, place.targets[0], site)
        elif isinstance(value, dict):
            self.graph.mark_site(site)
            self._bind_members(site, place, value)
        else:
            self.graph.mark_site(site)
            if place.operation in TAKES_OUT:
                self.operations.taken_out(site, place, names)
            elif place.operation in SEEDING:
                write_seed(self.book, place, site, names)

    def _check_flags(self, module: Any, site: int) -> None:
        for parameter in parameters_of(module):
            self.tensors.check_flags(parameter, self.tensors.meet(parameter, site), "requires_grad_", site)

    def on_none(self, site: int, names: tuple[Any, ...]) -> None:
        """An expression that can give a tensor gave None."""
        place = self.table.places[site]
        self.graph.mark_site(site)
        if place.operation == "retain_grad" and place.method:
            for tensor, known in self.operations.operands.gather(place, names, site).tensors:
                self.tensors.retain(tensor, known)
        else:
            self.operations.operands.drop(place)

    def on_bound(self, site: int, value: Any) -> None:
        """A statement gave `value` a name while recording is light."""
        if isinstance(value, self._module):
            place = self.table.places[site]
            for target in place.targets:
                self.modules.bind(value, target, place.function)
        elif isinstance(value, self._optimizer):
            self.tell("a name", self.optimizers.bind, value, self.table.places[site].targets[0], site)
        elif (
            isinstance(value, self._tensor)
            and self._transform() is None
            and value.is_leaf
            and value.requires_grad
            and not self.operations.over(site)
        ):
            self.tell("a name", self._bind_tensor, site, self.table.places[site], value)

    def on_look(self, site: int, value: Any) -> None:
        place = self.table.places[site]
        if isinstance(value, self._tensor):
            self.operations.read(site, value)
            self._bind_tensor(site, place, value)
            if not place.targets and place.code.isidentifier() is False and len(place.code) < 60:
                self.tensors.name(self.tensors.meet(value, site), place.code, place.function, site)
        elif isinstance(value, self._module):
            for target in place.targets:
                self.modules.bind(value, target, place.function)
        elif isinstance(value, list | tuple | dict) and place.targets:
            self._bind_members(site, place, value)

    def on_names(self, site: int, values: tuple[Any, ...]) -> None:
        if self.operations.over(site):
            return
        place = self.table.places[site]
        for name, value in zip(place.targets, values, strict=False):
            if isinstance(value, self._tensor):
                self.tensors.name(self.tensors.meet(value, site, "created"), name, place.function, site)
            elif isinstance(value, self._module):
                self.modules.bind(value, name, place.function)
            elif isinstance(value, self._optimizer):
                self.optimizers.bind(value, name, site)
            elif isinstance(value, list | tuple | dict):
                self._name_members(site, place, value, (name,))

    def before_write(self, owner: Any) -> None:
        """The user's code writes through `owner` while a backward runs (in a hook)."""
        known = self.tensors.find(owner) if isinstance(owner, self._tensor) else None
        if known is not None:
            self.backwards.settle(owner, known)

    def on_wrote(self, site: int, owner: Any) -> None:
        """A write through an attribute or an item of `owner` is done."""
        place = self.table.places[site]
        if not isinstance(owner, self._tensor):
            self._wrote_other(site, place, owner)
        elif place.attribute == "grad":
            self._wrote_grad(site, place, owner)
        elif not self.depth.full:
            return
        elif place.attribute == "data":
            self.operations.hidden_write(site, place, owner)
        elif place.attribute == "requires_grad":
            self.tensors.check_flags(owner, self.tensors.meet(owner, site), "requires_grad = ", site)
        elif place.attribute and place.attribute != "training":
            self.book.write(Noted, site, text=f"`{place.code}` sets an attribute that PyTorch does not know")
        elif place.item:
            self.operations.written_in_place(site, place, owner)

    def _wrote_other(self, site: int, place: Place, owner: Any) -> None:
        if not self.depth.full:
            return
        if isinstance(owner, self._module) and place.attribute == "training":
            self.modules.flag_set(owner, site)
        elif place.item and type(owner).__module__ == "numpy":
            leaf = self.grads.holder(owner.__array_interface__["data"][0])
            if leaf is not None:
                self.grads.observe(leaf.ref(), leaf, "assignment", site, closely=True)

    def _wrote_grad(self, site: int, place: Place, owner: Any) -> None:
        known = self.tensors.meet(owner, site)
        if not self.depth.full:
            if owner.is_leaf and (owner.grad is None or place.operation == "zero_"):
                self.fold.reset(known.id)
            return
        self.tensors.retain(owner, known)
        by = place.operation or "assignment"
        if by == "assignment" and owner.grad is None:
            by = place.written if place.written.startswith("del ") else f"{place.written} = None"
        self.grads.observe(owner, known, by, site, closely=True)

    def on_updated(self, site: int, value: Any, names: tuple[Any, ...]) -> None:
        place = self.table.places[site]
        if not isinstance(value, self._tensor):
            return
        known = self.tensors.find(value)
        if known is not None and known.version != value._version:
            self.operations.written_in_place(site, place, value, names)
        else:
            self.operations.result(site, _out_of_place(place), value, names)
        if not self.operations.is_over(site):
            self.tensors.name(self.tensors.meet(value, site), place.operands[0].code, place.function, site)

    def _bind_tensor(self, site: int, place: Place, value: Any) -> None:
        if place.targets and not self.operations.is_over(site):
            known = self.tensors.meet(value, site)
            for target in place.targets:
                self.tensors.name(known, target, place.function, site)

    def _bind_members(self, site: int, place: Place, value: Any) -> None:
        if not self.operations.is_over(site):
            self._name_members(site, place, value, place.targets)

    def _name_members(self, site: int, place: Place, value: Any, names: tuple[str, ...]) -> None:
        if not names or len(value) > 4 * ELEMENT_LIMIT:
            return
        for index, tensor in self.tensors.members(value):
            known = self.tensors.meet(tensor, site, "created")
            for name in names:
                self.tensors.name(known, name + index, place.function, site)

    # --- the probes of torch ------------------------------------------------------------------------

    def module_enter(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(self.modules.stack()) == 1:
            self.root_call(module, args)
        if self.depth.full:
            self.modules.enter(module, args, kwargs, self.user_site())

    def root_call(self, module: Any, args: tuple[Any, ...]) -> bool:
        """The user's code calls a module; returns whether to look at it fully."""
        first: Any = args[0] if args else None
        shape = (first.shape, first.dtype) if type(first) is self._tensor else None
        who = id(module) if module._parameters or module._modules else type(module)
        self._busy.called.add(who)
        thing = (who, module.training, shape, self._grad_enabled())
        return self.depth.happening(thing, "a module call with a shape or in a mode not seen before")

    def module_leave(self, call: ModuleCall, result: Any) -> None:
        self.modules.leave(call, result, self.user_site())

    def module_fail(self, call: ModuleCall) -> None:
        self.modules.fail(call, self.user_site())

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

    def backward_enter(self, roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loss = self.reader.scalar(roots[0]) if len(roots) == 1 else None
        thing = self.backward_thing(roots)
        if self.look_at_backward(thing, loss):
            self.backward_begin(thing, roots, args, kwargs)
        elif kwargs.get("accumulate_grad"):
            self.aim(thing, roots)
            self.fold.backward(thing, loss)

    def backward_thing(self, roots: Any) -> BackwardThing:
        """What tells this pass from others: its line, the modules called since the last one, what made the root."""
        called = self._busy.called
        thing = (self.user_site(), self.outer_site(), frozenset(called), type(getattr(roots[0], "grad_fn", None)))
        called.clear()
        return thing

    def aim(self, thing: BackwardThing, roots: Any) -> None:
        """Find the leaves of a pass that is only counted, once."""
        if thing not in self.fold.leaves_of:
            nodes = [root.grad_fn for root in roots if isinstance(root, self._tensor) and root.grad_fn is not None]
            self.fold.leaves_of[thing] = self.graph.reach(nodes)

    def backward_begin(self, thing: BackwardThing, roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        gradients, keep, create, inputs = args[0], bool(args[1]), bool(args[2]), args[3]
        accumulate = bool(kwargs.get("accumulate_grad"))
        call = Call(tuple(roots), tuple(gradients), keep, create, tuple(inputs or ()), accumulate)
        entry = self.backwards.begin(thing[0], call)
        if accumulate and entry is not None:
            self.fold.leaves_of[thing] = entry.leaves

    def look_at_backward(self, thing: BackwardThing, loss: float | None) -> bool:
        full = self.depth.happening(("backward", thing), "a backward from a line, or of modules, not seen before")
        if not full and loss is not None and loss - loss != 0:  # nan or inf
            return self.depth.happening(("not finite", thing[0]), "the loss is not finite")
        return full

    def backward_leave(self, entry: Pass, result: Any) -> None:
        self.backwards.end(entry, result)

    def backward_fail(self, entry: Pass) -> None:
        self.backwards.fail(entry, sys.exc_info()[1])

    def optimizer_built(self, optimizer: Any) -> None:
        self.optimizers.meet(optimizer, self.user_site())
        held = weakref.ref(optimizer)
        self.fold.owned[id(optimizer)] = lambda: [] if (owner := held()) is None else self.optimizers.parameters(owner)

    def zeroed(self, owner: Any) -> None:
        """`zero_grad` of an optimizer or a module is over."""
        held = parameters_of(owner) if isinstance(owner, self._module) else self.optimizers.parameters(owner)
        self.grads.observe_these(held, f"{type(owner).__name__}.zero_grad", self.user_site())

    def holds_buffers(self, owner: Any) -> bool:
        """Whether any parameter of an optimizer or a module has a buffer."""
        if isinstance(owner, self._module):
            return any(parameter.grad is not None for parameter in parameters_of(owner))
        return any(parameter.grad is not None for group in groups_of(owner) for parameter in group["params"])

    def zeroed_lightly(self, owner: Any) -> None:
        if isinstance(owner, self._module):
            held = weakref.ref(owner)
            self.fold.owned[id(owner)] = lambda: [] if (module := held()) is None else parameters_of(module)
        self.fold.reset(id(owner))

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


def _out_of_place(place: Place) -> Place:
    """`x += y` where x was no tensor before: an ordinary addition."""
    return Place(
        place.path,
        place.line,
        place.column,
        place.end_line,
        place.end_column,
        place.function,
        place.code,
        place.operation.removesuffix("_"),
        operands=place.operands,
    )
