"""WG302: the model is evaluated in training mode."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Operation, OptimizerStepped, SiteId, TensorId
from whygrad.rules.facts import Facts, inputs_of
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.losscalls import LOSS_MODULES
from whygrad.rules.modulecalls import DROPPING, Outermost, mode_matters, outermost_calls, parts_of, tracks_statistics
from whygrad.rules.rule import Rule
from whygrad.rules.source import Function

CLOSURE_LIMIT = 200


class ValidationInTrainingMode(Rule):
    """Validation runs in training mode: dropout is on, and BatchNorm learns from the validation data.

    `torch.no_grad()` switches off the recording of gradients, not the training behaviour of layers. Without
    `model.eval()`, Dropout drops elements of the validation batches (the metric is noisy and too low), and BatchNorm
    normalises with the validation batch and moves its running statistics towards the validation data.

    **How to see it.** A forward whose result is compared with targets, but never goes into a backward, ran with
    `training=True`.

    **How to put it right.** Call `model.eval()` before validation and `model.train()` after it.
    """

    code = "WG302"
    slug = "validation-in-training-mode"
    intended = "the metric is meant to be that of the model with dropout on"
    search = (
        "model.eval() missing",
        "validation loss noisy dropout",
        "no_grad does not disable dropout",
        "test accuracy changes every run",
        "BatchNorm statistics validation data",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        x_val, y_val = torch.randn(8, 4), torch.randn(8, 1)
        for epoch in range(2):
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                val_loss = (model(x_val) - y_val).pow(2).mean()  # <- here
            print(val_loss.item())
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for epoch in range(2):
            model.train()
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                print((model(x) - y).pow(2).mean().item())
        """,
        """
        import torch
        from torch import nn
        torch.manual_seed(0)
        generator = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
        critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        g_opt = torch.optim.Adam(generator.parameters())
        d_opt = torch.optim.Adam(critic.parameters())
        for step in range(3):
            with torch.no_grad():
                fake = generator(torch.randn(8, 2))
            d_loss = critic(fake).mean() - critic(torch.randn(8, 4)).mean()
            d_opt.zero_grad()
            d_loss.backward()
            d_opt.step()
            g_loss = -critic(generator(torch.randn(8, 2))).mean()
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        steps = facts.of(OptimizerStepped)
        if not steps:
            return
        updated = {update.tensor for step in steps for update in step.updates}
        roots = {root for one in facts.passes for root in one.began.roots}
        outer_calls = outermost_calls(facts)
        training_sites = _training_sites(facts, outer_calls, roots)
        for outer in outer_calls:
            call = outer.call
            if not call.training or call.site in training_sites or _recomputed(facts, call):
                continue
            owned = {tensor for part in parts_of(facts, call.module) for _, tensor in part.parameters}
            active = _active(facts, outer)
            if active is None or not owned & updated:
                continue
            first_step = min(step.seq for step in steps)
            if call.seq < first_step and call.grad_mode == "on":
                continue
            compared = _compared(facts, outer, roots)
            if compared is None or _sampling(outer_calls, call):
                continue
            yield self._found(facts, outer, active, compared)

    def _found(
        self, facts: Facts, outer: Outermost, active: ModuleCalled, compared: Operation | ModuleCalled
    ) -> Finding:
        call = outer.call
        name = facts.modules[call.module].path or f"the {facts.modules[call.module].kind}"
        layer = facts.modules[active.module]
        inside = layer.path or f"a {layer.kind}"
        if tracks_statistics(layer):
            effect = f"{inside} ({layer.kind}) normalised with this batch and moved its running statistics towards it."
        else:
            what = f"{layer.kind}, {layer.config.split(', ')[0]}"
            effect = f"{inside} ({what}) {mode_matters(facts, layer)}: the number is a random one."
        mode = "under no_grad" if call.grad_mode != "on" else "and its result went into no backward"
        return self.finding(
            facts,
            call.site if call.site is not None else facts.place(compared.site),
            f"{name} is evaluated in training mode",
            [
                f"{name} was called on {facts.place(call.site).where} with training=True, {mode}; on "
                f"{facts.place(compared.site).where} the result was compared with targets.",
                effect,
            ],
            why="no_grad stops the recording of gradients; only eval() changes what Dropout and BatchNorm do.",
            fix=f"Call {name if '.' not in name and ' ' not in name else 'model'}.eval() before, and .train() after.",
            evidence=[
                facts.evidence(active, f"{inside} ran with training=True"),
                facts.evidence(compared, "the result was compared"),
            ],
            subjects=[name],
            edits=_edits(facts, call),
            severity=Severity.ERROR if tracks_statistics(layer) else Severity.WARNING,
        )


def _training_sites(facts: Facts, calls: tuple[Outermost, ...], roots: set[TensorId]) -> set[SiteId | None]:
    """The sites whose calls ever went into a backward."""
    rests: set[TensorId] = set()
    for root in roots:
        rests.add(root)
        rests.update(tensor for tensor, _ in facts.upstream(root))
    return {outer.call.site for outer in calls if any(shape.tensor in rests for shape in outer.call.outputs)}


def _recomputed(facts: Facts, call: ModuleCalled) -> bool:
    return any(one.ended is not None and one.began.seq < call.seq < one.ended.seq for one in facts.passes)


def _active(facts: Facts, outer: Outermost) -> ModuleCalled | None:
    """A layer inside that did what it does in training: a normalisation before a dropout."""
    found = None
    for call in outer.all:
        module = facts.modules.get(call.module)
        if module is None or not call.training:
            continue
        if tracks_statistics(module):
            return call
        if DROPPING.match(module.kind) and mode_matters(facts, module) and found is None:
            found = call
    return found


def _compared(facts: Facts, outer: Outermost, roots: set[TensorId]) -> Operation | ModuleCalled | None:
    """Where the result met something that is not the model's own, and became a number; None if a backward used it."""
    made = {shape.tensor for shape in outer.call.outputs if shape.tensor is not None}
    queue = list(made)
    met: Operation | ModuleCalled | None = None
    number = False
    for current in queue:
        if len(queue) > CLOSURE_LIMIT or current in roots:
            return None
        for user in facts.users.get(current, ()):
            if user.seq < outer.call.seq or user is outer.call:
                continue
            if isinstance(user, ModuleCalled):
                module = facts.modules.get(user.module)
                if module is None or (module.kind not in LOSS_MODULES and user.depth == 0):
                    return None
                number = number or any(shape.shape == () for shape in user.outputs)
            else:
                shape = (
                    facts.tensors[user.outputs[0]].shape if user.outputs and user.outputs[0] in facts.tensors else ()
                )
                number = number or shape == ()
            others = [
                tensor for tensor in inputs_of(user) if tensor not in made and not _same_model(facts, outer, tensor)
            ]
            if others and met is None:
                met = user
            outputs = user.outputs if isinstance(user, Operation) else [one.tensor for one in user.outputs]
            for output in outputs:
                if output is not None and output not in made:
                    made.add(output)
                    queue.append(output)
    return met if number else None


