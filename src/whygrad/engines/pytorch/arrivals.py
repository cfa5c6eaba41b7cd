"""What a backward sends to each buffer: caught on the way, compared with what the buffer holds afterwards.

Where one node alone feeds an empty buffer and no hook stands between, the buffer shows what arrived; everywhere
else the feeding nodes are listened to while the pass runs.
"""

from __future__ import annotations

import re
import threading
from functools import cache
from typing import Any

import msgspec

from whygrad.engines.book import Book
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.graph import Feeder, Label
from whygrad.engines.pytorch.tensors import Known
from whygrad.engines.pytorch.values import Reader
from whygrad.ledger.events import BackwardId, Contribution, GradReset, GradReturned, GradWritten, NodeId
from whygrad.ledger.values import Value, as_float

Arrived = dict[tuple[NodeId, int], Value]
"""What each node sent, by the position among its inputs' gradients."""


class Target(msgspec.Struct, eq=False):
    """A tensor that a pass sends a gradient to.

    `given` is what the pass starts with at the tensor, if it is a root. `settled` says that its write is told.
    `received` is what reached the buffer behind the program's hooks, `total` what was sent towards it. `shared` is
    true where another thread's pass may write the same buffer meanwhile.
    """

    tensor: Any
    known: Known
    feeders: list[Feeder]
    given: Value | None = None
    listened: bool = False
    hooks: bool = False
    settled: bool = False
    shared: bool = False
    received: Value | None = None
    total: Any = None


