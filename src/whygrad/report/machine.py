"""The report for machines: one JSON object, a summary of the ledger in plain types, with a published schema.

`render` gives the text, `summary` the object, `schema` what docs/schema/run.json holds. Where the other reports
fold a loop into a sentence, this one lists the events; what it leaves out of a long life it counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from whygrad.ledger import Ledger, events
from whygrad.ledger.events import TensorId
from whygrad.ledger.values import Number, Value, number
from whygrad.report import parts
from whygrad.report.places import Places
from whygrad.report.summary import (
    Buffer,
    Change,
    Check,
    Contribution,
    Derived,
    Elements,
    Engine,
    Environment,
    Finding,
    Folded,
    Mode,
    ModuleCall,
    Program,
    Raised,
    Remark,
    Seed,
    Shape,
    Side,
    Summary,
)
from whygrad.report.view import view
from whygrad.rules.diagnose import Diagnosis

if TYPE_CHECKING:
    from whygrad.answers.derive import Derivation

    Derivations: TypeAlias = Mapping[TensorId, Sequence[Derivation]]

HISTORY_ENDS = 100
"""Of a buffer's life, so many events are listed from its start, and as many up to its end."""

Written: TypeAlias = events.GradWritten | events.GradReturned | events.GradReset | events.GradChanged


def render(ledger: Ledger, *, derivations: Derivations | None = None, diagnosis: Diagnosis | None = None) -> str:
    """The summary as one line of JSON."""
    return msgspec.json.encode(summary(ledger, derivations=derivations, diagnosis=diagnosis)).decode() + "\n"


def summary(ledger: Ledger, *, derivations: Derivations | None = None, diagnosis: Diagnosis | None = None) -> Summary:
    """The whole ledger in one object whose size does not grow with the steps of the program."""
    derived = derivations or {}
    report = view(ledger)
    run = report.run
    lives = _lives(ledger, [buffer.tensor for buffer in report.buffers])
    return Summary(
        program=Program(path=run.program, kind=run.kind, argv=run.argv, ended=run.how, exit_code=run.exit_code),
        engine=Engine(name=run.engine, version=run.engine_version),
        environment=_environment(run),
        buffers=tuple(
            _buffer(buffer, lives[buffer.tensor], derived.get(buffer.tensor, ())) for buffer in report.buffers
        ),
        modules=tuple(_call(entry) for entry in report.modules if isinstance(entry, parts.Call)),
        modes=_modes(report),
        checks=tuple(_check(assertion, report.failures) for assertion in report.assertions),
        raised=tuple(map(_raised, report.failures)),
        findings=_findings(diagnosis) if diagnosis is not None else (),
        lost=_lost(report),
    )


def _findings(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            code=one.code,
            slug=one.slug,
            severity=one.severity.value,
            path=one.place.path,
            line=one.place.line,
            title=one.title,
            fix="suggested" if one.fix else None,
            happened=one.happened,
            why=one.why,
            change=one.fix,
            evidence=tuple(evidence.seq for evidence in one.evidence),
        )
        for one in diagnosis.findings
    )


def _environment(run: parts.Run) -> Environment:
    return Environment(
        whygrad=run.whygrad,
        python=run.python,
        platform=run.platform,
        numpy=run.numpy,
        threads=run.threads,
        deterministic=run.deterministic,
        default_dtype=run.default_dtype,
        device=run.device,
        seeds=tuple(Seed(generator=seed.generator, seed=seed.seed) for seed in run.seeds),
        settings_changed=run.settings_changed,
        depth=run.depth,
    )


# --- the lives of the buffers ---------------------------------------------------------------------


