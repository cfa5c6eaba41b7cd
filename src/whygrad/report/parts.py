"""The parts of a report, whatever the medium: frozen, typed, made once by `whygrad.report.view`.

No part grows with the steps of a program: what repeats is folded into one part with a count. A part that
came from events keeps the `seq` of its first event, so parts of different kinds can be put in order.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from whygrad.ledger.events import BackwardId, TensorId
from whygrad.ledger.values import Value

Norm = float


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What all parts share: they are values."""


class Place(Part, frozen=True):
    """A place in the user's code. `where` is how a person says it: `line 6`, or `helpers.py:6`."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    code: str
    where: str


class SourceText(Part, frozen=True):
    """A file of the user's code as it was when it ran."""

    path: str
    text: str


# --- the run --------------------------------------------------------------------------------------


class Seed(Part, frozen=True):
    """A random generator that the program seeded; the seed that it had last."""

    generator: str
    seed: str
    place: Place | None
    times: int = 1


class Run(Part, frozen=True):
    """What ran, on what, and how it ended. `how` is empty where the ledger breaks off before the end.

    `broken` says that the recording broke down as a whole, and why.
    """

    program: str
    argv: tuple[str, ...]
    kind: str
    how: str
    exit_code: int | None
    whygrad: str
    python: str
    platform: str
    engine: str
    engine_version: str
    numpy: str
    threads: int | None
    deterministic: bool | None
    default_dtype: str
    device: str
    seeds: tuple[Seed, ...]
    settings_changed: tuple[str, ...]
    depth: str
    torn: str
    broken: str = ""


# --- the grad buffers -----------------------------------------------------------------------------


class Term(Part, frozen=True):
    """One term of a gradient: what came through `operation` at `place`; `module` is the module that ran it, if any.

    Several terms through the same place (a weight used in every turn of a loop) are one part: `times` counts
    them, `value` and `last` are the first and the last, `total` is their sum where every element was kept.
    """

    value: Value
    last: Value
    total: Value | None
    operation: str
    place: Place | None
    times: int = 1
    module: str = ""


class Change(Part, frozen=True):
    """One event in the life of a grad buffer.

    `kind` is `set` (a backward wrote into an empty buffer), `added` (a backward added to what was there), `returned`
    (`autograd.grad` gave the gradient away and left the buffer alone: `after` is what it gave), `reset`, `changed` or
    `held` (it was there when recording began). `cause` says it in words: `backward #1`, `SGD.zero_grad`, `w.grad =
    None`. `since` is the oldest backward whose gradient was still in the buffer when this one added to it; None where
    nothing but zeros was there. `hooked`: a hook of the user's replaced what arrived.
    """

    seq: int
    step: int
    thread: int
    kind: str
    cause: str
    place: Place | None
    before: Value | None
    after: Value | None
    terms: tuple[Term, ...] = ()
    backward: BackwardId | None = None
    since: BackwardId | None = None
    hooked: bool = False


class Spread(Part, frozen=True):
    """The norms of a gradient over many writes: the first, the last, and the two ends. None: not known."""

    first: Norm | None = None
    last: Norm | None = None
    low: Norm | None = None
    high: Norm | None = None


class Repeat(Part, frozen=True):
    """The same entries, at the same places and in the same order, `times` over: a loop.

    `first` and `last` are the entries of the first and of the last turn, pairwise alike. `norms` are those of
    what each turn's last backward left in the buffer; `changes` counts all changes of all turns. A loop inside
    a loop need not run equally often in every turn: then `least` and `most` differ, and `times` is that of the
    turn it is shown in.
    """

    first: tuple[Entry, ...]
    last: tuple[Entry, ...]
    times: int
    least: int
    most: int
    changes: int
    norms: Spread


class Light(Part, frozen=True):
    """Steps that were recorded lightly: counts, and the norms of the `sampled` steps that were looked at."""

    seq: int
    first_step: int
    last_step: int
    writes: int
    resets: int
    sampled: int
    norms: Spread


class Omitted(Part, frozen=True):
    """Changes in the middle of a long life that never settles into a repetition: counted, not kept."""

    changes: int
    writes: int
    norms: Spread


Entry: TypeAlias = Change | Repeat | Light | Omitted


class Tally(Part, frozen=True):
    """All changes of one kind at one place by one cause, counted; `cause` is without the number of the pass.

    `since` is the oldest backward that they added to, if it is the same for all of them; `first` and `last` are
    the first and the last of them.
    """

    kind: str
    cause: str
    place: Place | None
    times: int
    since: BackwardId | None
    first: Change
    last: Change


class Gap(Part, frozen=True):
    """States of a buffer that are not spelled out, between two that are."""

    states: int


