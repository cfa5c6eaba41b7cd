"""WG113: gradients are clipped after the step, or before there are any."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import AnyEvent, GradChanged, GradReset, GradWritten, Operation, OptimizerStepped, SiteId
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, calls, dotted, function_of

CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")
NEAR = 2000
"""The changes that a clip made stand this many events before its result, at most."""

LOOKED_AT = 8
"""So many calls of each line are looked at."""

LAZY = frozenset({"parameters", "named_parameters", "filter", "map", "chain", "buffers"})


class Clip(msgspec.Struct, frozen=True):
    """One call of a clipping function: where, the norm that it returned (None: it returns none), what it changed."""

    event: AnyEvent
    norm: Value | None
    changed: tuple[GradChanged, ...]


class ClipAtWrongMoment(Rule):
    """Gradient clipping has no effect: it comes after the step, before the backward, or finds no gradients.

    Clipping changes what is in `.grad` now. After `optimizer.step()` the gradients have been used; before
    `backward()` there are none; and a generator such as `params = model.parameters()` that was used up by the
    optimizer's constructor gives `clip_grad_norm_` nothing to clip: it returns 0 and says nothing.

    **How to put it right.** Clip between `backward()` and `step()`, and give it `model.parameters()` itself or a list.
    """

    code = "WG113"
    slug = "clip-at-wrong-moment"
    search = (
        "clip_grad_norm_ no effect",
        "clip_grad_norm_ returns 0",
        "gradient clipping after optimizer.step",
        "model.parameters() generator exhausted",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (100 * model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        parameters = model.parameters()  # <- here
        optimizer = torch.optim.SGD(parameters, lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (100 * model(x) - y).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (100 * model(x) - y).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        by_site: dict[SiteId | None, list[Clip]] = {}
        for clip in _clips(facts):
            by_site.setdefault(clip.event.site, []).append(clip)
        for site, made in by_site.items():
            if site is None:
                continue
            del made[LOOKED_AT:]
            moments = [_moment(facts, clip) for clip in made]
            if len(set(moments)) == 1 or (len(made) > 1 and len(set(moments[1:])) == 1):
                moment = moments[-1]
                if moment == "nothing":
                    yield self._nothing(facts, made[-1])
                elif moment in ("after the step", "before the backward"):
                    yield self._wrong(facts, made[-1], moment)

    def _wrong(self, facts: Facts, clip: Clip, moment: str) -> Finding:
        step = _last_step(facts, clip.event.seq)
        norm = f" It saw a norm of {say(clip.norm)}." if clip.norm is not None else ""
        write = _last_write(facts, clip.event.seq)
        if moment == "after the step" and step is not None and write is not None:
            happened = (
                f"{facts.place(write.site).where} wrote the gradients, {facts.place(step.site).where} used them, and "
                f"only then {facts.place(clip.event.site).where} clipped them.{norm}"
            )
        else:
            happened = f"When {facts.place(clip.event.site).where} clipped, every buffer was empty.{norm}"
        return self.finding(
            facts,
            facts.place(clip.event.site),
            f"the gradients are clipped {moment}",
            [happened, "No step ever used a gradient that this clip changed."],
            why="Clipping changes .grad in place, at that moment; step() uses what is there when it runs.",
            fix="Move the clip between backward() and step().",
            evidence=[
                facts.evidence(clip.event, "the gradients were clipped"),
                *([facts.evidence(step, "the step before it")] if step is not None else []),
            ],
            subjects=[facts.describe(write.tensor)] if write is not None else [],
        )

    def _nothing(self, facts: Facts, clip: Clip) -> Finding:
        place = facts.place(clip.event.site)
        source = facts.source(place.path)
        used_up = _generator(source, place.line)
        filled = _filled(facts, clip.event.seq)
        return self.finding(
            facts,
            facts.line(place.path, used_up) if used_up is not None else place,
            "the clip finds no gradients: its iterator is used up"
            if used_up is not None
            else "the clip finds no gradients",
            [
                f"{place.where} returned a norm of {say(clip.norm)} and changed nothing, while "
                f"{len(filled)} buffers held "
                f"gradients ({facts.describe(filled[0].tensor)}.grad = {say(filled[0].after)}).",
                *(
                    [f"What line {used_up} makes is a generator: the first loop over it leaves nothing for the next."]
                    if used_up is not None
                    else []
                ),
            ],
            why="A generator gives its items once."
            if used_up is not None
            else "The clip only sees the tensors that it is given, and those without a gradient are skipped.",
            fix="Make it a list: list(model.parameters())."
            if used_up is not None
            else "Give it the parameters that are trained.",
            evidence=[
                facts.evidence(clip.event, "the clip returned 0"),
                facts.evidence(filled[0], f"{facts.describe(filled[0].tensor)}.grad held {say(filled[0].after)}"),
            ],
            subjects=[facts.describe(one.tensor) for one in filled],
        )


def _clips(facts: Facts) -> Iterator[Clip]:
    """Every call of a clipping function that the ledger shows, by its result or by what it changed."""
    changes = [change for change in facts.of(GradChanged) if change.by in CLIPS]
    by_site: dict[SiteId | None, list[GradChanged]] = {}
    for change in changes:
        by_site.setdefault(change.site, []).append(change)
    for event in facts.of(Operation):
        if event.function.rpartition(".")[2] in CLIPS:
            own = tuple(one for one in by_site.get(event.site, ()) if event.seq - NEAR < one.seq < event.seq)
            yield Clip(event, event.value, own)
    seen: set[tuple[SiteId | None, int]] = set()
    for change in changes:
        if change.by == "clip_grad_value_" and (change.site, change.step) not in seen:
            seen.add((change.site, change.step))
            yield Clip(change, None, (change,))


def _moment(facts: Facts, clip: Clip) -> str:
    """When the clip came: in time, after the step, before the backward, or with nothing to clip."""
    at = clip.event.seq
    write, step = _last_write(facts, at), _last_step(facts, at)
    filled = _filled(facts, at)
    empty = clip.norm is not None and clip.norm.magnitude == 0 and not clip.changed
    if empty and filled:
        return "nothing"
    if empty:
        return "before the backward"
    if step is not None and write is not None and step.seq > write.seq:
        following = [event for event in facts.of(OptimizerStepped) if event.seq > at]
        fresh = [event for event in facts.of(GradWritten) if event.seq > at]
        unused = not following or (fresh and fresh[0].seq < following[0].seq)
        refilled = bool(fresh) and fresh[0].before is not None and bool(fresh[0].before.magnitude)
        if unused and not refilled:
            return "after the step"
    return "in time"


def _last_write(facts: Facts, before: int) -> GradWritten | None:
    return next((write for write in reversed(facts.of(GradWritten)) if write.seq < before), None)


def _last_step(facts: Facts, before: int) -> OptimizerStepped | None:
    return next((step for step in reversed(facts.of(OptimizerStepped)) if step.seq < before), None)


def _filled(facts: Facts, before: int) -> list[GradWritten]:
    """The last writes of the buffers that are not empty at a moment, of tensors that optimizers hold."""
    last: dict[int, GradWritten | GradReset] = {}
    for event in facts.events:
        if event.seq >= before:
            break
        if isinstance(event, (GradWritten, GradReset)):
            last[event.tensor] = event
    return [
        event
        for event in last.values()
        if isinstance(event, GradWritten) and event.after.magnitude and event.tensor in facts.held
    ]


def _generator(source: Source, line: int) -> int | None:
    """The line that gives the clip's argument, where that is a generator kept in a variable."""
    statement = source.statement(line)
    call = next(calls(statement, *CLIPS), None) if statement is not None else None
    name = dotted(call.args[0]) if call is not None and call.args else ""
    if not name or call is None:
        return None
    found = [
        given.lineno
        for given, target, value in assignments(source.tree)
        if dotted(target) == name
        and (isinstance(value, ast.GeneratorExp) or callee(value) in LAZY)
        and function_of(source, given) in (function_of(source, call), None)
    ]
    return found[-1] if found else None
