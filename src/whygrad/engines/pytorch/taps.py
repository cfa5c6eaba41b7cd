"""The quick side of the taps: decide in a few dozen nanoseconds whether there is anything to tell.

`Taps` exists before torch is imported (the user's code is compiled first), so it starts without a recorder.
Asserts, caught exceptions and seeds are told by any program, with torch or without.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from whygrad.engines.book import Book
from whygrad.execute import idle
from whygrad.execute.sites import Constant, Passed, Place, SiteTable
from whygrad.ledger.events import Check, Raised, Seeded

if TYPE_CHECKING:
    from whygrad.engines.pytorch.recorder import Recorder

T = TypeVar("T")

SCALARS = frozenset({int, float, bool, str, bytes, type(None), complex, type, range, slice})
SEEDING = {"random.seed": "random", "numpy.random.seed": "numpy", "numpy.random.default_rng": "numpy generator"}
CHECK_LIMIT = 50
"""One assertion is written out at most this often (failures always are, up to ten times as many)."""

TAKES_OUT = frozenset({"item", "tolist", "numpy", "float", "int", "bool", "complex", "numpy.asarray", "numpy.array"})
"""What turns a tensor into a Python or NumPy value."""

MISSING = object()


class Taps:
    """What instrumented code calls (`whygrad.execute.instrument.Taps`).

    `idle` is true while recording is light: only writes to buffers, assertions, handlers and the names of modules,
    optimizers and leaves are told then.
    """

    def __init__(self, book: Book, table: SiteTable) -> None:
        self.book = book
        self.table = table
        self.recorder: Recorder | None = None
        self.idle = False
        self._local = threading.local()
        self._times: dict[int, int] = {}
        self._kinds: dict[int, int] = {}
        self._seen: set[int] = set()
        self.bind()

    def bind(self) -> None:
        """Build the taps that code objects hold. They are closures: a call of one costs little more than a frame."""
        scalars = SCALARS
        kinds = self._kinds
        seen = self._seen
        places = self.table.places
        state = self

        # Near the recursion limit a tap may have no room left: then it is silent. The error is the program's to meet.

        def value(site: int, value: T, *names: Any) -> T:
            try:
                if not state.idle:
                    seen.add(site)
                elif site in seen or not state.wakes(site):
                    return value
                recorder = state.recorder
                if recorder is not None and recorder.depth.full and type(value) not in scalars:
                    recorder.tell("an operation", recorder.on_value, site, value, names)
                elif kinds.get(site, 1):
                    state._scalar(site, value, names)
            except RecursionError:
                pass
            return value

        def bound(site: int, value: T, *names: Any) -> T:
            try:
                if not state.idle or (site not in seen and state.wakes(site)):
                    return known(site, value, *names)
                if type(value) not in scalars and state.recorder is not None:
                    state.recorder.on_bound(site, value)
            except RecursionError:
                pass
            return value

        def look(site: int, value: T) -> T:
            try:
                recorder = state.recorder
                if not state.idle and recorder is not None and recorder.depth.full:
                    if type(value) not in scalars:
                        recorder.tell("a name", recorder.on_look, site, value)
                    elif kinds.get(site, 1):
                        state._number(site, value)
            except RecursionError:
                pass
            return value

        def names(site: int, *values: Any) -> None:
            try:
                recorder = state.recorder
                if not state.idle and recorder is not None and recorder.depth.full:
                    recorder.tell("a name", recorder.on_names, site, values)
            except RecursionError:
                pass

        def base(site: int, value: T) -> T:
            try:
                recorder = state.recorder
                if state.idle and places[site].attribute != "grad":
                    return value
                if recorder is not None and type(value) not in scalars:
                    if recorder.backwards.running:
                        recorder.tell("a buffer", recorder.before_write, value)
                    state._pending()[site] = value
            except RecursionError:
                pass
            return value

        def wrote(site: int, value: Any = None, *names: Any) -> Any:
            try:
                recorder = state.recorder
                if recorder is not None:
                    owner = state._pending().pop(site, MISSING)
                    if owner is not MISSING:
                        recorder.tell("a write", recorder.on_wrote, site, owner, names)
            except RecursionError:
                pass
            return value

        def updated(site: int, value: Any, *names: Any) -> None:
            try:
                recorder = state.recorder
                if recorder is not None and type(value) not in scalars and recorder.depth.full:
                    recorder.tell("a write", recorder.on_updated, site, value, names)
            except RecursionError:
                pass

        def side(site: int, index: int, value: T) -> T:
            try:
                state._note_side(site, index, value)
            except RecursionError:
                pass
            return value

        def check(site: int, held: bool) -> bool:
            try:
                state._note_check(site, held)
            except RecursionError:
                pass
            return held

        def caught(site: int) -> None:
            try:
                state._note_caught(site)
            except RecursionError:
                pass

        known = value
        self.side, self.check, self.caught = side, check, caught
        self.value, self.bound, self.look, self.names = value, bound, look, names
        self.base, self.wrote, self.updated = base, wrote, updated
        closures = (value, bound, look, names, base, wrote, updated, side, check, caught)
        idle.stand_for({tap.__name__: tap for tap in closures})

    def wakes(self, site: int) -> bool:
        """Whether an expression that never ran before is to be looked at fully although recording is light."""
        self._seen.add(site)
        recorder = self.recorder
        return recorder is not None and recorder.depth.happening(("expression", site), "code that had not run before")

    def _note_side(self, site: int, index: int, value: Any) -> None:
        if self._times.get(site, 0) <= 10 * CHECK_LIMIT:
            self._sides().setdefault(site, {})[index] = value

    def _note_check(self, site: int, held: bool) -> None:
        times = self._times[site] = self._times.get(site, 0) + 1
        if times <= 10 * CHECK_LIMIT:
            values = self._sides().pop(site, {})
            if times <= CHECK_LIMIT or not held:
                self._tell("a check", self._check, site, held, values)

    def _note_caught(self, site: int) -> None:
        self._pending().clear()
        self._sides().clear()
        if self.recorder is not None:
            self.recorder.operations.operands.forget()
        self._tell("a caught exception", self._caught, site, sys.exc_info()[1])

    # --- slow paths -------------------------------------------------------------------------------

    def _tell(self, what: str, action: Any, *arguments: Any) -> None:
        recorder = self.recorder
        if recorder is not None:
            recorder.tell(what, action, *arguments)
        elif self.book.is_open:
            try:
                action(*arguments)
            except Exception as error:
                self.book.lost(what, error)

    def _scalar(self, site: int, value: Any, names: tuple[Any, ...]) -> None:
        """An expression that gave no tensor: most are none of our business, and are remembered as such (0)."""
        operation = self.table.places[site].operation
        recorder = self.recorder
        if operation in SEEDING:
            self._kinds[site] = 1
            self._tell("a seed", write_seed, self.book, self.table.places[site], site, names)
        elif operation in TAKES_OUT:
            self._kinds[site] = 2
            if recorder is not None and recorder.depth.full:
                recorder.tell("a value taken out", recorder.operations.taken_out, site, self.table.places[site], names)
                recorder.operations.operands.give_number(site, value)
        elif value is None:
            self._kinds[site] = 3
            if recorder is not None and recorder.depth.full:
                recorder.tell("an operation", recorder.on_none, site, names)
        else:
            self._number(site, value)

    def _number(self, site: int, value: Any) -> None:
        """An expression gave no tensor; its value matters where the expression around it computes with a tensor."""
        recorder = self.recorder
        if recorder is not None and recorder.depth.full:
            self._kinds[site] = 4 if recorder.operations.operands.give_number(site, value) else 0
        elif recorder is None:
            self._kinds[site] = 0

    def _check(self, site: int, held: bool, values: dict[int, Any]) -> None:
        place = self.table.places[site]
        sides = tuple((place.sides[index], self._printed(value)) for index, value in sorted(values.items()))
        self.book.write(Check, site, code=place.code, held=held, sides=sides)

    def _caught(self, site: int, error: BaseException | None) -> None:
        if error is not None:
            self.book.write(
                Raised,
                raising_site(error, self.table),
                kind=type(error).__name__,
                text=message(error),
                caught=self.book.site(site),
            )

    def _printed(self, value: Any) -> str:
        """How a checked value reads. Only values whose text cannot run the user's code are printed."""
        recorder = self.recorder
        if type(value) in SCALARS or (recorder is not None and type(value) is recorder.torch.Size):
            return repr(value)[:200]
        if recorder is not None and isinstance(value, recorder.torch.Tensor):
            known = recorder.reader.read(value)
            if known.items is not None:
                return str(known.scalar) if known.scalar is not None else f"{list(known.items)} of shape {known.shape}"
            return f"a tensor of shape {known.shape}"
        if type(value) in (tuple, list) and len(value) <= 16:
            inner = ", ".join(self._printed(item) for item in value)
            comma = "," if len(value) == 1 else ""
            return f"({inner}{comma})" if type(value) is tuple else f"[{inner}]"
        return f"a {type(value).__name__}"

    def _pending(self) -> dict[int, Any]:
        try:
            return self._local.pending  # type: ignore[no-any-return]
        except AttributeError:
            self._local.pending = {}
            return self._local.pending  # type: ignore[no-any-return]

    def _sides(self) -> dict[int, dict[int, Any]]:
        try:
            return self._local.sides  # type: ignore[no-any-return]
        except AttributeError:
            self._local.sides = {}
            return self._local.sides  # type: ignore[no-any-return]


def write_seed(book: Book, place: Place, site: int, names: tuple[Any, ...]) -> None:
    """A generator outside torch was seeded, with a literal, a name's value, or what `place` shows of it."""
    given = ""
    if place.operands:
        form = place.operands[0].form
        value = form.value if isinstance(form, Constant) else names[form.index] if isinstance(form, Passed) else None
        given = repr(value) if type(value) in SCALARS else place.operands[0].code
    book.write(Seeded, site, generator=SEEDING[place.operation], seed=given)


def raising_site(error: BaseException, table: SiteTable) -> int | None:
    """The user's statement in which `error` was raised: the innermost one of its traceback."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path in table.files:
            found = (path, trace.tb_lineno)
        trace = trace.tb_next
    return None if found is None else table.statement(*found)


def message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""