class Buffer(Part, frozen=True):
    """A tensor's grad buffer and its life, in order.

    `title` is the tensor's name or a description. `siblings` counts further tensors of this name made at the
    same place (a leaf made anew in every turn of a loop), whose lives are not kept. `silent` says why the
    buffer never held a gradient, as far as the ledger shows; it is empty where one arrived.

    `entries` tell the life in order, with loops folded. `tallies` count the same changes by kind and place, in
    the order in which each first happened; the steps that were recorded lightly are in `light`, all in one.
    `writes` and `resets` include them. `norms` are of what the buffer held just before each reset and at the
    end, or after every write where there was no reset.
    """

    tensor: TensorId
    title: str
    names: tuple[str, ...]
    leaf: bool
    requires_grad: bool
    origin: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    made: Place | None
    value: Value | None
    entries: tuple[Entry, ...]
    tallies: tuple[Tally, ...]
    light: Light | None
    norms: Spread
    writes: int
    resets: int
    siblings: int = 0
    silent: str = ""

    def states(self) -> tuple[Value | Gap | None, ...]:
        """The values that the buffer went through, first to last: `None -> 20 -> 40 -> None -> 20`."""
        states: list[Value | Gap | None] = []
        for entry in self.entries:
            _add_states(states, entry)
        return tuple(states)


def _add_states(states: list[Value | Gap | None], entry: Entry) -> None:
    if isinstance(entry, Repeat):
        for inner in entry.first:
            _add_states(states, inner)
        if (between := entry.changes - _changes(entry.first) - _changes(entry.last)) > 0:
            _add_gap(states, between)
        for inner in entry.last:
            _add_states(states, inner)
    elif isinstance(entry, Light):
        _add_gap(states, entry.writes + entry.resets)
    elif isinstance(entry, Omitted):
        _add_gap(states, entry.changes)
    elif entry.kind != "returned":
        if not states:
            states.append(entry.before)
        if entry.kind == "held":
            return
        if entry.after is not None or not states or states[-1] is not None:
            states.append(entry.after)


def _changes(entries: tuple[Entry, ...]) -> int:
    return sum(entry.changes if isinstance(entry, Repeat | Omitted) else 1 for entry in entries)


def _add_gap(states: list[Value | Gap | None], count: int) -> None:
    before = states.pop() if states and isinstance(states[-1], Gap) else None
    states.append(Gap(states=count + (before.states if isinstance(before, Gap) else 0)))


class NonFinite(Part, frozen=True):
    """The first time that a gradient of this buffer held NaN or infinity."""

    seq: int
    step: int
    title: str
    cause: str
    place: Place | None
    value: Value
    term: Term | None


# --- backward passes ------------------------------------------------------------------------------


class Pass(Part, frozen=True):
    """Backward passes begun at one place; `first` and `last` are their numbers.

    `roots` counts what each pass starts from; `root` names the first. `not_finite` counts those whose root was NaN or
    infinite.

    Where a pass was stopped, `error` says by what, `blamed` is the place that made the node that stopped it,
    `freed_by` the earlier pass (and `freed_at` its place) that had released the node's saved tensors, and
    `written` the tensor that was written in place at `written_at` after the node had saved it.
    """

    seq: int
    first: BackwardId
    last: BackwardId
    times: int
    call: str
    place: Place | None
    root: str
    roots: int
    root_first: Value | None
    root_last: Value | None
    gradient: Value | None
    retain_graph: bool
    create_graph: bool
    nodes: int
    leaves: int
    not_finite: int = 0
    error: str = ""
    blamed: Place | None = None
    blamed_name: str = ""
    freed_by: BackwardId | None = None
    freed_at: Place | None = None
    written: str = ""
    written_at: Place | None = None


class Loop(Part, frozen=True):
    """Steps that were recorded lightly and look alike; of several kinds of backward passes one, begun at `place`."""

    seq: int
    first_step: int
    last_step: int
    backwards: int
    optimizer_steps: int
    loss: Spread
    place: Place | None = None


# --- modules and modes ----------------------------------------------------------------------------


