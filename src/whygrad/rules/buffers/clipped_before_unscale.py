"""WG112: gradients are clipped while they still carry the loss scale."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradChanged, GradReset, GradWritten, SiteId, TensorId
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.numbers import say, say_number
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import callee, dotted, insert_before

CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "clamp_", "clip_")
SCALED_DOWN = 64.0
"""A division by this much or more after clipping is the removal of a loss scale, not an average."""


class ClippedBeforeUnscale(Rule):
    """With the gradient scaler and clipping the model barely trains.

    `scaler.scale(loss).backward()` leaves gradients that are thousands of times too large. A clip at that moment
    compares the *scaled* norm with the threshold, cuts everything down to it, and `scaler.step` then divides the
    result by the scale again: what is left of a step of norm 1 is 1/65536.

    **How to put it right.** Call `scaler.unscale_(optimizer)` after `backward()` and before clipping; `scaler.step`
    then knows that it need not divide again.
    """

    code = "WG112"
    slug = "clipped-before-unscale"
    search = ("GradScaler clip_grad_norm_ unscale_", "amp loss does not decrease with clipping", "mixed precision clip")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
            scaler.step(optimizer)
            scaler.update()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            for half in (0, 1):
                loss = (model(x[half::2]) - y[half::2]).square().mean()
                scaler.scale(loss).backward()
            for parameter in model.parameters():
                parameter.grad.div_(2)
            scaler.step(optimizer)
            scaler.update()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        for tensor in dict.fromkeys(change.tensor for change in facts.of(GradChanged)):
            for clip, unscale in _pairs(facts, tensor):
                if clip.site not in told:
                    told.add(clip.site)
                    yield self._finding(facts, tensor, clip, unscale)

    def _finding(self, facts: Facts, tensor: TensorId, clip: GradChanged, unscale: GradChanged) -> Finding:
        name = facts.describe(tensor)
        scale = _ratio(unscale.before, unscale.after)
        factor = f" by {say_number(scale)}" if scale is not None else ""
        return self.finding(
            facts,
            clip.site if clip.site is not None else unscale.site or facts.place(None),
            "the gradients are clipped before the loss scale is taken out of them",
            [
                f"{name}.grad was {say(clip.before)} with the scale in it; the clip made it {say(clip.after)}.",
                f"Then {facts.place(unscale.site).where} divided it{factor}: the step used {say(unscale.after)}.",
            ],
            why="The threshold was compared with scaled gradients, and the scale was divided out of what was left.",
            fix="Call scaler.unscale_(optimizer) between backward() and the clip.",
            evidence=[
                facts.evidence(clip, f"{clip.by}: {name}.grad {say(clip.before)} -> {say(clip.after)}"),
                facts.evidence(unscale, f"{unscale.by}: {name}.grad {say(unscale.before)} -> {say(unscale.after)}"),
            ],
            subjects=[name],
            edits=_edits(facts, clip),
        )


def _pairs(facts: Facts, tensor: TensorId) -> Iterator[tuple[GradChanged, GradChanged]]:
    """Clips of a buffer that were followed by the removal of a loss scale, with nothing written between."""
    clip: GradChanged | None = None
    for event in facts.history(tensor):
        if isinstance(event, (GradWritten, GradReset)):
            clip = None
        elif isinstance(event, GradChanged):
            if event.by.rpartition(".")[2] in CLIPS:
                clip = event
            elif clip is not None and _unscales(event):
                yield clip, event
                clip = None


def _unscales(change: GradChanged) -> bool:
    if "unscale" in change.by:
        return True
    ratio = _ratio(change.before, change.after)
    return change.by.rpartition(".")[2] in ("div_", "mul_", "assignment") and ratio is not None and ratio >= SCALED_DOWN


def _ratio(before: Value | None, after: Value) -> float | None:
    large, small = before.magnitude if before is not None else None, after.magnitude
    return large / small if large and small else None


def _edits(facts: Facts, clip: GradChanged) -> list[Edit]:
    """`scaler.unscale_(optimizer)`, with the names that the program's own `scaler.step(optimizer)` uses."""
    place = facts.place(clip.site)
    source = facts.source(place.path)
    statement, loop = source.statement(place.line), source.loop_at(place.line)
    for node in ast.walk(loop if loop is not None else source.tree):
        if callee(node) == "step" and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            scaler, optimizer = dotted(node.func.value), dotted(node.args[0])
            if scaler and optimizer and statement is not None:
                return [insert_before(source, statement, f"{scaler}.unscale_({optimizer})")]
    return []
