"""The types of the report for machines: what `whygrad run --json` writes. Their docstrings are the published schema's.

Fields are added without a new `SCHEMA`; none is removed or given another meaning with the same one.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from whygrad.ledger.values import Number

SCHEMA = 1
"""The version of this format."""

Elements: TypeAlias = Number | list[Any] | None
"""A small tensor's elements: a number, or nested lists; NaN and infinities are the strings nan, inf and -inf."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's code and the expression on it; all null where none was running."""

    path: str | None
    line: int | None
    expression: str | None


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """The program. `ended` is returned, exit, exception, interrupted or terminated; empty if the ledger breaks off."""

    path: str
    kind: str
    argv: tuple[str, ...]
    ended: str
    exit_code: int | None


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """What computed the gradients."""

    name: str
    version: str


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """A random generator that the program seeded: torch, numpy or random; and its last seed."""

    generator: str
    seed: str


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What the run rested on. `settings_changed` is what the program changed of it while it ran."""

    whygrad: str
    python: str
    platform: str
    numpy: str
    threads: int | None
    deterministic: bool | None
    default_dtype: str
    device: str
    seeds: tuple[Seed, ...]
    settings_changed: tuple[str, ...]
    depth: str


class Contribution(Entry, frozen=True):
    """One term of a gradient, and the expression that it came through. The `value` of a large tensor is null."""

    operation: str
    value: Elements
    norm: Number | None


class Change(Entry, frozen=True):
    """One event in the life of a grad buffer.

    `set`: a backward wrote into an empty buffer; `added`: a backward added to what was there; `returned`:
    autograd.grad gave the gradient away and left the buffer alone; `reset` and `changed`: by `by`.

    `before` and `value` are the buffer before and after it (for `returned`, `value` is what was given away). A
    small tensor is listed element by element, a large one is null there; `before_norm` and `norm` are the
    Euclidean norms of both, and null where the buffer was None. `nan` and `inf` count what is not finite in it.
    """

    event: Literal["set", "added", "returned", "reset", "changed"]
    step: int
    backward: int | None
    by: str
    before: Elements
    before_norm: Number | None
    value: Elements
    norm: Number | None
    nan: int
    inf: int
    hooked: bool
    contributions: tuple[Contribution, ...]


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that were recorded lightly: how often the buffer was written and reset, and norms of sampled steps."""

    first_step: int
    last_step: int
    writes: int
    resets: int
    sampled: int
    norm_first: Number | None
    norm_last: Number | None
    norm_low: Number | None
    norm_high: Number | None


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """What the gradient of one backward should be, by a derivation that does not rest on autograd.

    `status` is agrees or disagrees. All elements are in `expected` and `observed` in row-major order, null where
    only some were compared; `difference` and `tolerance` are those of the worst element. `text` is for people.
    """

    backward: int
    status: str
    expected: tuple[Number, ...] | None
    observed: tuple[Number, ...] | None
    difference: Number | None
    tolerance: Number | None
    text: str


class Buffer(Entry, frozen=True):
    """A tensor's grad buffer, and where the tensor was made.

    `history` lists its events in order. Of a long life the middle is left out, and `omitted` counts it; steps
    that were recorded lightly are in `folded`. `silent` says why no gradient ever arrived. `siblings` counts
    further tensors of the same name, made at the same line, that are not listed. `derivations` are those that
    the report was asked to make.
    """

    name: str
    names: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    device: str
    leaf: bool
    requires_grad: bool
    silent: str
    siblings: int
    history: tuple[Change, ...]
    omitted: int
    folded: tuple[Folded, ...]
    derivations: tuple[Derived, ...]


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that went into or came out of calls. Where the sizes of calls differed, `least` and `most` do."""

    least: tuple[int, ...]
    most: tuple[int, ...]
    dtype: str


class ModuleCall(Entry, frozen=True):
    """Calls of one module from one line in one mode; `value` is what the last one gave.

    `broken` is the contract of the module that its input did not meet, `error` what was raised.
    """

    module: str
    kind: str
    depth: int
    training: bool
    grad_mode: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    value: Elements
    error: str
    broken: str
    times: int


class Mode(Entry, frozen=True):
    """A line that switched a mode: the training flag of modules (`changed`), or the grad mode.

    `call` is train, eval, or what set the grad mode (such as no_grad). `mode` is what held from there: train or
    eval; on, off or inference.
    """

    call: str
    mode: str
    module: str
    changed: tuple[str, ...]
    times: int


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison and its value, as Python prints it."""

    expression: str
    value: str


class Check(Entry, frozen=True):
    """An assert: how often it held and how often it failed; `caught` of the failures were caught by the program."""

    held: int
    failed: int
    caught: int
    sides: tuple[Side, ...]


class Raised(Entry, frozen=True):
    """An exception. `caught` is the line of the handler, null where nothing caught it.

    Its cause, where the ledger knows it: `broken` is the contract of `module` that was not met, `freed_by` the
    number of the backward that had freed the graph, `written_line` the line that wrote into a saved tensor.
    """

    kind: str
    text: str
    caught: int | None
    times: int
    module: str
    broken: str
    freed_by: int | None
    written_line: int | None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that the rule `code` found: on which line, what happened in this run, why, and the change that ends it.

    `fix` says whether the change was tried: `verified`, or `suggested` (null: there is none).
    """

    code: str
    slug: str
    severity: str
    path: str
    line: int
    title: str
    fix: Literal["suggested", "verified"] | None
    happened: tuple[str, ...] = ()
    why: str = ""
    change: str = ""
    evidence: tuple[int, ...] = ()


class Remark(Entry, frozen=True):
    """What was not recorded (`lost`), was recorded at its boundary only (`noted`), or lightly (`depth`)."""

    kind: str
    text: str
    times: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded run of a program, and what happened to every gradient in it."""

    schema: int = SCHEMA
    program: Program
    engine: Engine
    environment: Environment
    buffers: tuple[Buffer, ...]
    modules: tuple[ModuleCall, ...]
    modes: tuple[Mode, ...]
    checks: tuple[Check, ...]
    raised: tuple[Raised, ...]
    findings: tuple[Finding, ...] = ()
    lost: tuple[Remark, ...]
