"""Why a module is in training or evaluation mode, and what a module last did."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.answers.why.answer import Answer, Moment, Sentence
from whygrad.answers.why.words import counted, quoted, several, shape_text, short_text
from whygrad.ledger import Ledger
from whygrad.ledger.events import ModeChanged, Module, ModuleCalled, ModuleId, TensorId

SENSITIVE = {
    "Dropout": "drops values in training mode and passes them on in evaluation mode",
    "AlphaDropout": "drops values in training mode and passes them on in evaluation mode",
    "FeatureAlphaDropout": "drops values in training mode and passes them on in evaluation mode",
    "BatchNorm": "uses the batch's statistics in training mode and its running ones in evaluation mode",
    "SyncBatchNorm": "uses the batch's statistics in training mode and its running ones in evaluation mode",
    "RReLU": "draws random slopes in training mode",
}
"""What the flag means to the modules that read it, by the start of their class's name."""

RECORDING = {"on": "on", "off": "off (no_grad)", "inference": "off (inference mode)"}

SHOWN = 4


def explain_training(ledger: Ledger, about: str, module: ModuleId, moment: Moment) -> Answer:
    """The last `train()` or `eval()` that decided the flag, and what it changed."""
    path = _path(ledger, module, about.removesuffix(".training"))
    decided = _decided(ledger, module, path, moment)
    calls = [call for call in ledger.calls(module) if call.seq <= moment.seq]
    last = calls[-1] if calls else None
    meaning = _what_it_means(ledger, path)
    if decided is None:
        state, reason = (
            (last.training, "assigned") if last is not None and not last.training else (True, "never changed")
        )
        seen = f"the call at {ledger.where(last.site)} found it so, and no train() or eval() was called" if last else ""
        text = seen if not state else "no train() or eval() was called, and a module starts in training mode"
        events: tuple[int, ...] = (last.seq,) if last is not None else ()
    elif last is not None and last.seq > decided.seq and last.training != decided.training:
        state, reason = last.training, "assigned"
        was = f"{quoted(ledger, decided.site)} had set it to {decided.training}"
        text = f"{was}, and the call at {ledger.where(last.site)} found it {state}; an assignment changed it in between"
        events = (decided.seq, last.seq)
    else:
        state, reason = decided.training, _deed(decided)
        changed = any(path == name for name, _ in decided.changed)
        effect = f"which changed it from {not state}" if changed else f"which left it as it was ({state} already)"
        text = f"{quoted(ledger, decided.site)} was the last to set it, {effect}"
        events = (decided.seq,)
        meaning = [*_effects(ledger, decided, calls), *meaning]
    return Answer(
        about=about,
        reason=reason,
        moment=moment,
        headline=Sentence(f"{about} is {state} at {moment.text}: {text}.", events),
        sentences=tuple(meaning),
        value=str(state),
    )


def _effects(ledger: Ledger, decided: ModeChanged, calls: list[ModuleCalled]) -> list[Sentence]:
    """Which modules the switch changed, and the calls that ran in the new mode."""
    names = [name for name, _ in decided.changed]
    text = "It changed nothing: every module had this flag already."
    if names:
        text = f"It changed {several(names, SHOWN)} from {not decided.training} to {decided.training}."
    sentences = [Sentence(text, (decided.seq,))]
    since = [call for call in calls if call.seq > decided.seq]
    if since:
        places = several(list(dict.fromkeys(ledger.where(call.site) for call in since)), SHOWN)
        sentences.append(Sentence(f"Since then it was called at {places}.", tuple(call.seq for call in since[:SHOWN])))
    return sentences


def _decided(ledger: Ledger, module: ModuleId, path: str, moment: Moment) -> ModeChanged | None:
    """The last mode change that covered the module: its own, or that of a module around it."""
    found = None
    for change in ledger.of(ModeChanged):
        if change.seq > moment.seq:
            break
        root = ledger.module(change.module)
        around = root is not None and bool(root.path) and (path + ".").startswith(root.path + ".")
        if change.module == module or around or any(changed == path for changed, _ in change.changed):
            found = change
    return found


