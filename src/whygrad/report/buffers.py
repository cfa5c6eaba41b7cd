"""Collects the lives of the grad buffers, and the backward passes that wrote them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from msgspec.structs import replace

from whygrad.errors import WhygradError
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import Contribution, ModuleId, SiteId, TensorId
from whygrad.ledger.values import Number, Value, as_float, number
from whygrad.report.account import Account
from whygrad.report.parts import Buffer, Change, Light, NonFinite, Place, Spread, Term
from whygrad.report.places import Places

CUTS = ("cut: ", "required too late", "not in the derivative")
"""Reasons of an answer that name the line to blame."""

ASKED = 12
EVENTS = 50_000
"""For so many leaves, in ledgers of so many events at most, it is looked up what cut them off."""

KEPT_SIBLINGS = 3
"""Tensors of one name made at one place (anew in every turn of a loop) whose lives are told."""


class Buffers:
    """Follows every grad buffer through the stream of events."""

    def __init__(self, ledger: Ledger, places: Places) -> None:
        self._ledger = ledger
        self._places = places
        self._lives: dict[TensorId, Account] = {}
        self._siblings: dict[Hashable, list[TensorId]] = {}
        self._others: dict[TensorId, int] = {}
        self._counted: set[TensorId] = set()
        self._first_use: dict[TensorId, SiteId | None] = {}
        self._called: set[ModuleId] = set()
        self._leaves = frozenset(ledger.leaves())
        self._ran_by: dict[Hashable, str] = {}
        self._frozen: dict[TensorId, SiteId | None] = {}
        self._nonfinite: list[NonFinite] = []
        self._passes = 0
        self._stopped: SiteId | None = None
        self._light = False
        self._asked = 0

    # --- events ---------------------------------------------------------------------------------

    def written(self, event: events.GradWritten) -> None:
        if (life := self._life(event.tensor)) is None:
            return
        since = life.oldest if event.before is not None else None
        life.oldest = since or event.backward
        life.reset_by = None
        life.writes += 1
        terms = self._terms(event.contributions)
        change = Change(
            seq=event.seq,
            step=event.step,
            thread=event.thread,
            kind="set" if event.before is None else "added",
            cause=f"backward #{event.backward}",
            place=self._places.at(event.site),
            before=event.before,
            after=event.after,
            terms=terms,
            backward=event.backward,
            since=since,
            hooked=event.hooked,
        )
        life.add(change, event.after)
        self._watch(life, change)

    def returned(self, event: events.GradReturned) -> None:
        if (life := self._life(event.tensor)) is None:
            return
        change = Change(
            seq=event.seq,
            step=event.step,
            thread=event.thread,
            kind="returned",
            cause=f"autograd.grad #{event.backward}",
            place=self._places.at(event.site),
            before=life.value,
            after=event.value,
            terms=self._terms(event.contributions),
            backward=event.backward,
        )
        life.add(change, life.value)
        self._watch(life, change)

    def reset(self, event: events.GradReset) -> None:
        if (life := self._life(event.tensor)) is None:
            return
        place = self._places.at(event.site)
        life.oldest = None
        life.resets += 1
        life.reset_by = (event.by, place)
        after = None if event.to == "none" else life.zeros(event.before)
        change = Change(
            seq=event.seq,
            step=event.step,
            thread=event.thread,
            kind="reset",
            cause=_said(event.by, place, life.title),
            place=place,
            before=event.before,
            after=after,
        )
        life.add(change, after)

    def changed(self, event: events.GradChanged) -> None:
        if (life := self._life(event.tensor)) is None:
            return
        place = self._places.at(event.site)
        if event.by == events.HELD:
            life.add(
                Change(
                    seq=event.seq, step=event.step, thread=event.thread, kind="held", cause=event.by, place=place,
                    before=event.after, after=event.after,
                ),
                event.after,
            )  # fmt: skip
            return
        if event.by == "assignment":
            life.oldest = None
        life.reset_by = None
        change = Change(
            seq=event.seq,
            step=event.step,
            thread=event.thread,
            kind="changed",
            cause=_said(event.by, place, life.title),
            place=place,
            before=event.before,
            after=event.after,
        )
        life.add(change, event.after)
        self._watch(life, change)

    def folded(self, event: events.StepsFolded) -> None:
        self._light = True
        for fold in event.buffers:
            if (life := self._life(fold.tensor)) is None:
                continue
            life.writes += fold.writes
            life.resets += fold.resets
            if fold.resets:
                life.oldest = None
            if not (fold.writes or fold.resets):
                continue
            life.add_light(
                Light(
                    seq=event.seq,
                    first_step=event.first,
                    last_step=event.last,
                    writes=fold.writes,
                    resets=fold.resets,
                    sampled=fold.sampled,
                    norms=Spread(
                        first=_norm(fold.norm_first),
                        last=_norm(fold.norm_last),
                        low=_norm(fold.norm_low),
                        high=_norm(fold.norm_high),
                    ),
                )
            )

    def operation(self, event: events.Operation) -> None:
        used = event.inputs[1:] if event.in_place else event.inputs
        for operand in _tensors(used):
            if operand in self._leaves and operand not in self._first_use:
                self._first_use[operand] = event.site

    def called(self, event: events.ModuleCalled) -> None:
        if event.module in self._called:
            return
        self._called.add(event.module)
        module = self._ledger.module(event.module)
        for _, parameter in module.parameters if module is not None else ():
            self._first_use.setdefault(parameter, event.site)

    def requires_grad(self, event: events.RequiresGradChanged) -> None:
        if event.to:
            self._frozen.pop(event.tensor, None)
        else:
            self._frozen[event.tensor] = event.site

    def backward_ended(self, event: events.BackwardEnded) -> None:
        self._passes += 1
        if event.error:
            self._stopped = event.site

    # --- what came of it ------------------------------------------------------------------------

    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers in the order in which their tensors appeared, those that stayed None among them."""
        for leaf in self._ledger.leaves():
            self._life(leaf)
        return tuple(self._buffer(self._lives[tensor]) for tensor in sorted(self._lives))

    def nonfinite(self) -> tuple[NonFinite, ...]:
        """Where a gradient held NaN or infinity for the first time, buffer by buffer."""
        return tuple(self._nonfinite)

    def why_none(self, tensor: TensorId) -> str:
        """Why the buffer is None at this moment of the stream."""
        life = self._lives.get(tensor)
        if tensor in self._frozen:
            return "it does not require grad"
        if life is None or not life.writes:
            return "no backward had reached it"
        if life.reset_by is None:
            return ""
        by, place = life.reset_by
        return f"reset by {_said(by, place, life.title)}{_at(place)}, no backward since"

    # --- how ------------------------------------------------------------------------------------

    def _life(self, tensor: TensorId) -> Account | None:
        """The buffer's life; None for one whose elder siblings stand for it."""
        known = self._lives.get(tensor)
        if known is not None:
            return known
        described = self._ledger.tensor(tensor)
        name = self._ledger.name(tensor)
        key: Hashable = (name, described.site) if described and (name or described.origin == "created") else tensor
        elder = self._siblings.setdefault(key, [])
        if len(elder) >= KEPT_SIBLINGS:
            if tensor not in self._counted:
                self._counted.add(tensor)
                self._others[elder[-1]] = self._others.get(elder[-1], 0) + 1
            return None
        elder.append(tensor)
        life = self._lives[tensor] = Account(tensor, self._ledger.describe(tensor), described)
        return life

    def _buffer(self, life: Account) -> Buffer:
        known = life.described
        return Buffer(
            tensor=life.tensor,
            title=life.title,
            names=self._ledger.names(life.tensor),
            leaf=known.leaf if known else True,
            requires_grad=bool(known and known.requires_grad) and life.tensor not in self._frozen,
            origin=known.origin if known else "unknown",
            shape=known.shape if known else (),
            dtype=known.dtype if known else "",
            device=known.device if known else "",
            made=self._places.at(known.site) if known else None,
            value=known.value if known else None,
            entries=life.life.entries(),
            tallies=tuple(life.tallies.values()),
            light=life.light,
            norms=life.norms(),
            writes=life.writes,
            resets=life.resets,
            siblings=self._others.get(life.tensor, 0),
            silent="" if life.held else self._silence(life),
        )

    def _silence(self, life: Account) -> str:
        """Why no gradient ever arrived, as far as the ledger shows."""
        if life.tensor in self._frozen:
            return f"it does not require grad any more{_at(self._places.at(self._frozen[life.tensor]))}"
        if life.returned:
            return "only autograd.grad asked for it, which leaves the buffer alone"
        if not self._passes and not self._ledger.is_over:
            return "no backward was recorded before the ledger ends"
        if not self._passes:
            return "no backward ran" if not self._light else "no recorded backward reached it"
        use = self._first_use.get(life.tensor)
        place = self._places.at(use)
        used = f"; first used on {place.where}" if place is not None else ""
        if self._passes == 1 and self._stopped is not None:
            return f"the backward{_at(self._places.at(self._stopped))} was stopped before it wrote"
        return f"no backward reached it{self._cut(life.tensor) or used}"

    def _cut(self, tensor: TensorId) -> str:
        """What cut the way back to a leaf, for the first few leaves of a ledger of moderate length."""
        if self._asked >= ASKED or self._ledger.count > EVENTS:
            return ""
        from whygrad.answers.why import Target, why

        self._asked += 1
        try:
            answer = why(self._ledger, Target(tensor))
        except WhygradError:
            return ""
        told = answer.headline.text.partition("; ")[2].rstrip(".")
        return f"; {told}" if told and answer.reason.startswith(CUTS) else ""

    def _terms(self, contributions: tuple[Contribution, ...]) -> tuple[Term, ...]:
        folded: dict[Hashable, Term] = {}
        for part in contributions:
            key = (part.site, part.operation)
            before = folded.get(key)
            if before is None:
                folded[key] = Term(
                    value=part.value,
                    last=part.value,
                    total=part.value if part.value.items is not None else None,
                    operation=part.operation,
                    place=self._places.at(part.site),
                    module=self._module(part),
                )
            else:
                total = _sum(before.total, part.value)
                folded[key] = replace(before, last=part.value, total=total, times=before.times + 1)
        return tuple(folded.values())

    def _module(self, part: Contribution) -> str:
        """The path of the module that made the term's node; looked up once for each place and operation."""
        key = (part.site, part.operation)
        if key not in self._ran_by:
            node = self._ledger.node(part.node)
            module = self._ledger.module(node.module) if node is not None else None
            self._ran_by[key] = module.path if module is not None else ""
        return self._ran_by[key]

    def _watch(self, life: Account, change: Change) -> None:
        """Keep the first change that brought NaN or infinity."""
        value = change.after
        if life.nonfinite or value is None or not (value.nan or value.inf):
            return
        life.nonfinite = True
        term = next((term for term in change.terms if term.last.nan or term.last.inf), None)
        self._nonfinite.append(
            NonFinite(
                seq=change.seq,
                step=change.step,
                title=life.title,
                cause=change.cause,
                place=change.place,
                value=value,
                term=term,
            )
        )


