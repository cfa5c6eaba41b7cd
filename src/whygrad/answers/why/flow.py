"""How values flowed between tensors, whether or not autograd followed: who was computed from whom, and how.

Autograd's own graph ends where history was cut; this one goes on, so that the cut can be found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from whygrad.answers.why.numbers import Link, NumberLinks, stand_in
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    GradModeChanged,
    Module,
    ModuleCalled,
    Named,
    Operand,
    Operation,
    RequiresGradChanged,
    SiteId,
    TensorId,
)

NOT_COMPUTED = frozenset({"grad", "grad_fn", "requires_grad", "is_leaf", "shape"})
"""Attributes whose result was not computed from the tensor's data."""


NO_NODE = {"grad mode off": "no_grad", "inference mode": "inference_mode", "integer dtype": "integer dtype"}
"""`Operation.no_node` that is a cut, by the cut's name."""

TAKEN = -(1 << 40)
"""Stand-ins for values whose taking only the text shows count down from here."""


class Made(msgspec.Struct, frozen=True):
    """One computation: `outputs` came from `inputs` at `site`.

    `cut` says what took the history away, if something did: what `Operation.cut` names, or the grad mode
    (`no_grad`, `inference_mode`), or `integer dtype`. `module` is the module's path where a module computed it;
    `code` and `line` are what the program's text says of it, where that is more than its site.
    """

    seq: int
    site: SiteId | None
    function: str
    inputs: tuple[TensorId, ...]
    outputs: tuple[TensorId, ...]
    cut: str = ""
    in_place: bool = False
    module: str = ""
    mode: str = ""
    code: str = ""
    line: int = 0
    thread: int = 0


class Flow:
    """All computations up to a moment."""

    def __init__(self, ledger: Ledger, upto: int) -> None:
        self._ledger = ledger
        self.makers: dict[TensorId, list[Made]] = {}
        self.uses: dict[TensorId, list[Made]] = {}
        self._requires: dict[TensorId, bool] = {}
        for made in self._computations(upto):
            for output in made.outputs:
                self.makers.setdefault(output, []).append(made)
            for operand in made.inputs:
                if not (made.in_place and operand in made.outputs):
                    self.uses.setdefault(operand, []).append(made)

    def maker(self, tensor: TensorId) -> Made | None:
        """The computation that a tensor came out of first (the innermost of nested calls)."""
        return next(iter(self.makers.get(tensor, ())), None)

    def requires_grad(self, tensor: TensorId) -> bool:
        """Whether the tensor ever required grad: when first seen, after a switch, or after an in-place write."""
        if tensor not in self._requires:
            known = self._ledger.tensor(tensor)
            self._requires[tensor] = known is not None and known.requires_grad
        return self._requires[tensor]

    def computed_from(self, tensor: TensorId) -> set[TensorId]:
        """The tensor and everything that was computed from it."""
        found = {tensor}
        queue = deque([tensor])
        while queue:
            for made in self.uses.get(queue.popleft(), ()):
                for output in made.outputs:
                    if output not in found:
                        found.add(output)
                        queue.append(output)
        return found

    def cuts(self, root: TensorId, tensor: TensorId) -> tuple[Made, ...] | None:
        """The computations at which the ways from `root` back to `tensor` were cut, nearest to the root first.

        None where `root` was not computed from `tensor` at all; empty where no way was cut.
        """
        descendants = self.computed_from(tensor)
        if root not in descendants:
            return None
        found: dict[int, Made] = {}
        seen = {root}
        queue = deque([(root, 1 << 62)])
        while queue:
            current, before = queue.popleft()
            for made in self._ways(current, before, descendants):
                if self.loses_history(made, current, descendants):
                    found.setdefault(made.seq, made)
                    continue
                for operand in made.inputs:
                    if operand in descendants and operand not in seen:
                        seen.add(operand)
                        queue.append((operand, made.seq))
        return tuple(found.values())

    def upstream(self, root: TensorId) -> Iterator[tuple[TensorId, Made]]:
        """The computations that led to `root`, nearest first, each with the tensor that it gave."""
        seen = {root}
        queue = deque([(root, 1 << 62)])
        while queue:
            current, before = queue.popleft()
            for made in self._ways(current, before, None):
                yield current, made
                for operand in made.inputs:
                    if operand not in seen:
                        seen.add(operand)
                        queue.append((operand, made.seq))

    def loses_history(self, made: Made, output: TensorId, among: set[TensorId] | None = None) -> bool:
        """Whether an input of `made` had a history (or was a leaf to be reached) and `output` has none."""
        inputs = [operand for operand in made.inputs if among is None or operand in among]
        if not any(self.requires_grad(operand) for operand in inputs):
            return False
        return bool(made.cut) or not (made.in_place or self.requires_grad(output))

    def _ways(self, tensor: TensorId, before: int, among: set[TensorId] | None) -> list[Made]:
        """How a tensor was computed, as it was when used at event `before`: the innermost call, and in-place writes."""
        ways = []
        whole = False
        for made in self.makers.get(tensor, ()):
            late = made.seq > before or (made.seq == before and tensor > TAKEN)
            if late or (among is not None and not among.intersection(made.inputs)):
                continue
            if made.in_place:
                ways.append(made)
            elif not whole:
                whole = True
                ways.append(made)
        return ways

    # --- reading the ledger ---------------------------------------------------------------------------

    def _computations(self, upto: int) -> Iterator[Made]:
        """Operations and module calls in order, joined by the Python numbers that went from one to another."""
        links = NumberLinks(self._ledger)
        inside: dict[tuple[int, int], list[TensorId]] = {}
        modes: dict[int, str] = {}
        for event in self._ledger:
            if event.seq > upto:
                return
            if isinstance(event, Named):
                links.bind(event)
            elif isinstance(event, GradModeChanged):
                modes[event.thread] = event.mode
            elif isinstance(event, RequiresGradChanged) and event.to:
                self._requires[event.tensor] = True
            elif isinstance(event, Operation) and event.function not in NOT_COMPUTED:
                if event.in_place and event.node is not None:
                    self._requires.update(dict.fromkeys(event.outputs, True))
                yield from self._operation(event, links, modes.get(event.thread, "on"))
            elif isinstance(event, ModuleCalled):
                own = self._ledger.module(event.module)
                parameters = [tensor for _, tensor in own.parameters] if own is not None else []
                parameters += inside.pop((event.thread, event.depth + 1), [])
                if event.depth:
                    inside.setdefault((event.thread, event.depth), []).extend(parameters)
                yield _module_call(event, own, parameters)

    def _operation(self, event: Operation, links: NumberLinks, mode: str) -> Iterator[Made]:
        """An operation, after the takings of values that went into it and that only the program's text shows."""
        inputs = list(tensors_of(event.inputs))
        for link in list(links.into(event)):
            if link.tensor in event.outputs:
                continue
            if link.taken:
                yield _taking(event, link)
            inputs.append(_taken(link) if link.taken else link.tensor)
        links.note(event)
        yield Made(
            seq=event.seq,
            site=event.site,
            function=event.function,
            inputs=tuple(inputs),
            outputs=event.outputs or ((stand_in(event),) if event.cut else ()),
            cut=self._cut(event),
            in_place=event.in_place,
            mode=mode,
            thread=event.thread,
        )

    def _cut(self, event: Operation) -> str:
        """What took the history away, where the event says it, or where the result's dtype does."""
        if event.cut:
            return event.cut
        if event.no_node in NO_NODE:
            return NO_NODE[event.no_node]
        if event.node is None and not event.no_node and event.outputs and event.inputs:
            plain = event.function.rpartition(".")[2]
            if plain in ("tensor", "detach", "data"):
                return "torch.tensor" if plain == "tensor" else plain
            result = self._ledger.tensor(event.outputs[0])
            if result is not None and result.dtype.startswith("bool"):
                return "comparison"
            if result is not None and result.dtype.startswith(("int", "uint")):
                return event.function if event.function in ("argmax", "argmin", "argsort") else "integer dtype"
        return ""