def _what_it_means(ledger: Ledger, path: str) -> list[Sentence]:
    """Which modules inside read the flag; and that grad recording is another matter."""
    readers = [
        (inner, meaning)
        for inner in _inside(ledger, path)
        if (meaning := next((text for kind, text in SENSITIVE.items() if inner.kind.startswith(kind)), ""))
    ]
    sentences = [Sentence(f"{_titled(inner)} {meaning}.", (inner.seq,)) for inner, meaning in readers[:2]]
    if len(readers) > 2:
        more = tuple(inner.seq for inner, _ in readers[2:])
        sentences.append(Sentence(f"{counted(len(more), 'more module')} inside read the flag.", more))
    sentences.append(Sentence("Grad recording is another switch: no_grad and inference_mode, not train() and eval()."))
    return sentences


def _inside(ledger: Ledger, path: str) -> Iterator[Module]:
    """The module of that path and those inside it."""
    seen = set()
    for module in ledger.of(Module):
        if path and (module.path + ".").startswith(path + ".") and module.path not in seen:
            seen.add(module.path)
            yield module


def _path(ledger: Ledger, module: ModuleId, fallback: str) -> str:
    known = ledger.module(module)
    return known.path if known is not None and known.path else fallback


def _titled(module: Module) -> str:
    config = f"({module.config})" if module.config else ""
    return f"{module.path} ({module.kind}{config})"


# --- a module by itself -------------------------------------------------------------------------------


def explain_module(ledger: Ledger, about: str, module: ModuleId, moment: Moment) -> Answer:
    """What a module is, its mode, its last call, and whether its parameters have had gradients."""
    known = ledger.module(module)
    assert known is not None
    title = f"{known.kind}({known.config})" if known.config else f"a {known.kind}"
    calls = [call for call in ledger.calls(module) if call.seq <= moment.seq]
    called = f"called {counted(len(calls), 'time')}" if calls else "not called"
    headline = Sentence(f"{about} is {title}, {called} by {moment.text}.", (known.seq,))
    sentences = [Sentence(_last_call(ledger, calls[-1]), (calls[-1].seq,))] if calls else []
    sentences.append(explain_training(ledger, f"{about}.training", module, moment).headline)
    sentences += _parameters(ledger, known, moment)
    return Answer(about=about, reason="module", moment=moment, headline=headline, sentences=tuple(sentences))


def _last_call(ledger: Ledger, call: ModuleCalled) -> str:
    given = several([shape_text(shape.shape) for shape in call.inputs], SHOWN) or "nothing"
    mode = "training" if call.training else "evaluation"
    recording = RECORDING.get(call.grad_mode, call.grad_mode)
    text = f"Its last call ({ledger.where(call.site)}) took {given} in {mode} mode with grad recording {recording}"
    if call.broken or call.error:
        return f"{text} and failed: {(call.broken or call.error.splitlines()[0]).rstrip('.')}."
    result = several([shape_text(shape.shape) for shape in call.outputs], SHOWN)
    value = f", {short_text(call.value)}" if call.value is not None else ""
    return f"{text} and gave {result}{value}." if result else f"{text}."


def _parameters(ledger: Ledger, known: Module, moment: Moment) -> list[Sentence]:
    held: dict[TensorId, str] = {}
    for inner in _inside(ledger, known.path):
        for name, tensor in inner.parameters:
            held.setdefault(tensor, f"{inner.path}.{name}")
    if not held:
        return []
    without = [
        name for tensor, name in held.items() if not any(event.seq <= moment.seq for event in ledger.history(tensor))
    ]
    state = f"without a gradient so far: {several(without, SHOWN)}"
    if not without:
        state = "all of them have had gradients"
    elif len(without) == len(held):
        state = "none of them has had a gradient"
    return [Sentence(f"It holds {counted(len(held), 'parameter')}; {state}.", (known.seq,))]


def _deed(change: ModeChanged) -> str:
    """What decided the flag: a call, or an assignment."""
    if "=" in change.call:
        return "assigned"
    return "train()" if change.training else "eval()"
