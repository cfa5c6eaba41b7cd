"""WG406: a sequence layer takes the batch for time."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import Module, ModuleCalled, Operation, TensorId
from whygrad.rules.construction import Construction, Unknown, constructed, keyword_added
from whygrad.rules.facts import Facts, Maker, inputs_of
from whygrad.rules.finding import Evidence, Finding, Severity
from whygrad.rules.flow import chain_from, constant, through_rearranging
from whygrad.rules.losscalls import plain, shape_of, value_of
from whygrad.rules.modulecalls import enclosing, inside_path
from whygrad.rules.rule import Rule

RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
POSITION = {
    "LSTM": 4,
    "GRU": 4,
    "RNN": 4,
    "TransformerEncoderLayer": 6,
    "TransformerDecoderLayer": 6,
    "MultiheadAttention": 8,
    "Transformer": 10,
}
"""Where `batch_first` stands among the arguments; far enough that it is given by name."""

STACKED = {"TransformerEncoder": "TransformerEncoderLayer", "TransformerDecoder": "TransformerDecoderLayer"}
REDUCTIONS = frozenset({"mean", "sum", "max", "amax", "min", "amin", "logsumexp"})
FULL = {"slice": [None, None, None]}


class Use(msgspec.Struct, frozen=True, eq=False):
    """A place where the program treats a dimension as the batch: a sentence and its events."""

    sentence: str
    evidence: tuple[Evidence, ...]
    proven: bool = False


class BatchAndTimeExchanged(Rule):
    """The result for a sequence depends on the other sequences in the batch: batch and time are exchanged.

    `nn.LSTM`, `nn.GRU`, `nn.RNN`, `nn.MultiheadAttention` and the `nn.Transformer` layers read their input as
    (time, batch, features) unless they are built with `batch_first=True`. Given (batch, time, features) they raise
    nothing: they run, or attend, along the batch, so samples leak into one another and time is ignored.

    **How to see it.** Elsewhere the program takes dimension 0 for the batch: it selects the last step with
    `output[:, -1]`, averages over `dim=1`, adds a positional encoding along dimension 1, or takes samples with
    `x[:k]`; a gradient of one sample's result reaches the other samples.

    **How to put it right.** Pass `batch_first=True`, or transpose the input and the output.
    """

    code = "WG406"
    slug = "batch-and-time-exchanged"
    severity = Severity.WARNING
    search = (
        "batch_first default False",
        "transformer output depends on other samples in batch",
        "LSTM batch_first mix up",
        "MultiheadAttention batch first",
        "output[:, -1] wrong",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        lstm = nn.LSTM(3, 4)  # <- here
        head = nn.Linear(4, 1)
        x, y = torch.randn(8, 5, 3), torch.randn(8, 1)
        output, _ = lstm(x)
        loss = (head(output[:, -1]) - y).pow(2).mean()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        lstm = nn.LSTM(3, 4, batch_first=True)
        head = nn.Linear(4, 1)
        x, y = torch.randn(8, 5, 3), torch.randn(8, 1)
        output, _ = lstm(x)
        loss = (head(output[:, -1]) - y).pow(2).mean()
        loss.backward()
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        lstm = nn.LSTM(3, 4)
        head = nn.Linear(4, 1)
        x, y = torch.randn(5, 8, 3), torch.randn(8, 1)
        output, _ = lstm(x)
        loss = (head(output[-1]) - y).pow(2).mean() + (head(output.mean(dim=0)) - y).pow(2).mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told = set()
        for call in facts.of(ModuleCalled):
            module = facts.modules.get(call.module)
            if module is None or (module.kind not in POSITION and module.kind not in STACKED) or call.error:
                continue
            if len(call.inputs) == 0 or len(call.inputs[0].shape) != 3 or not call.outputs or module.id in told:
                continue
            outer = enclosing(facts, call) if call.depth else None
            around = facts.modules.get(outer.module) if outer is not None else None
            if around is not None and (around.kind in POSITION or around.kind in STACKED):
                continue
            built, first = _batch_first(facts, module)
            if first is False and call.inputs[0].shape[1] > 1:
                use = next(_batch_is_zero(facts, call), None)
                if use is not None:
                    told.add(module.id)
                    yield self._found(facts, call, module, built, use)
            elif first is True and call.inputs[0].shape[0] > 1:
                yield from self._last_sample(facts, call, module)
            if module.kind in RECURRENT and call.inputs[0].shape[first is False] > 1:
                yield from self._state(facts, call, module)

    def _found(self, facts: Facts, call: ModuleCalled, module: Module, built: Construction | None, use: Use) -> Finding:
        name = module.path or f"the {module.kind}"
        shape = call.inputs[0].shape
        does = "runs" if module.kind in RECURRENT else "attends"
        place = built.place if built is not None else facts.place(call.site)
        return self.finding(
            facts,
            place,
            f"{name} takes the batch for time: it was built without batch_first=True",
            [
                f"{name} ({module.kind}, batch_first=False) reads its input {shape} on "
                f"{facts.place(call.site).where} as {shape[0]} time steps of {shape[1]} samples, and {does} along "
                "dimension 0.",
                use.sentence,
            ],
            why="Without batch_first=True, these layers expect (time, batch, features).",
            fix="Pass batch_first=True, or transpose dimensions 0 and 1 before and after.",
            evidence=[facts.evidence(call, f"{name} was given {shape}"), *use.evidence],
            subjects=[name],
            severity=Severity.ERROR if use.proven else None,
            edits=[keyword_added(built, "batch_first=True")] if built is not None else [],
        )

    def _last_sample(self, facts: Facts, call: ModuleCalled, module: Module) -> Iterator[Finding]:
        output = call.outputs[0]
        for user in facts.users.get(output.tensor, ()) if output.tensor is not None else ():
            if not isinstance(user, Operation) or plain(user.function) != "getitem" or len(user.inputs) != 2:
                continue
            if constant(user.inputs[1]) == -1 and _feeds_training(facts, user):
                name = module.path or f"the {module.kind}"
                yield self.finding(
                    facts,
                    user.site if user.site is not None else facts.place(call.site),
                    f"this takes the last sample of the batch, not the last step of {name}",
                    [
                        f"{name} is batch_first: its output {output.shape} has the batch in dimension 0; [-1] is "
                        f"sample {output.shape[0] - 1} at all steps."
                    ],
                    why="With batch_first=True, time is dimension 1.",
                    fix="Write output[:, -1].",
                    evidence=[facts.evidence(call, "the layer ran"), facts.evidence(user, "[-1] was taken")],
                    subjects=[name],
                )

    def _state(self, facts: Facts, call: ModuleCalled, module: Module) -> Iterator[Finding]:
        for state in call.outputs[1:3]:
            for user in facts.users.get(state.tensor, ()) if state.tensor is not None else ():
                if not isinstance(user, Operation) or plain(user.function) != "getitem" or len(state.shape) != 3:
                    continue
                index = constant(user.inputs[1]) if len(user.inputs) == 2 else None
                if isinstance(index, tuple) and index[:2] == (FULL, -1) and _feeds_training(facts, user):
                    name = module.path or f"the {module.kind}"
                    yield self.finding(
                        facts,
                        user.site if user.site is not None else facts.place(call.site),
                        f"this takes the last sample of the state of {name}, not its last layer",
                        [
                            f"The state of {name} has shape {state.shape}: layers (and directions), batch, features, "
                            f"also with batch_first=True; [:, -1] is the state of sample {state.shape[1] - 1}."
                        ],
                        why="batch_first concerns input and output, never the states.",
                        fix="Write h_n[-1] for the last layer.",
                        evidence=[facts.evidence(call, "the layer ran"), facts.evidence(user, "[:, -1] was taken")],
                        subjects=[name],
                    )


def _batch_first(facts: Facts, module: Module) -> tuple[Construction | None, bool | None]:
    """Where the layer was built, and whether it is batch_first (None: not known)."""
    if module.kind in STACKED:
        layers = [
            one
            for one in facts.modules.values()
            if one.kind == STACKED[module.kind] and (inside_path(one.path, module.path) or not module.path)
        ]
        return _batch_first(facts, layers[0]) if layers else (None, None)
    built = constructed(facts, module)
    if "batch_first=True" in module.config:
        return built, True
    if module.kind in RECURRENT or "batch_first=False" in module.config:
        return built, False
    if built is None:
        return None, None
    given = built.option("batch_first", POSITION[module.kind], False)
    return built, None if isinstance(given, Unknown) else bool(given)


def _batch_is_zero(facts: Facts, call: ModuleCalled) -> Iterator[Use]:
    """The signs that dimension 0 of the input is the batch."""
    output, given = call.outputs[0].tensor, call.inputs[0].tensor
    if output is not None:
        yield from _time_is_one(facts, output, call.outputs[0].shape)
    if given is not None:
        yield from _samples_are_rows(facts, call, given)
        yield from _position_is_one(facts, given, call.inputs[0].shape)


def _time_is_one(facts: Facts, output: TensorId, shape: tuple[int, ...]) -> Iterator[Use]:
    """The last step is selected from, or an average taken over, dimension 1 of the output."""
    for user in facts.users.get(output, ()):
        if not isinstance(user, Operation) or len(user.inputs) < 2 or not _feeds_training(facts, user):
            continue
        name = plain(user.function)
        where = facts.place(user.site).where
        if name == "getitem":
            index = constant(user.inputs[1])
            if isinstance(index, tuple) and len(index) > 1 and index[0] == FULL and type(index[1]) is int:
                yield Use(
                    f"On {where} the program selects one step along dimension 1 of the output {shape}: it takes "
                    "dimension 0 for the batch.",
                    (facts.evidence(user, f"`{facts.place(user.site).code}` selects along dimension 1"),),
                )
        elif name in REDUCTIONS:
            dims = [one for one in user.inputs if one.keyword in ("dim", "axis")] or list(user.inputs[1:2])
            if constant(dims[0]) in (1, -2):
                yield Use(
                    f"On {where} the program takes the {name} over dimension 1 of the output {shape}: it takes "
                    "dimension 0 for the batch.",
                    (facts.evidence(user, f"`{facts.place(user.site).code}` reduces dimension 1"),),
                )


def _samples_are_rows(facts: Facts, call: ModuleCalled, given: TensorId) -> Iterator[Use]:
    """The same layer was given rows of the same tensor; or the rows were drawn at random from a data set."""
    maker = facts.makers.get(given)
    if isinstance(maker, Operation) and plain(maker.function) == "getitem" and len(maker.inputs) == 2:
        drawn = maker.inputs[1].tensor
        source = facts.makers.get(drawn) if drawn is not None else None
        vector = len(shape_of(facts, drawn) or ()) == 1
        if vector and isinstance(source, Operation) and _random(facts, source):
            yield Use(
                f"On {facts.place(maker.site).where} the rows of the input are drawn at random along dimension 0: "
                "they are samples.",
                (facts.evidence(maker, "rows were drawn along dimension 0"),),
            )
    for user in facts.users.get(given, ()):
        if not isinstance(user, Operation) or plain(user.function) != "getitem" or not user.outputs:
            continue
        index = constant(user.inputs[1]) if len(user.inputs) == 2 else None
        stop = index["slice"][1] if isinstance(index, dict) and "slice" in index else None
        if not isinstance(stop, int) or index["slice"][0] not in (None, 0):  # type: ignore[index]
            continue
        for other in facts.of(ModuleCalled):
            same = other.module == call.module and other.inputs and other.inputs[0].tensor == user.outputs[0]
            if same and other.outputs:
                yield from _compared(facts, call, other)


def _random(facts: Facts, source: Operation) -> bool:
    if plain(source.function) in ("randint", "randperm"):
        return True
    if plain(source.function) != "getitem":
        return False
    inner = facts.makers.get(next(inputs_of(source), TensorId(0)))
    return isinstance(inner, Operation) and plain(inner.function) == "randperm"


def _compared(facts: Facts, call: ModuleCalled, other: ModuleCalled) -> Iterator[Use]:
    """Row 0 of both results was taken: with the other rows, and without them."""
    rows = [_row(facts, one.outputs[0].tensor) for one in (call, other)]
    if rows[0] is None or rows[1] is None:
        return
    together, alone = value_of(facts, rows[0].outputs[0]), value_of(facts, rows[1].outputs[0])
    numbers = ""
    if together is not None and alone is not None and together.items and alone.items:
        largest = max(abs(float(a) - float(b)) for a, b in zip(together.items, alone.items, strict=False))
        if largest == 0:
            return
        numbers = f": the two differ by up to {largest:.3g}"
    yield Use(
        f"The program compares row 0 of the result for all rows ({facts.place(call.site).where}) with that for "
        f"{other.inputs[0].shape[0]} of them ({facts.place(other.site).where}): rows of dimension 0 are samples to it"
        f"{numbers}.",
        (facts.evidence(rows[0], "row 0 with all rows"), facts.evidence(rows[1], "row 0 without the others")),
        proven=bool(numbers),
    )


def _row(facts: Facts, output: TensorId | None) -> Operation | None:
    for user in facts.users.get(output, ()) if output is not None else ():
        if isinstance(user, Operation) and plain(user.function) == "getitem" and len(user.inputs) == 2:
            index = constant(user.inputs[1])
            if index == 0 or (isinstance(index, tuple) and index[0] == 0):
                return user
    return None


def _position_is_one(facts: Facts, given: TensorId, shape: tuple[int, ...]) -> Iterator[Use]:
    """A positional encoding was added along dimension 1."""
    for tensor, maker in chain_from(facts, given, 4):
        if not isinstance(maker, Operation) or plain(maker.function) not in ("add", "add_"):
            continue
        for operand in maker.inputs:
            other = shape_of(facts, operand.tensor)
            if operand.tensor is None or other not in (shape[1:], (1, *shape[1:])) or shape[0] == 1:
                continue
            if _fixed(facts, operand.tensor):
                yield Use(
                    f"On {facts.place(maker.site).where} `{operand.code}` of shape {other} is added to every row of "
                    f"dimension 0: positions lie along dimension 1.",
                    (facts.evidence(maker, f"{facts.describe(tensor)} got its positions along dimension 1"),),
                )


def _fixed(facts: Facts, tensor: TensorId) -> bool:
    """Whether a tensor is a parameter or buffer, a piece of one, or the embedding of a range."""
    for current, maker in [(tensor, facts.makers.get(tensor)), *chain_from(facts, tensor, 4)]:
        known = facts.tensors.get(current)
        if known is not None and known.origin in ("parameter", "buffer"):
            return True
        if maker is None:
            continue
        if isinstance(maker, ModuleCalled):
            return facts.modules[maker.module].kind == "Embedding" and _from_range(facts, maker)
        base = next(inputs_of(maker), None)
        known = facts.tensors.get(base) if base is not None else None
        if plain(maker.function) == "getitem" and known is not None and known.origin in ("parameter", "buffer"):
            return True
    return False


def _from_range(facts: Facts, call: ModuleCalled) -> bool:
    ids = call.inputs[0].tensor if call.inputs else None
    maker: Maker | None = facts.makers.get(ids) if ids is not None else None
    return isinstance(maker, Operation) and plain(maker.function) == "arange"


def _feeds_training(facts: Facts, user: Operation) -> bool:
    """Whether what was taken goes on into a module or a backward."""
    roots = {root for one in facts.passes for root in one.began.roots}
    queue = list(user.outputs)
    for current in queue:
        if current in roots:
            return True
        for tensor in through_rearranging(facts, current):
            if any(isinstance(one, ModuleCalled) for one in facts.users.get(tensor, ())):
                return True
            for one in facts.users.get(tensor, ()):
                if len(queue) < 30:
                    queue.extend(output for output in getattr(one, "outputs", ()) if output not in queue)
    return False