class Arrivals(msgspec.Struct, eq=False):
    """The targets of one pass, by their ids, and what arrived so far. Partial: perhaps not all feeders are known."""

    targets: dict[int, Target] = msgspec.field(default_factory=dict)
    arrived: Arrived = msgspec.field(default_factory=dict)
    handles: list[Any] = msgspec.field(default_factory=list)
    is_partial: bool = False

    def add(self, target: Target, *, careful: bool) -> None:
        """Decide whether to listen; `careful` where another pass may write the same buffer meanwhile."""
        tensor, known = target.tensor, target.known
        known.thread = threading.get_ident()
        leaf_hooks = tensor._backward_hooks or tensor._post_accumulate_grad_hooks if tensor.is_leaf else None
        target.hooks = bool(leaf_hooks)
        single = len(target.feeders) + (target.given is not None) == 1
        target.listened = (
            careful
            or self.is_partial
            or target.hooks
            or not single
            or known.grad_value is not None
            or not tensor.is_leaf
        )
        self.targets[known.id] = target

    def unlisten(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


class Listener:
    """Listens to nodes, and tells what came of it."""

    def __init__(self, torch: Any, book: Book, reader: Reader, grads: Grads) -> None:
        self.torch = torch
        self.book = book
        self.reader = reader
        self.grads = grads

    def listen(self, arrivals: Arrivals) -> None:
        """Put a hook on each node that feeds a target which does not show by itself what arrives."""
        slots: dict[Any, tuple[Label, dict[int, Target]]] = {}
        for target in arrivals.targets.values():
            if not target.listened:
                continue
            for node, label, position in target.feeders:
                slots.setdefault(node, (label, {}))[1][position] = target
            if target.hooks:
                self._watch_hooks(arrivals, target)
        for node, (label, positions) in slots.items():
            arrivals.handles.append(node.register_hook(self._catcher(arrivals.arrived, label.id, positions)))

    def write(self, arrivals: Arrivals, target: Target, backward: BackwardId, site: int | None) -> None:
        """Tell what the pass did to a buffer, if it has."""
        tensor, known = target.tensor, target.known
        grad = tensor.grad
        if target.settled or grad is None or not self.grads.differs(known, grad):
            return
        target.settled = True
        before = known.grad_value
        self.grads.remember(known, grad)
        after = known.grad_value
        assert after is not None
        terms = self.terms(arrivals, target, after if before is None and not target.shared else None)
        self.book.write(
            GradWritten,
            site,
            tensor=known.id,
            backward=backward,
            before=before,
            contributions=terms,
            after=after,
            hooked=not arrivals.is_partial and self._hooked(target, before, terms, after),
            partial=arrivals.is_partial,
        )

    def write_vanished(self, arrivals: Arrivals, target: Target, backward: BackwardId, site: int | None) -> None:
        """The pass is over and a buffer as empty as before: a hook of the program's emptied it at once."""
        value, known = target.received, target.known
        if value is None or target.settled or target.tensor.grad is not None or known.grad_value is not None:
            return
        target.settled = True
        terms = self.terms(arrivals, target, None)
        self.book.write(
            GradWritten,
            site,
            tensor=known.id,
            backward=backward,
            before=None,
            contributions=terms,
            after=value,
            hooked=not arrivals.is_partial and self._hooked(target, None, terms, value),
            partial=arrivals.is_partial,
        )
        self.book.write(GradReset, site, tensor=known.id, to="none", by="unseen", before=value)

    def write_returned(
        self, arrivals: Arrivals, target: Target, value: Value | None, backward: BackwardId, site: int | None
    ) -> None:
        """Tell what `autograd.grad` returned for a target."""
        terms = () if value is None else self.terms(arrivals, target, value)
        self.book.write(GradReturned, site, tensor=target.known.id, backward=backward, contributions=terms, value=value)

    def terms(self, arrivals: Arrivals, target: Target, alone: Value | None) -> tuple[Contribution, ...]:
        """What arrived, term by term; `alone` is what a target that was not listened to shows by itself."""
        found = [] if target.given is None else [Contribution(target.given)]
        for node, label, position in target.feeders:
            value = arrivals.arrived.get((label.id, position)) if target.listened else alone
            if value is not None:
                site = None if label.site is None else self.book.site(label.site)
                found.append(Contribution(value, label.id, site, label.operation or plain_name(node)))
        return tuple(found)

    # --- parts ------------------------------------------------------------------------------------

    def _catcher(self, arrived: Arrived, node: NodeId, positions: dict[int, Target]) -> Any:
        def catch(sent: tuple[Any, ...], received: tuple[Any, ...]) -> None:  # noqa: ARG001
            try:
                for position, target in positions.items():
                    gradient = sent[position]
                    if gradient is not None:
                        arrived[node, position] = self.reader.read(gradient)
                        if target.hooks and not self.reader.visible():
                            self._sum_up(target, gradient)
            except Exception as error:
                self.book.lost("a contribution to a gradient", error)

        return catch

    def _sum_up(self, target: Target, gradient: Any) -> None:
        with self.torch.no_grad():
            now = gradient.detach()
            target.total = now.clone() if target.total is None else target.total + now

    def _watch_hooks(self, arrivals: Arrivals, target: Target) -> None:
        """See what the buffer receives once the program's hooks are through."""

        def receive(gradients: tuple[Any, ...]) -> None:
            try:
                if gradients[0] is not None:
                    target.received = self.reader.read(gradients[0])
            except Exception as error:
                self.book.lost("what a hook made of a gradient", error)

        if target.tensor.is_leaf and target.feeders:
            node, _, position = target.feeders[0]
            accumulator, _ = node.next_functions[position]
            arrivals.handles.append(accumulator.register_prehook(receive))

    def _hooked(self, target: Target, before: Value | None, terms: tuple[Contribution, ...], after: Value) -> bool:
        """Whether a hook of the program's replaced what arrived."""
        if target.shared:
            return False
        if target.received is not None:
            sent = target.given if target.total is None else self.reader.read(target.total)
            return sent is not None and sent != target.received
        return target.listened and not _adds_up(before, terms, after)


def _adds_up(before: Value | None, terms: tuple[Contribution, ...], after: Value) -> bool:
    """Whether `after` is `before` and the terms, as far as the values are whole and real."""
    known = [term.value for term in terms] + ([] if before is None else [before])
    if after.items is None or any(value.items is None or len(value.items) != len(after.items) for value in known):
        return True
    slack = 2e-2 if after.dtype in ("float16", "bfloat16") else 1e-4
    try:
        for position, item in enumerate(after.items):
            parts = [as_float(value.items[position]) for value in known if value.items is not None]
            whole = as_float(item)
            scale = max([abs(part) for part in parts], default=0.0)
            if abs(sum(parts) - whole) > slack * max(scale, abs(whole), 1e-30):
                return False
    except ValueError:  # complex numbers
        return True
    return True


def plain_name(node: Any) -> str:
    """`mul` from `MulBackward0`."""
    return _plain(str(node.name()))


@cache
def _plain(name: str) -> str:
    short = re.sub(r"Backward\d*$", "", name.rsplit("::", 1)[-1])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", short).lower()