def _module_call(event: ModuleCalled, module: Module | None, parameters: list[TensorId]) -> Made:
    """A module's call: its outputs come from its inputs and from all parameters inside it."""
    given = [shape.tensor for shape in event.inputs if shape.tensor is not None]
    return Made(
        seq=event.seq,
        site=event.site,
        function=module.kind if module is not None else "a module",
        inputs=tuple(dict.fromkeys([*given, *parameters])),
        outputs=tuple(shape.tensor for shape in event.outputs if shape.tensor is not None),
        cut={"off": "no_grad", "inference": "inference_mode"}.get(event.grad_mode, ""),
        module=module.path if module is not None else "",
        mode=event.grad_mode,
        thread=event.thread,
    )


def tensors_of(operands: Iterable[Operand]) -> Iterator[TensorId]:
    """The tensors among operands, those inside lists too."""
    for operand in operands:
        if operand.tensor is not None:
            yield operand.tensor
        if operand.items:
            yield from tensors_of(operand.items)


def grad_mode_entry(ledger: Ledger, made: Made) -> GradModeChanged | None:
    """What had switched recording off when `made` ran: the newest entry that was still open."""
    entries: list[GradModeChanged] = []
    for event in ledger.of(GradModeChanged):
        if event.seq > made.seq:
            break
        if event.thread != made.thread:
            continue
        if event.entered:
            entries.append(event)
        elif entries:
            entries.pop()
    return next((event for event in reversed(entries) if event.mode != "on"), None)


def _taking(event: Operation, link: Link) -> Made:
    """The taking of a value that no event tells of: the program's text shows it in the operand of `event`."""
    return Made(
        seq=event.seq,
        site=event.site,
        code=link.text,
        line=link.line,
        function=link.taken,
        inputs=(link.tensor,),
        outputs=(_taken(link),),
        cut=link.taken,
        thread=event.thread,
    )


def _taken(link: Link) -> TensorId:
    return TensorId(TAKEN - link.tensor)