class _Life:
    """The two ends of one buffer's life, while the events go by."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._value: Value | None = None
        self._start: list[Change] = []
        self._end: deque[Change] = deque(maxlen=HISTORY_ENDS)
        self._count = 0
        self.folded: list[Folded] = []

    def add(self, event: Written) -> None:
        kind, before, after, by = _told(event, self._value)
        if kind != "returned":
            self._value = after
        change = Change(
            **_at(self._places.at(event.site)),
            event=kind,
            step=event.step,
            backward=event.backward if isinstance(event, events.GradWritten | events.GradReturned) else None,
            by=by,
            before=_elements(before),
            before_norm=_norm(before),
            value=_elements(after),
            norm=_norm(after),
            nan=after.nan if after is not None else 0,
            inf=after.inf if after is not None else 0,
            hooked=isinstance(event, events.GradWritten) and event.hooked,
            contributions=self._contributions(event),
        )
        self._count += 1
        (self._start if len(self._start) < HISTORY_ENDS else self._end).append(change)

    def history(self) -> tuple[Change, ...]:
        return (*self._start, *self._end)

    def omitted(self) -> int:
        return self._count - len(self._start) - len(self._end)

    def _contributions(self, event: Written) -> tuple[Contribution, ...]:
        if not isinstance(event, events.GradWritten | events.GradReturned):
            return ()
        return tuple(
            Contribution(
                **_at(self._places.at(term.site)),
                operation=term.operation,
                value=_elements(term.value),
                norm=_norm(term.value),
            )
            for term in event.contributions
        )


def _told(event: Written, value: Value | None) -> tuple[Any, Value | None, Value | None, str]:
    """What kind of event it was, the buffer before and after, and by what where it was no backward."""
    if isinstance(event, events.GradWritten):
        return ("set" if event.before is None else "added"), event.before, event.after, ""
    if isinstance(event, events.GradReturned):
        return "returned", value, event.value, ""
    if isinstance(event, events.GradReset):
        return "reset", event.before, None if event.to == "none" else _zeros(event.before), event.by
    return "changed", event.before, event.after, event.by


def _zeros(like: Value | None) -> Value | None:
    if like is None:
        return None
    items = None if like.items is None else (0.0,) * len(like.items)
    return Value(shape=like.shape, dtype=like.dtype, items=items, norm=None if items is not None else 0.0)


def _lives(ledger: Ledger, tensors: Sequence[TensorId]) -> dict[TensorId, _Life]:
    places = Places(ledger)
    lives = {tensor: _Life(places) for tensor in tensors}
    for event in ledger:
        if isinstance(event, events.GradWritten | events.GradReturned | events.GradReset | events.GradChanged):
            if (life := lives.get(event.tensor)) is not None:
                life.add(event)
        elif isinstance(event, events.StepsFolded):
            for fold in event.buffers:
                if (life := lives.get(fold.tensor)) is not None:
                    life.folded.append(_folded(event, fold))
    return lives


def _folded(event: events.StepsFolded, fold: events.BufferFold) -> Folded:
    return Folded(
        first_step=event.first,
        last_step=event.last,
        writes=fold.writes,
        resets=fold.resets,
        sampled=fold.sampled,
        norm_first=fold.norm_first,
        norm_last=fold.norm_last,
        norm_low=fold.norm_low,
        norm_high=fold.norm_high,
    )


def _buffer(buffer: parts.Buffer, life: _Life, derivations: Sequence[Derivation]) -> Buffer:
    return Buffer(
        **_at(buffer.made),
        name=buffer.title,
        names=buffer.names,
        shape=buffer.shape,
        dtype=buffer.dtype,
        device=buffer.device,
        leaf=buffer.leaf,
        requires_grad=buffer.requires_grad,
        silent=buffer.silent,
        siblings=buffer.siblings,
        history=life.history(),
        omitted=life.omitted(),
        folded=tuple(life.folded),
        derivations=tuple(map(_derived, derivations)),
    )


def _derived(derivation: Derivation) -> Derived:
    return Derived(
        backward=derivation.backward,
        status=derivation.status.value,
        expected=_numbers(derivation.expected),
        observed=_numbers(derivation.observed),
        difference=None if derivation.difference is None else number(derivation.difference),
        tolerance=None if derivation.tolerance is None else number(derivation.tolerance),
        text=" ".join(derivation.lines()),
    )


def _numbers(values: Sequence[float] | None) -> tuple[Number, ...] | None:
    return None if values is None else tuple(map(number, values))


# --- modules, checks, exceptions --------------------------------------------------------------------


def _call(call: parts.Call) -> ModuleCall:
    return ModuleCall(
        **_at(call.place),
        module=call.module,
        kind=call.kind,
        depth=call.depth,
        training=call.training,
        grad_mode=call.grad_mode,
        inputs=tuple(_shape(size) for size in call.inputs),
        outputs=tuple(_shape(size) for size in call.outputs),
        value=_elements(call.last),
        error=call.error,
        broken=call.broken,
        times=call.times,
    )


def _shape(size: parts.Size) -> Shape:
    return Shape(least=size.low, most=size.high, dtype=size.dtype)


def _modes(report: parts.Report) -> tuple[Mode, ...]:
    """Switches of training flags and of the grad mode in the order in which each first happened."""
    switches: list[parts.ModeSwitch | parts.GradMode] = [*report.grad_modes]
    switches += [entry for entry in report.modules if isinstance(entry, parts.ModeSwitch)]
    return tuple(map(_mode, sorted(switches, key=lambda switch: switch.seq)))


def _mode(switch: parts.ModeSwitch | parts.GradMode) -> Mode:
    if isinstance(switch, parts.GradMode):
        return Mode(**_at(switch.place), call=switch.by, mode=switch.mode, module="", changed=(), times=switch.times)
    return Mode(
        **_at(switch.place),
        call=switch.call,
        mode="train" if switch.training else "eval",
        module=switch.module,
        changed=switch.changed,
        times=switch.times,
    )


def _check(assertion: parts.Assertion, failures: Sequence[parts.Failure]) -> Check:
    caught = sum(
        failure.times
        for failure in failures
        if failure.caught is not None and failure.assertion is not None and failure.place == assertion.place
    )
    return Check(
        **_at(assertion.place) | {"expression": assertion.code},
        held=assertion.held,
        failed=assertion.failed,
        caught=caught,
        sides=tuple(Side(expression=code, value=value) for code, value in assertion.sides),
    )


def _raised(failure: parts.Failure) -> Raised:
    stopped = failure.stopped
    return Raised(
        **_at(failure.place),
        kind=failure.kind,
        text=failure.text,
        caught=failure.caught.line if failure.caught is not None else None,
        times=failure.times,
        module=failure.module,
        broken=failure.broken,
        freed_by=stopped.freed_by if stopped is not None else None,
        written_line=stopped.written_at.line if stopped is not None and stopped.written_at is not None else None,
    )


def _lost(report: parts.Report) -> tuple[Remark, ...]:
    lost = [
        Remark(**_at(remark.place), kind=remark.kind, text=remark.text, times=remark.times) for remark in report.remarks
    ]
    if report.run.torn:
        lost.append(Remark(**_at(None), kind="lost", text=report.run.torn, times=1))
    return tuple(lost)


# --- values and places ------------------------------------------------------------------------------


def _at(place: parts.Place | None) -> dict[str, Any]:
    """The fields that say where."""
    if place is None:
        return {"path": None, "line": None, "expression": None}
    return {"path": place.path, "line": place.line, "expression": place.code}


def _elements(value: Value | None) -> Elements:
    """All elements of a small tensor, nested as its shape says."""
    return None if value is None or value.items is None else _nested(value.items, value.shape)


def _nested(items: Sequence[Number], shape: Sequence[int]) -> Number | list[Any]:
    if not shape:
        return items[0]
    if len(shape) == 1:
        return list(items)
    step = len(items) // shape[0] if shape[0] else 0
    return [_nested(items[row * step : (row + 1) * step], shape[1:]) for row in range(shape[0])]


def _norm(value: Value | None) -> Number | None:
    magnitude = value.magnitude if value is not None else None
    return None if magnitude is None else number(magnitude)