class Size(Part, frozen=True):
    """The shape of a tensor that went into or came out of calls: per dimension the least and the greatest."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    dtype: str


class Call(Part, frozen=True):
    """Calls of one module from one place in one mode. `first` and `last` are the values that came out."""

    seq: int
    module: str
    kind: str
    config: str
    place: Place | None
    training: bool
    grad_mode: str
    inputs: tuple[Size, ...]
    outputs: tuple[Size, ...]
    first: Value | None
    last: Value | None
    depth: int
    error: str
    broken: str
    times: int = 1


class ModeSwitch(Part, frozen=True):
    """`train()` or `eval()` called at one place, and the modules whose flag it changed the first time.

    `effective` counts the calls that changed a flag.
    """

    seq: int
    module: str
    call: str
    training: bool
    place: Place | None
    changed: tuple[str, ...]
    times: int = 1
    effective: int = 0


class GradMode(Part, frozen=True):
    """A grad mode entered at one place, by `no_grad`, `enable_grad`, `inference_mode` or `set_grad_enabled`."""

    seq: int
    by: str
    mode: str
    place: Place | None
    times: int = 1


ModuleEntry: TypeAlias = Call | ModeSwitch


# --- checks, exceptions, warnings -----------------------------------------------------------------


class Assertion(Part, frozen=True):
    """An `assert` at one place. `sides` are the two sides' texts and values when it last failed, or last held."""

    seq: int
    code: str
    place: Place | None
    held: int
    failed: int
    sides: tuple[tuple[str, str], ...]


class Failure(Part, frozen=True):
    """An exception; `caught` is the handler's place, None where nothing caught it.

    What the ledger knows of its cause: the failed `assertion`, the `broken` contract of a module (`module` is
    its path), or the backward pass that was `stopped`.
    """

    seq: int
    kind: str
    text: str
    place: Place | None
    caught: Place | None
    times: int = 1
    assertion: Assertion | None = None
    module: str = ""
    broken: str = ""
    stopped: Pass | None = None


class ShownWarning(Part, frozen=True):
    """A Python warning that the program was shown."""

    seq: int
    kind: str
    text: str
    place: Place | None
    times: int = 1


# --- graphs, data, optimizers ---------------------------------------------------------------------


class Cut(Part, frozen=True):
    """Where history was lost: `by` (`detach`, `item`, `no_grad`, ...) took it from the tensor `of`.

    `leaves_torch` is true where a Python or NumPy value came out (`item`, `tolist`, `numpy`).
    """

    seq: int
    by: str
    of: str
    result: str
    place: Place | None
    leaves_torch: bool
    times: int = 1


BORN = "made so"
"""`Switched.by` of a parameter that did not require grad from the start."""


class Switched(Part, frozen=True):
    """`requires_grad` of one or more tensors was switched at one place; `titles` are the first few of them."""

    seq: int
    to: bool
    by: str
    titles: tuple[str, ...]
    place: Place | None
    times: int = 1


class DataWrite(Part, frozen=True):
    """A tensor's data was written in place at one place; `hidden` where the version counter does not show it.

    `after` is the value after the last write, if small.
    """

    seq: int
    title: str
    by: str
    place: Place | None
    version_before: int
    version: int
    hidden: bool
    after: Value | None = None
    times: int = 1


class Moved(Part, frozen=True):
    """What an optimizer did to one parameter over its recorded steps.

    `change` and `size` are the norms of the update and of the parameter, first and last; `after` is its value
    after the last step, if small. `unmoved` counts the steps that had a gradient and changed not a bit, in
    `zero_grad` of which the gradient was all zeros; `skipped` counts those without one, for the reason `why`.
    """

    tensor: TensorId
    title: str
    steps: int
    first_change: Norm | None
    last_change: Norm | None
    first_size: Norm | None
    last_size: Norm | None
    after: Value | None
    unmoved: int
    zero_grad: int
    skipped: int
    why: str


class Optimizing(Part, frozen=True):
    """The recorded steps of one optimizer taken at one place. `steps` counts them."""

    seq: int
    name: str
    kind: str
    place: Place | None
    steps: int
    lr_first: tuple[float, ...]
    lr_last: tuple[float, ...]
    moved: tuple[Moved, ...]


# --- what the ledger does not hold ----------------------------------------------------------------


class Remark(Part, frozen=True):
    """Something recorded only at its boundary, lightly, or not at all. `kind`: `noted`, `lost` or `depth`."""

    seq: int
    kind: str
    text: str
    place: Place | None
    step: int = 0
    times: int = 1


# --- the whole ------------------------------------------------------------------------------------


class Report(Part, frozen=True):
    """Everything that a report may show, in reading order."""

    run: Run
    failures: tuple[Failure, ...]
    nonfinite: tuple[NonFinite, ...]
    warnings: tuple[ShownWarning, ...]
    buffers: tuple[Buffer, ...]
    passes: tuple[Pass, ...]
    loops: tuple[Loop, ...]
    modules: tuple[ModuleEntry, ...]
    grad_modes: tuple[GradMode, ...]
    assertions: tuple[Assertion, ...]
    cuts: tuple[Cut, ...]
    switched: tuple[Switched, ...]
    writes: tuple[DataWrite, ...]
    optimizing: tuple[Optimizing, ...]
    remarks: tuple[Remark, ...]
    sources: tuple[SourceText, ...]
