"""Backward passes and optimizer steps: where they were begun, how often, what they came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from whygrad.report.parts import Loop, Moved, Optimizing, Pass, Report, Spread
from whygrad.report.sections.words import in_code, place_cell
from whygrad.report.sheet import NOTICE, Paragraph, Pen, Rows, Section, styled
from whygrad.report.wording import say_number, say_plural, say_state, say_tensors, say_whole

ROWS = 6


def passes(report: Report, pen: Pen) -> Section | None:
    """Backward passes; in the short report only where there is a loop (the histories tell the others)."""
    loop = report.loops or any(one.times > 1 for one in report.passes)
    if not (report.passes and (loop or pen.verbose)) and not report.loops:
        return None
    shown = report.passes if pen.verbose else report.passes[:ROWS]
    rows = [_pass(one, pen) for one in shown]
    loops = [_loop(one, pen) for one in _joined_loops(report.loops)]
    return Section("Backward passes", Text(), [Rows(block) for block in (rows, loops) if block])


def optimizers(report: Report, pen: Pen) -> Section | None:
    """What the optimizers moved, and what they skipped."""
    if not report.optimizing:
        return None
    blocks: list[Paragraph | Rows] = []
    for one in report.optimizing:
        blocks.append(Rows([(place_cell(one.place), Text(one.name or one.kind), Text(_steps(one, pen)))]))
        blocks.append(Rows(list(_moved(one, pen)), indent=4))
    return Section("Optimizer steps", Text(), blocks)


def _pass(one: Pass, pen: Pen) -> tuple[Text, ...]:
    numbers = f"#{one.first}"
    if one.times > 1:
        to = "to" if one.last - one.first + 1 == one.times else pen.glyphs.dots
        numbers += f" {to} #{one.last}"
    times = pen.times(one.times) if one.times > 1 else ""
    facts = [_root(one, pen)]
    if one.not_finite and one.times > 1:
        facts.append(f"not finite {say_plural(one.not_finite, 'time')}")
    if pen.verbose:
        facts += [say_plural(one.nodes, "node"), say_plural(one.leaves, "leaf", "leaves")]
    facts += [name for name in ("retain_graph", "create_graph") if getattr(one, name)]
    detail = styled(", ".join(filter(None, facts)))
    if one.error:
        detail.append_text(styled(", ", (one.error if pen.verbose else one.error[:60], NOTICE)))
    code = in_code(one.place.code, pen, 30) if one.place is not None else Text(one.call)
    return place_cell(one.place), code, Text(numbers), Text(times), detail


def _root(one: Pass, pen: Pen) -> str:
    if one.root_first is None or one.root_last is None:
        return one.root if " " not in one.root else ""
    first, last = say_state(one.root_first), say_state(one.root_last)
    name = f"{one.root} " if one.root and " " not in one.root else ""
    if one.roots > 1:
        name = f"{one.roots} roots, the first {name or 'one '}"
    return f"{name}= {first}" if first == last else f"{name}{pen.arrow(first, last)}"


def _loop(one: Loop, pen: Pen) -> tuple[Text, ...]:
    facts = []
    if one.optimizer_steps not in (0, one.backwards):
        facts.append(say_plural(one.optimizer_steps, "optimizer step"))
    loss = one.loss
    if loss.first is not None and loss.last is not None:
        between = ""
        if loss.low is not None and loss.high is not None and {loss.low, loss.high} - {loss.first, loss.last}:
            between = f" ({say_number(loss.low)} to {say_number(loss.high)})"
        first, last = say_number(loss.first), say_number(loss.last)
        facts.append(f"loss = {first}" if first == last and not between else f"loss {pen.arrow(first, last)}{between}")
    steps = "recorded lightly"
    if one.first_step:
        steps = f"steps {one.first_step:,} to {one.last_step:,}, recorded lightly"
    return place_cell(one.place), Text(steps), Text(pen.times(one.backwards)), Text(", ".join(facts))


def _joined_loops(loops: Sequence[Loop]) -> Sequence[Loop]:
    """One row for all lightly recorded steps; one for each kind of passes, where there are several."""
    places = list(dict.fromkeys(one.place for one in loops))
    if len(loops) < 3:
        return loops
    return [_joined([one for one in loops if one.place == place]) for place in places]


def _joined(loops: Sequence[Loop]) -> Loop:
    first, last = loops[0], loops[-1]
    lows = [one.loss.low for one in loops if one.loss.low is not None]
    highs = [one.loss.high for one in loops if one.loss.high is not None]
    loss = Spread(
        first=first.loss.first, last=last.loss.last, low=min(lows, default=None), high=max(highs, default=None)
    )
    return Loop(
        seq=first.seq,
        place=first.place,
        first_step=first.first_step,
        last_step=last.last_step,
        backwards=sum(one.backwards for one in loops),
        optimizer_steps=sum(one.optimizer_steps for one in loops),
        loss=loss,
    )


def _steps(one: Optimizing, pen: Pen) -> str:
    first, last = (say_rates(rates) for rates in (one.lr_first, one.lr_last))
    rate = f", lr {first}" if first == last and first else f", lr {pen.arrow(first, last)}" if first or last else ""
    kind = f"{one.kind}, " if one.name else ""
    return f"{kind}{say_plural(one.steps, 'step')} recorded{rate}"


def say_rates(rates: tuple[float, ...]) -> str:
    return ", ".join(dict.fromkeys(map(say_number, rates)))


def _moved(one: Optimizing, pen: Pen) -> Iterator[tuple[Text, ...]]:
    moved = [parameter for parameter in one.moved if parameter.steps > parameter.unmoved]
    if pen.verbose:
        yield from (_parameter(parameter, pen) for parameter in moved)
    elif moved:
        most = max(moved, key=lambda parameter: parameter.last_change or 0.0)
        names = say_tensors([parameter.title for parameter in moved])
        whose = f"; {most.title} most" if len(moved) > 1 else ""
        yield Text("moved"), Text(f"{names}{whose}, {_change(most, pen)}")
    unmoved = [parameter for parameter in one.moved if parameter.unmoved]
    for zero in (True, False):
        if alike := [parameter for parameter in unmoved if (parameter.zero_grad == parameter.unmoved) is zero]:
            names = say_tensors([parameter.title for parameter in alike])
            times = max(parameter.unmoved for parameter in alike)
            steps = f" in {times:,} of {say_plural(one.steps, 'step')}" if one.steps > 1 else ""
            why = "all of the gradient was zero" if zero else "though there was a gradient"
            yield styled(("not moved", NOTICE)), Text(f"{names}: not a bit changed{steps}, {why}")
    by_reason: dict[str, list[Moved]] = {}
    for parameter in one.moved:
        if parameter.skipped:
            by_reason.setdefault(parameter.why, []).append(parameter)
    for why, skipped in by_reason.items():
        times = max(parameter.skipped for parameter in skipped)
        count = f"  {pen.times(times)}" if times > 1 else ""
        reason = f": grad was None, {why}" if why else ": grad was None"
        yield (
            styled(("skipped", NOTICE)),
            Text(say_tensors([parameter.title for parameter in skipped]) + reason + count),
        )


def _parameter(parameter: Moved, pen: Pen) -> tuple[Text, ...]:
    return Text("moved"), Text(
        f"{parameter.title}: {_change(parameter, pen)}, in {say_plural(parameter.steps, 'step')}"
    )


def _change(parameter: Moved, pen: Pen) -> str:
    """`by norm 0.056 → 0.019 (3.7% of its own)`."""
    first, last = (say_number(change or 0.0) for change in (parameter.first_change, parameter.last_change))
    moved = first if parameter.steps == 1 or first == last else pen.arrow(first, last)
    now = say_whole(parameter.after) if parameter.after is not None else None
    if now is not None:
        return f"by norm {moved}, to {now}"
    if parameter.last_change is None or not parameter.last_size:
        return f"by norm {moved}"
    return f"by norm {moved} ({100 * parameter.last_change / parameter.last_size:.2g}% of its own)"