def _same_model(facts: Facts, outer: Outermost, tensor: TensorId) -> bool:
    maker = facts.makers.get(tensor)
    return isinstance(maker, ModuleCalled) and maker.module in {call.module for call in outer.all}


def _sampling(calls: tuple[Outermost, ...], call: ModuleCalled) -> bool:
    """Whether the same input was given again and again, as one does to sample the dropout."""
    given = [shape.tensor for shape in call.inputs]
    same = [
        other.call
        for other in calls
        if other.call.site == call.site
        and other.call.step == call.step
        and other.call.module == call.module
        and [shape.tensor for shape in other.call.inputs] == given
    ]
    return len(same) > 2


def _edits(facts: Facts, call: ModuleCalled) -> list[Edit]:
    """`model.eval()` before the statement (outside of its no_grad block), `model.train()` after it."""
    place = facts.place(call.site)
    source = facts.source(place.path)
    statement = source.statement(place.line)
    path = facts.modules[call.module].path
    if statement is None or not path.isidentifier():
        return []
    for node in source.around(statement):
        if isinstance(node, Function):
            break
        if hasattr(node, "items") and hasattr(node, "body"):
            statement = node  # type: ignore[assignment]
    if source.statement(statement.lineno) is None or statement.end_lineno is None:
        return []
    body = source.line(statement.lineno)
    if body[: statement.col_offset].strip() or any(
        word in source.segment(statement) for word in ("return ", "yield ", "continue", "break")
    ):
        return []
    indent = " " * statement.col_offset
    after = statement.end_lineno + 1
    return [
        Edit(place.path, statement.lineno, 0, statement.lineno, 0, f"{indent}{path}.eval()\n"),
        Edit(place.path, after, 0, after, 0, f"{indent}{path}.train()\n"),
    ]