def _said(by: str, place: Place | None, title: str) -> str:
    """A cause as a person would write it: the statement where it is one (`w.grad = None`)."""
    if by.startswith("=") or by == "assignment":
        code = place.code if place is not None else ""
        return code if code and "\n" not in code else f"{title}.grad {by}" if by.startswith("=") else "an assignment"
    return "something unseen" if by == "unseen" else by


def _at(place: Place | None) -> str:
    return f" ({place.where})" if place is not None else ""


def _tensors(operands: tuple[events.Operand, ...]) -> Iterator[TensorId]:
    for operand in operands:
        if operand.tensor is not None:
            yield operand.tensor
        if operand.items:
            yield from _tensors(operand.items)


def _sum(total: Value | None, value: Value) -> Value | None:
    """Element by element; None where an element was not kept or is not a real number."""
    if total is None or total.items is None or value.items is None or total.shape != value.shape:
        return None
    try:
        items = tuple(_added(a, b) for a, b in zip(total.items, value.items, strict=True))
    except ValueError:
        return None
    return Value(
        shape=value.shape,
        dtype=value.dtype,
        items=items,
        nan=sum(item == "nan" for item in items),
        inf=sum(item in ("inf", "-inf") for item in items),
    )


def _added(a: Number, b: Number) -> Number:
    return number(as_float(a) + as_float(b))


def _norm(spelled: float | str | None) -> float | None:
    return None if spelled is None else as_float(spelled)
