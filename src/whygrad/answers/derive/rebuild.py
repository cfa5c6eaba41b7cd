"""From the ledger to a graph that can be computed again: what led from one tensor to a backward's roots.

Whatever is not known for certain ends in `NotDerivedError`, with the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from whygrad.answers.derive import modules
from whygrad.answers.derive.arrays import array_of, decoded
from whygrad.answers.derive.budget import STEP_WORK, Budget
from whygrad.answers.derive.graph import Graph, Missing, NotDerivedError, Ref, Result, Root, Slot, Step
from whygrad.answers.derive.history import History, Maker, Version
from whygrad.answers.derive.operations import find, plain_name, unknown
from whygrad.answers.derive.operations.table import Array
from whygrad.answers.derive.spelling import spelled
from whygrad.ledger import Ledger
from whygrad.ledger.events import BackwardBegan, ModuleCalled, Operand, Operation, TensorId

STEP_LIMIT = 4000
"""A computation of more operations is not rebuilt."""

SOLVABLE = frozenset({"add", "sub", "mul", "div"})
"""Operations of which a missing number follows from the other operand and the result."""

IGNORED = frozenset(
    {
        "dtype",
        "device",
        "layout",
        "memory_format",
        "non_blocking",
        "pin_memory",
        "requires_grad",
        "copy",
        "return_indices",
    }
)
"""Keyword arguments that change no value (the dtype is taken from the recorded result)."""

LEGACY = frozenset({"size_average", "reduce", "out"})
"""Keyword arguments that change nothing as long as they are None."""

RESHAPING = frozenset(
    {"view", "reshape", "view_as", "reshape_as", "flatten", "ravel", "unflatten", "squeeze", "unsqueeze"}
)
EXPANDING = frozenset({"expand", "expand_as", "broadcast_to"})
"""Operations of which the shape of the recorded result says everything."""

CONVERTING = frozenset({
    "to", "type", "type_as", "float", "double", "half", "bfloat16", "long", "int", "bool", "cpu", "cuda", "contiguous",
    "clone", "detach", "requires_grad_",
})  # fmt: skip
"""Operations that give their first operand again, in the dtype of the recorded result."""

GRADIENT = "autograd.grad"

BUILTINS = {"sum(": "builtin sum", "abs(": "abs", "pow(": "pow"}
"""Python's own functions, which are recorded as plain calls."""


class Key(msgspec.Struct, frozen=True):
    """One value of one tensor: the version with this number."""

    tensor: TensorId
    number: int


def rebuild(history: History, ledger: Ledger, began: BackwardBegan, target: TensorId, budget: Budget) -> Graph:
    """The graph from `target` to the roots of a backward.

    Raises NotDerivedError where a part of it is not known.
    """
    return _Rebuilder(history, ledger, began, target, budget).graph()


