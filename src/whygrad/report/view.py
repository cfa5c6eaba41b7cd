"""Reads a ledger once and makes the parts of a report: pure, streaming, nothing that grows with steps.

report = view(ledger)
for buffer in report.buffers:
    print(buffer.title, buffer.states())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whygrad.ledger import Ledger, events
from whygrad.report.buffers import Buffers
from whygrad.report.calls import Calls
from whygrad.report.outcome import Outcome
from whygrad.report.parts import Report, SourceText
from whygrad.report.passes import Passes
from whygrad.report.places import Places
from whygrad.report.setting import Setting
from whygrad.report.traces import Traces

Handler = Callable[[Any], None]


def view(ledger: Ledger) -> Report:
    """Everything that a report of this ledger may show."""
    places = Places(ledger)
    setting = Setting(ledger, places)
    buffers = Buffers(ledger, places)
    passes = Passes(ledger, places)
    calls = Calls(ledger, places)
    outcome = Outcome(ledger, places, passes)
    traces = Traces(ledger, places, buffers)
    handlers: dict[type, tuple[Handler, ...]] = {
        events.Tensor: (traces.parameter,),
        events.Operation: (buffers.operation, traces.operation),
        events.BackwardBegan: (passes.began,),
        events.BackwardEnded: (passes.ended, buffers.backward_ended),
        events.GradWritten: (buffers.written,),
        events.GradReturned: (buffers.returned,),
        events.GradReset: (buffers.reset,),
        events.GradChanged: (buffers.changed,),
        events.DataChanged: (traces.data_changed,),
        events.RequiresGradChanged: (buffers.requires_grad, traces.requires_grad),
        events.ModeChanged: (calls.mode_changed,),
        events.GradModeChanged: (calls.grad_mode_changed,),
        events.ModuleCalled: (calls.called, outcome.called, buffers.called),
        events.OptimizerStepped: (traces.stepped,),
        events.StepsFolded: (buffers.folded, passes.folded),
        events.Check: (outcome.checked,),
        events.Raised: (outcome.raised,),
        events.Warned: (outcome.warned,),
        events.Environment: (setting.environment,),
        events.Seeded: (setting.seeded,),
        events.Ended: (setting.ended,),
        events.Noted: (setting.noted,),
        events.Lost: (setting.lost,),
        events.DepthChanged: (setting.depth_changed,),
    }
    for event in ledger:
        for handler in handlers.get(type(event), ()):
            handler(event)
    return Report(
        run=setting.run(),
        failures=outcome.failures(),
        nonfinite=buffers.nonfinite(),
        warnings=outcome.warnings(),
        buffers=buffers.buffers(),
        passes=passes.passes(),
        loops=passes.loops(),
        modules=calls.entries(),
        grad_modes=calls.grad_modes(),
        assertions=outcome.assertions(),
        cuts=traces.cuts(),
        switched=traces.switched(),
        writes=traces.writes(),
        optimizing=traces.optimizing(),
        remarks=setting.remarks(),
        sources=tuple(SourceText(path=path, text=ledger.source(path) or "") for path in ledger.sources()),
    )
