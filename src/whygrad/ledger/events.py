"""The events of the ledger: what happened, in order, in words that belong to no engine.

Entities (`Site`, `Tensor`, `Node`, `Module`, `Optimizer`) are events too: each is written once, before
the first event that refers to it by id, so a ledger can be read as a stream and may be torn anywhere.
"""

from __future__ import annotations

from typing import Any, NewType, TypeAlias

import msgspec

from whygrad.ledger.values import Value

SiteId = NewType("SiteId", int)
TensorId = NewType("TensorId", int)
NodeId = NewType("NodeId", int)
ModuleId = NewType("ModuleId", int)
OptimizerId = NewType("OptimizerId", int)
BackwardId = NewType("BackwardId", int)


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", kw_only=True):
    """What every event has: its place in the order, the user's source it belongs to, when and where it ran.

    `seq` counts from 1. `site` is None where no line of the user's code was running. `step` counts
    optimizer steps from 1 (0: before the first one began). `thread` is 0 for the main thread.
    """

    seq: int
    site: SiteId | None = None
    step: int = 0
    thread: int = 0


# --- entities -------------------------------------------------------------------------------------


class Source(Event, frozen=True, tag="source"):
    """A file of the user's code as it was when it ran."""

    path: str
    sha256: str
    text: str


class Site(Event, frozen=True, tag="site"):
    """A place in the user's code: an expression or a statement. Lines from 1, columns (characters) from 0."""

    id: SiteId
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    code: str


class Tensor(Event, frozen=True, tag="tensor"):
    """A tensor that the ledger speaks of.

    `origin` says how it came to be: `created` (a constructor such as `torch.tensor` or a factory),
    `parameter` (an `nn.Parameter`), `buffer`, `result` (of an operation), `grad` (the buffer of a
    leaf, as the user's code read it) or `unknown` (first met elsewhere).
    `value` is its value when first seen, kept whole up to `INPUT_LIMIT` for what a derivation may replay.
    """

    id: TensorId
    shape: tuple[int, ...]
    dtype: str
    device: str
    leaf: bool
    requires_grad: bool
    origin: str
    value: Value | None = None


class Named(Event, frozen=True, tag="named"):
    """From here on the user's code can call the tensor `name` (`w`, `model.0.weight`, `batch["x"]`).

    `scope` is the function in which the name is valid (`<module>` for a global name). A tensor may get
    several names, and a name may pass from one tensor to another.
    """

    tensor: TensorId
    name: str
    scope: str