class _Rebuilder:
    def __init__(
        self, history: History, ledger: Ledger, began: BackwardBegan, target: TensorId, budget: Budget
    ) -> None:
        self.history = history
        self.ledger = ledger
        self.began = began
        self.target = target
        self.budget = budget
        self.slots: dict[Key, Slot] = {}
        self.tensors: list[TensorId] = []
        self.given: dict[Slot, Array] = {}
        self.labels: dict[Slot, str] = {}
        self.steps: list[Step] = []
        self.targets: list[Slot] = []
        self.doubt = ""

    def graph(self) -> Graph:
        roots = self.roots()
        if not self.targets:
            raise NotDerivedError(f"nothing recorded leads from {self.name(self.target)} to the root of the backward")
        root = self.latest(self.began.roots[0], self.began.seq)
        site = self.version(root).site
        return Graph(
            self.given,
            tuple(self.steps),
            tuple(self.targets),
            roots,
            tuple(self.tensors),
            self.labels,
            self.ledger.where(site),
            self.doubt,
        )

    def roots(self) -> tuple[Root, ...]:
        began = self.began
        if not began.roots:
            raise NotDerivedError("the root of the backward was not recorded")
        weight: Array | None = None
        if began.gradient is not None:
            weight = array_of(began.gradient)
            if weight is None:
                raise NotDerivedError("the gradient argument of the backward was too large to be kept")
        elif len(began.roots) == 1 and (known := self.history.tensors.get(began.roots[0])) is not None:
            if known.shape not in ((), (1,)) and any(size != 1 for size in known.shape):
                raise NotDerivedError("the gradient argument of the backward was not recorded")
        else:
            self.doubt = "the gradient arguments of several roots were not recorded"
        keys = [self.latest(root, began.seq) for root in began.roots]
        for key in keys:
            self.build(key)
        return tuple(Root(self.slots[key], weight) for key in keys)

    # --- one value after the other --------------------------------------------------------------------

    def build(self, wanted: Key) -> None:
        """Make the steps that lead to a value, those of its operands first."""
        stack: list[tuple[Key, Iterator[Key] | None]] = [(wanted, None)]
        while stack:
            key, rest = stack.pop()
            if key in self.slots:
                continue
            if rest is None:
                rest = iter(self.needs(key))
            following = next((needed for needed in rest if needed not in self.slots), None)
            if following is None:
                self.finish(key)
                continue
            stack.append((key, rest))
            stack.append((following, None))
            if len(stack) + len(self.steps) > STEP_LIMIT:
                raise NotDerivedError(f"more than {STEP_LIMIT} operations lead to the root")

    def needs(self, key: Key) -> list[Key]:
        if self.fixed(key) is not None:
            return []
        version = self.version(key)
        if version.maker is None:
            self.refuse(key, version)
        return [self.latest(tensor, version.seq) for tensor in self.operands(version)]

    def finish(self, key: Key) -> None:
        """Everything that the value needs is there: give it its slot."""
        value = self.fixed(key)
        self.budget.spend(STEP_WORK)
        if value is not None:
            slot = self.slot(key)
            self.given[slot] = value
            self.label(slot, self.version(key).maker)
        else:
            self.step(key)

    def slot(self, key: Key) -> Slot:
        slot = self.slots[key] = Slot(len(self.tensors))
        self.tensors.append(key.tensor)
        if self.is_target(key):
            self.targets.append(slot)
        return slot

    def is_target(self, key: Key) -> bool:
        """A leaf is itself in all its versions; of a result, the last one is what a gradient is asked for."""
        if key.tensor != self.target:
            return False
        return self.history.tensors[key.tensor].leaf or key == self.latest(key.tensor, self.began.seq)

    def fixed(self, key: Key) -> Array | None:
        """The recorded value of what has no steps of its own: leaves, constants and cuts, kept whole."""
        version = self.version(key)
        tensor = self.history.tensors[key.tensor]
        if version.lost or (version.maker is not None and self.flows(key)):
            return None
        if version.maker is None and tensor.requires_grad and not tensor.leaf and key.tensor != self.target:
            return None
        return array_of(version.value)

    def flows(self, key: Key) -> bool:
        """Whether autograd sends a gradient back through what made this value."""
        version = self.version(key)
        maker = version.maker
        tensor = self.history.tensors[key.tensor]
        if isinstance(maker, Operation):
            if maker.cut or maker.no_node:
                return False
            if maker.in_place or version.position == 0:
                return maker.node is not None or (tensor.requires_grad and not tensor.leaf)
        return tensor.requires_grad and not tensor.leaf

    def refuse(self, key: Key, version: Version) -> None:
        said = self.ledger.describe(key.tensor)
        if version.lost:
            where = f" ({self.ledger.where(version.site)})" if version.site is not None else ""
            raise NotDerivedError(f"the value of {self.name(key.tensor)} is not known: {version.lost}{where}")
        tensor = self.history.tensors[key.tensor]
        if tensor.requires_grad and not tensor.leaf:
            raise NotDerivedError(f"how {said} was computed was not recorded")
        raise NotDerivedError(f"the value of {said} was not kept")

    # --- steps ----------------------------------------------------------------------------------------

    def operands(self, version: Version) -> list[TensorId]:
        """The tensors that a maker used."""
        maker = version.maker
        if isinstance(maker, Operation):
            written = maker.outputs[:1] if maker.in_place else ()
            return [*_tensors_of(maker.inputs), *written]
        assert isinstance(maker, ModuleCalled)
        module = self.ledger.module(maker.module)
        inputs = [shape.tensor for shape in maker.inputs if shape.tensor is not None]
        return inputs + ([tensor for _, tensor in module.parameters] if module is not None else [])

    def step(self, key: Key) -> None:
        version = self.version(key)
        maker = version.maker
        if isinstance(maker, Operation):
            self.operation(maker)
        else:
            assert isinstance(maker, ModuleCalled)
            self.module(maker)

    def operation(self, maker: Operation) -> None:
        site = self.ledger.site(maker.site)
        code, where = (site.code if site is not None else ""), self.ledger.where(maker.site)
        name = plain_name(maker.function)
        if name == "call":
            name = next((known for begin, known in BUILTINS.items() if code.startswith(begin)), name)
        if name == "call":
            raise NotDerivedError(f"what `{code}` ({where}) computes inside was not recorded")
        results = self.results(maker, maker.outputs)
        arguments: tuple[Any, ...]
        keywords: dict[str, Any]
        given = maker.inputs[0].tensor if maker.inputs else None
        if given is not None and name in RESHAPING | EXPANDING | CONVERTING:
            arguments, keywords = (self.reference(given, maker.seq),), {}
        else:
            arguments, keywords = self.arguments(maker, f"`{code or name}` ({where})")
        function = None if name == GRADIENT else find(name) or unknown(name)
        self.add(Step(name, function, arguments, keywords, results, code, where, maker.site), maker.seq)

    def add(self, step: Step, used: int) -> None:
        """Take a step that ran at event `used`; what its result's shape says for certain is taken from there."""
        result = step.results[0] if step.results else None
        if step.name in RESHAPING | EXPANDING and result is not None:
            name = "reshape" if step.name in RESHAPING else "expand"
            arguments = (*step.arguments[:1], result.shape)
            step = msgspec.structs.replace(step, name=name, function=find(name), arguments=arguments, keywords={})
        self.check_hidden_writes(step, used)
        self.steps.append(step)

    def arguments(self, maker: Operation, said: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        if not maker.inputs:
            raise NotDerivedError(f"the operands of {said} were not recorded")
        operands = maker.inputs
        if maker.in_place and not operands[0].known and not operands[0].keyword:  # `y += 1`: y is what was written
            operands = (Operand(tensor=maker.outputs[0]), *operands[1:])
        for operand in operands:
            if operand.keyword in IGNORED or (operand.keyword in LEGACY and operand.constant is None):
                continue
            if operand.known:
                argument = self.argument(operand, maker.seq)
            elif (number := spelled(operand.code)) is not None:
                argument = number
            elif plain_name(maker.function) in SOLVABLE and len(maker.inputs) == 2:
                argument = Missing(operand.code)
            else:
                raise NotDerivedError(f"the operand `{operand.code}` of {said} was not recorded")
            if operand.keyword in ("input", "self"):
                arguments.insert(0, argument)
            elif operand.keyword:
                keywords[operand.keyword] = argument
            else:
                arguments.append(argument)
        return tuple(arguments), keywords

    def module(self, maker: ModuleCalled) -> None:
        module = self.ledger.module(maker.module)
        where = self.ledger.where(maker.site)
        try:
            form = modules.form(module, maker.training) if module is not None else None
        except modules.UnrecordedError as missing:
            assert module is not None
            said = module.path or module.kind
            raise NotDerivedError(f"{said} ({where}) computes with {missing}, which were not recorded") from None
        path = "" if module is None or module.path == module.kind else module.path
        if module is None or form is None:
            kind = module.kind if module is not None else "a module"
            said = f"{kind} {path}" if path else kind
            raise NotDerivedError(f"what {said} ({where}) computes inside is not replayed")
        if any(shape.tensor is None for shape in maker.inputs):
            raise NotDerivedError(f"an input of {module.kind} ({where}) was not recorded")
        inputs = [self.reference(shape.tensor, maker.seq) for shape in maker.inputs if shape.tensor is not None]
        named = dict(module.parameters)
        keywords = {keyword: self.reference(named[name], maker.seq) for keyword, name in form.parameters.items()}
        results = self.results(maker, [shape.tensor for shape in maker.outputs])
        code = f"{path or module.kind}(...)"
        self.add(
            Step(
                form.operation,
                find(form.operation) or unknown(form.operation),
                tuple(inputs),
                keywords | form.constants,
                results,
                code,
                where,
                maker.site,
                form.choices,
            ),
            maker.seq,
        )

    def results(self, maker: Maker, outputs: Sequence[TensorId | None]) -> tuple[Result | None, ...]:
        """A slot for every value that the maker gave: it is computed once for all of them."""
        return tuple(None if tensor is None else self.result(tensor, maker) for tensor in outputs)

    def result(self, tensor: TensorId, maker: Maker) -> Result | None:
        number = self.number_of(tensor, maker)
        if number is None:
            return None
        key = Key(tensor, number)
        known = self.history.tensors[tensor]
        if "complex" in known.dtype:
            raise NotDerivedError(f"{self.ledger.describe(tensor)} is complex")
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slot(key)
        self.label(slot, maker)
        value = self.version(key).value
        if value is None and self.began.roots == (tensor,):
            value = self.began.root_value
        return Result(slot, known.shape, known.dtype, value, self.flows(key))

    def label(self, slot: Slot, maker: Maker | None) -> None:
        site = self.ledger.site(maker.site) if isinstance(maker, Operation) else None
        if site is not None:
            self.labels[slot] = site.code

    def number_of(self, tensor: TensorId, maker: Maker) -> int | None:
        for number, version in enumerate(self.history.versions.get(tensor, ())):
            if version.maker is maker:
                return number
        return None

    def argument(self, operand: Operand, seq: int) -> Any:
        if operand.tensor is not None:
            return self.reference(operand.tensor, seq)
        if operand.items is not None:
            items = [self.argument(item, seq) for item in operand.items]
            return items if operand.code.startswith("[") else tuple(items)
        return decoded(operand.constant)

    def reference(self, tensor: TensorId, seq: int) -> Ref:
        return Ref(self.slots[self.latest(tensor, seq)])

    def check_hidden_writes(self, step: Step, used: int) -> None:
        """Autograd's saved tensors are the data itself: a write that it cannot see changes its gradient."""
        for slot in step.refs():
            tensor = self.tensors[slot]
            write = self.history.hidden_write(tensor, used, self.began.seq)
            if write is not None:
                raise NotDerivedError(
                    f"{self.ledger.describe(tensor)} was written ({self.ledger.where(write.site)}) after {step.said()} "
                    "used it, in a way that autograd cannot see"
                )

    # --- names and versions ---------------------------------------------------------------------------

    def latest(self, tensor: TensorId, seq: int) -> Key:
        number = self.history.at(tensor, seq)
        if number is None:
            raise NotDerivedError(f"{self.ledger.describe(tensor)} is not in the record")
        return Key(tensor, number)

    def version(self, key: Key) -> Version:
        return self.history.versions[key.tensor][key.number]

    def name(self, tensor: TensorId) -> str:
        return self.ledger.name(tensor) or self.ledger.describe(tensor)


def _tensors_of(operands: tuple[Operand, ...]) -> Iterator[TensorId]:
    for operand in operands:
        if operand.tensor is not None:
            yield operand.tensor
        if operand.items is not None:
            yield from _tensors_of(operand.items)
