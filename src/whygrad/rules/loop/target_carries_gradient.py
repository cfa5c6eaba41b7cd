"""WG510: the bootstrap target is computed by the trained network, and carries a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradWritten, ModuleCalled, ModuleId, Operand, Operation, SiteId, TensorId
from whygrad.rules.facts import Facts, inputs_of
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import replace

LOSSES = frozenset({"sub", "mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss", "sub_", "rsub", "dist"})
SAME = frozenset(
    {"squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "double", "to", "clone", "getitem", "expand", "t",
     "unsqueeze_", "squeeze_", "transpose", "permute", "contiguous", "ravel"}
)  # fmt: skip


class TargetCarriesGradient(Rule):
    """The gradient flows through the target as well: the bootstrap target was not detached.

    A temporal-difference update moves the prediction `q(s)` towards `reward + gamma * q(s_next)`. If the target comes
    from the network that is trained and is not detached, `backward()` also differentiates the target and moves *it*
    towards the prediction: a different algorithm (residual gradient), slower and with other fixed points. The loss
    falls all the same.

    **How to put it right.** Compute the target under `torch.no_grad()`, or detach it.
    """

    code = "WG510"
    slug = "target-carries-gradient"
    severity = Severity.WARNING
    intended = "you minimise the Bellman residual itself (the residual-gradient algorithm)"
    search = ("DQN target detach", "Q-learning semi-gradient", "td target requires grad", "bootstrap target no_grad")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        value = torch.nn.Linear(3, 1)
        state, after = torch.randn(4, 3), torch.randn(4, 3)
        reward = torch.ones(4)
        target = reward + 0.9 * value(after).squeeze(1)  # <- here
        loss = (value(state).squeeze(1) - target).square().mean()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        value = torch.nn.Linear(3, 1)
        state, after = torch.randn(4, 3), torch.randn(4, 3)
        reward = torch.ones(4)
        target = reward + 0.9 * value(after).squeeze(1).detach()
        loss = (value(state).squeeze(1) - target).square().mean()
        loss.backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        encode = torch.nn.Linear(3, 2)
        one, other = torch.randn(4, 3), torch.randn(4, 3)
        noise = torch.randn(4, 2)
        loss = (encode(one) - (noise + encode(other))).square().mean()
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        for event in facts.of(Operation):
            if event.function.rpartition(".")[2] not in LOSSES or event.node is None:
                continue
            tensors = [operand.tensor for operand in event.inputs if operand.tensor is not None]
            if len(tensors) < 2:
                continue
            for target, prediction in ((tensors[1], tensors[0]), (tensors[0], tensors[1])):
                found = _bootstrap(facts, target)
                if found is None or found[0].site in told:
                    continue
                made, value = found
                module = _shared(facts, value, prediction)
                write = _written_after(facts, module, event) if module is not None else None
                if module is not None and write is not None:
                    told.add(made.site)
                    yield self._finding(facts, made, event, module, write)

    def _finding(self, facts: Facts, made: Operation, loss: Operation, module: ModuleId, write: GradWritten) -> Finding:
        name = facts.modules[module].path or facts.modules[module].kind
        target = facts.describe(made.outputs[0])
        terms = ", ".join(say(term.value) for term in write.contributions[:3])
        return self.finding(
            facts,
            made.site if made.site is not None else facts.place(None),
            f"the gradient flows into {name} through the target as well",
            [
                f"{target} is computed by {name} and requires grad; {facts.place(loss.site).where} compares it with "
                f"the prediction of the same {name}.",
                f"{facts.describe(write.tensor)}.grad is made of {len(write.contributions)} terms ({terms}): "
                "one of them came through the target.",
            ],
            why="backward() differentiates everything that is not detached, the target too.",
            fix="Detach the target, or compute it under torch.no_grad().",
            evidence=[
                facts.evidence(made, f"{target} has a gradient function"),
                facts.evidence(loss, "prediction and target meet"),
                facts.evidence(write, f"{facts.describe(write.tensor)}.grad = {say(write.after)}"),
            ],
            subjects=[name],
            edits=_edits(facts, made),
        )


def _bootstrap(facts: Facts, tensor: TensorId) -> tuple[Operation, TensorId] | None:
    """For `constant + factor * value`: the addition, and the value that requires grad."""
    added = _plain(facts, tensor)
    if added is None or added.function not in ("add", "radd"):
        return None
    known = [operand.tensor for operand in added.inputs if operand.tensor is not None]
    fixed = [one for one in known if not _requires(facts, one)]
    live = [one for one in known if _requires(facts, one)]
    if len(fixed) != 1 or len(live) != 1 or len(added.inputs) != 2:
        return None
    current, discounted = live[0], False
    while (maker := _plain(facts, current)) is not None and maker.function in ("mul", "rmul"):
        onward = [one for one in inputs_of(maker) if _requires(facts, one)]
        if len(onward) != 1 or len(maker.inputs) != 2:
            return None
        discounted |= any(_discounts(facts, operand) for operand in maker.inputs if operand.tensor != onward[0])
        current = onward[0]
    return (added, current) if discounted else None


def _discounts(facts: Facts, operand: Operand) -> bool:
    """Whether a factor is a discount: between a half and 1, or a tensor without gradient of such."""
    number = operand.constant
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return 0.5 <= number <= 1
    if operand.tensor is None:
        return True
    value = facts.tensors[operand.tensor].value if operand.tensor in facts.tensors else None
    if value is None:
        maker = facts.makers.get(operand.tensor)
        value = maker.value if maker is not None else None
    if value is None or value.items is None:
        return True
    return all(isinstance(item, (int, float)) and 0 <= item <= 1 for item in value.items)


def _plain(facts: Facts, tensor: TensorId) -> Operation | None:
    """The operation that computed a tensor, behind changes of shape and dtype."""
    for _ in range(8):
        maker = facts.makers.get(tensor)
        if not isinstance(maker, Operation):
            return None
        if maker.function not in SAME:
            return maker
        tensor = next(iter(inputs_of(maker)), tensor)
    return None


def _requires(facts: Facts, tensor: TensorId) -> bool:
    known = facts.tensors.get(tensor)
    return known is not None and known.requires_grad


def _shared(facts: Facts, value: TensorId, prediction: TensorId) -> ModuleId | None:
    """The outermost module that both were computed by, in calls of its own for each."""
    here, there = _called(facts, value), _called(facts, prediction)
    common = [module for module in here if module in there and here[module].seq != there[module].seq]
    return min(common, key=lambda module: (here[module].depth, module), default=None)


def _called(facts: Facts, tensor: TensorId) -> dict[ModuleId, ModuleCalled]:
    found: dict[ModuleId, ModuleCalled] = {}
    for current, maker in facts.upstream(tensor, limit=40):
        if not _requires(facts, current):
            continue
        if isinstance(maker, ModuleCalled):
            found.setdefault(maker.module, maker)
            for outer in facts.of(ModuleCalled):
                if any(shape.tensor == current for shape in outer.outputs):
                    found.setdefault(outer.module, outer)
    return found


def _written_after(facts: Facts, module: ModuleId, loss: Operation) -> GradWritten | None:
    """A gradient of the module, written by the next pass, that has more than one term."""
    known = facts.modules[module]
    inside = {
        tensor
        for other in facts.modules.values()
        if other.id == module or other.path.startswith(f"{known.path}.")
        for _, tensor in other.parameters
    }
    for each in facts.passes:
        if each.began.seq > loss.seq:
            writes = [write for write in each.written if write.tensor in inside and len(write.contributions) > 1]
            return writes[0] if writes else None
    return None


def _edits(facts: Facts, made: Operation) -> list[Edit]:
    site = facts.site(made.site)
    if site is None:
        return []
    source = facts.source(site.path)
    node = source.expression(site)
    return [replace(source, node, f"({source.segment(node)}).detach()")] if node is not None else []