class Edge(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a node sends the gradient of one of its inputs: another node, or a leaf's grad buffer."""

    node: NodeId | None = None
    leaf: TensorId | None = None


class Saved(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor that a node keeps for its backward: the slot (`self`, `mat1`, ...), and its version when saved."""

    slot: str
    tensor: TensorId | None
    shape: tuple[int, ...]
    version: int | None = None


class Node(Event, frozen=True, tag="node"):
    """A node of the backward graph (a `grad_fn`), with the site of the expression that made it.

    `name` is PyTorch's own (`MulBackward0`); `module` is the innermost module whose call made it.
    """

    id: NodeId
    name: str
    edges: tuple[Edge, ...]
    saved: tuple[Saved, ...] = ()
    module: ModuleId | None = None


class Module(Event, frozen=True, tag="module"):
    """A module, by the path that the user's code can write (`model.0`), or by its class where it has none.

    It is written again when it gets another path (as a part of a module that is named later) or other parameters.
    `config` is how one of torch's own modules describes itself; `options` are the plain attributes of any: numbers,
    flags, texts and short tuples. `home` is the Python module of its class; `parent` the module that holds it.
    """

    id: ModuleId
    path: str
    kind: str
    parameters: tuple[tuple[str, TensorId], ...] = ()
    config: str = ""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    buffers: tuple[tuple[str, TensorId], ...] = ()
    home: str = ""
    parent: ModuleId | None = None


class Group(msgspec.Struct, frozen=True):
    """A parameter group: its tensors and its options (`lr`, `weight_decay`, ...; numbers and flags only)."""

    parameters: tuple[TensorId, ...]
    options: dict[str, Any]


class Optimizer(Event, frozen=True, tag="optimizer"):
    """An optimizer when it was built, or again when a parameter group was added."""

    id: OptimizerId
    kind: str
    groups: tuple[Group, ...]
    name: str = ""


# --- operations and graphs ------------------------------------------------------------------------


class Operand(msgspec.Struct, frozen=True, omit_defaults=True):
    """One input of an operation: a tensor, a constant (any JSON value), or an item that was not recorded.

    `keyword` names it when it was passed by name; `items` holds the members of a list or tuple.
    """

    tensor: TensorId | None = None
    constant: Any = msgspec.UNSET
    items: tuple[Operand, ...] | None = None
    keyword: str = ""
    code: str = ""

    @property
    def known(self) -> bool:
        """Whether a replay can rebuild it."""
        if self.items is not None:
            return all(item.known for item in self.items)
        return self.tensor is not None or self.constant is not msgspec.UNSET


class Operation(Event, frozen=True, tag="operation"):
    """An expression of the user's code that gave a tensor (or took a value out of one).

    `function` is the operation's plain name (`mul`, `pow`, `square`, `torch.nn.functional.mse_loss`, or
    `call` for a module or a function of the user's own). `outputs` are the resulting tensors, in order.
    `node` is the grad_fn of the first output; when there is none, `no_node` says why: `no input requires grad`,
    `grad mode off`, `inference mode`, `integer dtype`, `cut`. `cut` names what took the history away from an
    input that had one: `detach`, `data`, `item`, `numpy`, `tolist`, `torch.tensor`, `comparison`, `argmax`,
    `integer dtype`, `no_grad`, `inference_mode`. `in_place` is true where an input was written. `value` is the first
    output's, if that is small or not finite.
    """

    function: str
    inputs: tuple[Operand, ...]
    outputs: tuple[TensorId, ...] = ()
    node: NodeId | None = None
    no_node: str = ""
    cut: str = ""
    in_place: bool = False
    value: Value | None = None


class BackwardBegan(Event, frozen=True, tag="backward began"):
    """A backward pass is about to run: `call` is `backward` or `autograd.grad`.

    `nodes` counts the nodes that it can reach, `leaves` the leaves whose buffers it will write.
    `root_nodes` are the grad_fns of the roots. `partial` is true where the graph was too large to be walked whole:
    there are more nodes, and perhaps more leaves.
    """

    id: BackwardId
    call: str
    roots: tuple[TensorId, ...]
    root_nodes: tuple[NodeId | None, ...]
    root_value: Value | None = None
    gradient: Value | None = None
    retain_graph: bool = False
    create_graph: bool = False
    inputs: tuple[TensorId, ...] | None = None
    nodes: int = 0
    leaves: tuple[TensorId, ...] = ()
    partial: bool = False


class BackwardEnded(Event, frozen=True, tag="backward ended"):
    """The pass is over: `freed` are the nodes whose saved tensors it released, `error` what stopped it.

    `blamed` is the node that raised, where that is known; `freed_by` the earlier pass that had released it.
    `written_by` is the site that wrote in place into a tensor that `blamed` had saved.
    """

    id: BackwardId
    freed: tuple[NodeId, ...] = ()
    error: str = ""
    blamed: NodeId | None = None
    freed_by: BackwardId | None = None
    written_by: SiteId | None = None
    written: TensorId | None = None


class NotFinite(Event, frozen=True, tag="not finite"):
    """The loss that a backward starts from is not finite: where the first value that is not, in the order of the
    forward, came from. It is read off what the nodes had saved, so it is known although nobody looked at the forward.

    `node` made it; or `tensor`, a leaf or data, held it before any node. `value` is the tensor that held it, if a node
    had saved it. `certain` is false where `node` did not keep all its operands, so that one of them may have held it.
    """

    backward: BackwardId
    node: NodeId | None = None
    tensor: TensorId | None = None
    value: Value | None = None
    certain: bool = False


# --- the grad buffer ------------------------------------------------------------------------------


class Contribution(msgspec.Struct, frozen=True, omit_defaults=True):
    """One term of a gradient: what came through `node`, made at `site`, by `operation` (its plain name)."""

    value: Value
    node: NodeId | None = None
    site: SiteId | None = None
    operation: str = ""


class GradWritten(Event, frozen=True, tag="grad written"):
    """A backward pass wrote `.grad`: set it (`before` None) or added into it. `after` = `before` + the terms.

    `hooked` is true where a hook of the user's replaced what arrived before it was written. `partial` is true where
    there may be more contributions, since the graph was too large to be walked whole.
    """

    tensor: TensorId
    backward: BackwardId
    before: Value | None
    contributions: tuple[Contribution, ...]
    after: Value
    hooked: bool = False
    partial: bool = False


class GradReturned(Event, frozen=True, tag="grad returned"):
    """`autograd.grad` returned a gradient for `tensor` and left its buffer alone. None: not reached."""

    tensor: TensorId
    backward: BackwardId
    contributions: tuple[Contribution, ...]
    value: Value | None


class GradReset(Event, frozen=True, tag="grad reset"):
    """`.grad` was set to None (`to` = `none`) or filled with zeros (`zero`), by `by` (`SGD.zero_grad`, `= None`)."""

    tensor: TensorId
    to: str
    by: str
    before: Value | None


HELD = "held when recording began"
"""`GradChanged.by` for what a buffer held already: recording began in the middle of the program."""


class GradChanged(Event, frozen=True, tag="grad changed"):
    """`.grad` was changed by something else than a backward pass or a reset.

    `by` is `clip_grad_norm_`, `assignment`, an in-place method such as `mul_`, or `unseen` when only the
    version counter betrayed it (then `site` is where it was noticed). It is `HELD` for what was there already.
    """

    tensor: TensorId
    by: str
    before: Value | None
    after: Value


# --- data, modes, modules, optimizers -------------------------------------------------------------


class DataChanged(Event, frozen=True, tag="data changed"):
    """A tensor's data was written in place by `by`; its version counter went from `version_before` to `version`.

    `hidden` is true for writes through `.data`, which the version counter does not show. `after` is the value
    now, if small.
    """

    tensor: TensorId
    by: str
    version_before: int
    version: int
    hidden: bool = False
    after: Value | None = None


class Converted(Event, frozen=True, tag="converted"):
    """A parameter got another dtype or device in place, by `by` (`Linear.to`)."""

    tensor: TensorId
    by: str
    dtype: str
    device: str


class StateMoved(Event, frozen=True, tag="state moved"):
    """`state_dict()` was called on a module or an optimizer (what it gives shares memory with the tensors), or
    `load_state_dict()` wrote one back. `call` is the method's name."""

    call: str
    module: ModuleId | None = None
    optimizer: OptimizerId | None = None


class RequiresGradChanged(Event, frozen=True, tag="requires_grad changed"):
    """`requires_grad` of a tensor was switched."""

    tensor: TensorId
    to: bool
    by: str


class ModeChanged(Event, frozen=True, tag="mode changed"):
    """`train()` or `eval()` was called on `module`; `changed` lists (path, flag before) of those it changed."""

    module: ModuleId
    call: str
    training: bool
    changed: tuple[tuple[str, bool], ...]


class GradModeChanged(Event, frozen=True, tag="grad mode changed"):
    """The user's code entered or left `no_grad`, `enable_grad`, `inference_mode` or `set_grad_enabled`.

    `mode` is the grad mode from here on: `on`, `off` or `inference`.
    """

    by: str
    entered: bool
    mode: str


class ModuleCalled(Event, frozen=True, tag="module called"):
    """A module's forward ran. `depth` is 0 for a call from the user's own top level.

    `inputs` and `outputs` describe tensors by id and shape. When the call raised, `error` holds the type and
    text, and `broken` the contract that its input did not meet, if that is what happened.
    """

    module: ModuleId
    training: bool
    grad_mode: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...] = ()
    value: Value | None = None
    depth: int = 0
    error: str = ""
    broken: str = ""


class Shape(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor that went into or came out of a call."""

    tensor: TensorId | None
    shape: tuple[int, ...]
    dtype: str


class Update(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a step did to one parameter: the gradient that it used, and the norms of the change and of the data.

    Norms are None where they were not measured. `changed` is False where not a bit of the parameter moved;
    `after` is the parameter's value now, if small.
    """

    tensor: TensorId
    grad: Value | None
    change: float | str | None = None
    size: float | str | None = None
    changed: bool = True
    after: Value | None = None


class OptimizerStepped(Event, frozen=True, tag="optimizer stepped"):
    """An optimizer stepped: what moved, and which parameters it skipped since their grad was None."""

    optimizer: OptimizerId
    updates: tuple[Update, ...]
    skipped: tuple[TensorId, ...] = ()
    lr: tuple[float, ...] = ()


class SchedulerStepped(Event, frozen=True, tag="scheduler stepped"):
    """A learning rate scheduler of class `kind` stepped: the rates of the optimizer's groups before and after.

    `built` is true for the step that it makes while it is built. A scheduler's first steps are written, and those in
    steps that are recorded fully.
    """

    kind: str
    optimizer: OptimizerId | None
    before: tuple[float, ...]
    after: tuple[float, ...]
    built: bool = False


class Clipped(Event, frozen=True, tag="clipped"):
    """`clip_grad_norm_` or `clip_grad_value_` (`by`) was given `parameters` tensors (None: nobody knows how many).

    `with_grad` of them had a buffer. `limit` is what it was given to clip to; `norm` the total norm before that
    (of `clip_grad_norm_`).
    """

    by: str
    parameters: int | None
    with_grad: int
    limit: float | str | None = None
    norm: float | str | None = None


class LossScaled(Event, frozen=True, tag="loss scaled"):
    """A method of a `GradScaler` returned (`scale`, `unscale_`, `step` or `update`), and its `factor` afterwards."""

    call: str
    factor: float | str | None = None
    optimizer: OptimizerId | None = None
    enabled: bool = True


class AutocastChanged(Event, frozen=True, tag="autocast changed"):
    """The program entered or left a region of `autocast`."""

    entered: bool
    device: str
    dtype: str
    enabled: bool


# --- checks, exceptions, the run ------------------------------------------------------------------


class Check(Event, frozen=True, tag="check"):
    """An `assert`: its text, whether it held, and the values of its two sides (text, value as printed)."""

    code: str
    held: bool
    sides: tuple[tuple[str, str], ...] = ()


class Raised(Event, frozen=True, tag="raised"):
    """An exception. `site` is the user's line that raised or called; `caught` the handler's site, if caught."""

    kind: str
    text: str
    caught: SiteId | None = None


class Warned(Event, frozen=True, tag="warned"):
    """A Python warning that was shown."""

    kind: str
    text: str


class Seeded(Event, frozen=True, tag="seeded"):
    """A random generator was seeded: `torch`, `numpy` or `random`."""

    generator: str
    seed: str


class Noted(Event, frozen=True, tag="noted"):
    """Something that a reader should know about the run, such as a compiled function's boundary."""

    text: str


class DepthChanged(Event, frozen=True, tag="depth changed"):
    """Recording went to `full` or `light`, and why."""

    depth: str
    why: str


class BufferFold(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened to one grad buffer over folded steps.

    `writes` and `resets` count events. Norms are of the buffer just before the optimizer used it, taken in
    the `sampled` steps that were looked at. Where a leaf is made anew in each step, `others` more leaves stood in its
    place one after another in these steps, with `others_writes` writes in all: none of them is among `writes`.
    """

    tensor: TensorId
    writes: int
    resets: int
    sampled: int = 0
    norm_first: float | str | None = None
    norm_last: float | str | None = None
    norm_low: float | str | None = None
    norm_high: float | str | None = None
    others: int = 0
    others_writes: int = 0


class PassFold(msgspec.Struct, frozen=True, omit_defaults=True):
    """The folded passes that are alike: from one line, of the same modules. How many, and the first, last, lowest and
    highest of their losses."""

    site: SiteId | None
    backwards: int
    loss_first: float | str | None = None
    loss_last: float | str | None = None
    loss_low: float | str | None = None
    loss_high: float | str | None = None


class StepsFolded(Event, frozen=True, tag="steps folded"):
    """Steps `first` to `last` were recorded lightly and look alike: one event instead of one a step.

    The losses are those of the passes that ran first in each step; where there are several kinds of passes, from
    several lines or of several nets, `passes` has each kind, the first one leading.
    """

    first: int
    last: int
    backwards: int
    optimizer_steps: int
    buffers: tuple[BufferFold, ...]
    loss_first: float | str | None = None
    loss_last: float | str | None = None
    loss_low: float | str | None = None
    loss_high: float | str | None = None
    passes: tuple[PassFold, ...] = ()


EVERYTHING = "everything"
"""How `Lost.what` begins where the recording broke down as a whole."""


class Lost(Event, frozen=True, tag="recording lost"):
    """Something could not be recorded, and why. The program went on.

    `what` begins with `EVERYTHING` where nothing of the engine's could be recorded at all.
    """

    what: str
    why: str


class Environment(Event, frozen=True, tag="environment"):
    """The engine as it was found when the program imported it, and again at the end if a setting changed."""

    engine: str
    version: str
    numpy: str
    threads: int
    deterministic: bool
    default_dtype: str
    device: str = "cpu"


class Ended(Event, frozen=True, tag="ended"):
    """The program is over: `how` is `returned`, `exit`, `exception`, `interrupted` or `terminated`."""

    how: str
    exit_code: int


AnyEvent: TypeAlias = (
    Source | Site | Tensor | Named | Node | Module | Optimizer
    | Operation | BackwardBegan | BackwardEnded | NotFinite
    | GradWritten | GradReturned | GradReset | GradChanged
    | DataChanged | Converted | StateMoved | RequiresGradChanged | ModeChanged | GradModeChanged | ModuleCalled
    | OptimizerStepped | SchedulerStepped | Clipped | LossScaled | AutocastChanged
    | Environment | Check | Raised | Warned | Seeded | Noted | DepthChanged | StepsFolded | Lost | Ended
)  # fmt: skip


class Header(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The first line of a ledger: what a reader needs in order to trust the rest."""

    whygrad: str
    schema: int
    program: str
    argv: tuple[str, ...] = ()
    kind: str = "script"
    engine: str = ""
    python: str = ""
    platform: str = ""
    depth: str = "auto"
    rank: int = 0
