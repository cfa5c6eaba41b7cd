"""The heart of the report: what happened to each gradient, event by event, or counted where it was a loop."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from rich.text import Text

from whygrad.ledger.events import TensorId
from whygrad.report.parts import Buffer, Change, Entry, Gap, Light, Omitted, Repeat, Report, Tally, Term
from whygrad.report.sections.words import on, place_cell, through
from whygrad.report.sheet import NAME, NOTICE, Paragraph, Pen, Rows, Section, joined, styled
from whygrad.report.wording import (
    common_module,
    is_moving,
    say_names,
    say_number,
    say_plural,
    say_shape,
    say_state,
    say_tensors,
    say_whole,
)


class Derivation(Protocol):
    """An expectation that does not rest on the engine, in lines to be shown under a buffer's history."""

    def lines(self) -> list[str]: ...


Derivations: TypeAlias = Mapping[TensorId, Derivation | Sequence[Derivation]]
"""Of a tensor, all derivations in one, or each for itself: then those that agree by numbers can share a line."""

STORY_ROWS = 12
"""A buffer's history is told up to this many rows; longer ones lose their middle."""

TOGETHER = 4
"""So many buffers with like histories are told as one table."""

TABLE_ROWS = 8
"""Buffers listed in a table."""

NAME_WIDTH = 24
"""Names in a table that are longer than this lose what they have in common."""

STATES = 8
"""States spelled out in a buffer's first line."""


def gradients(report: Report, pen: Pen, derivations: Derivations) -> Section:
    """Each buffer's life; those that stayed None last."""
    told = [buffer for buffer in report.buffers if not buffer.silent or buffer.tallies]
    silent = [buffer for buffer in report.buffers if buffer.silent and not buffer.tallies]
    blocks: list[Paragraph | Rows] = []
    for group in _alike(told):
        if pen.verbose or (len(group) < TOGETHER and not _has_loop(group[0]) and not _one_name(group)):
            for buffer in group:
                blocks.extend(_story(buffer, pen, derivations))
        else:
            blocks.extend(_table(group, pen, derivations))
    blocks.extend(_silent(silent, pen))
    if not report.buffers:
        blocks.append(Paragraph(Text(_no_buffers(report))))
    return Section("Gradients", Text(), blocks)


def _no_buffers(report: Report) -> str:
    if report.run.broken:
        return "not known: the recording broke down"
    if report.passes:
        return "no leaf received a gradient"
    if not report.run.how:
        return "the ledger ends before a tensor that requires grad or a backward was seen"
    return "no tensor requires grad, and no backward ran"


def _alike(buffers: Sequence[Buffer]) -> list[list[Buffer]]:
    """Buffers to which the same things happened, at the same places, equally often; in order of appearance."""
    groups: dict[Hashable, list[Buffer]] = {}
    for buffer in buffers:
        tallies = tuple((tally.kind, tally.cause, tally.place, tally.times) for tally in buffer.tallies)
        groups.setdefault((tallies, buffer.writes, buffer.resets), []).append(buffer)
    return list(groups.values())


def _has_loop(buffer: Buffer) -> bool:
    return not all(isinstance(entry, Change) for entry in buffer.entries)


def _one_name(group: Sequence[Buffer]) -> bool:
    """Whether it is one leaf made anew, again and again."""
    return len(group) > 1 and len({buffer.title for buffer in group}) == 1


# --- a history, event by event ----------------------------------------------------------------------


def _story(buffer: Buffer, pen: Pen, derivations: Derivations) -> Iterator[Paragraph | Rows]:
    yield Paragraph(_states(buffer, pen))
    rows = [row for entry in buffer.entries for row in _rows(entry, pen)]
    if len(rows) > STORY_ROWS and not pen.verbose:
        half = STORY_ROWS // 2
        left_out = Text(f"{len(rows) - 2 * half} more {pen.glyphs.dots}")
        rows = [*rows[:half], (Text(), left_out, Text(), Text()), *rows[-half:]]
    if rows:
        yield Rows(rows, indent=4)
    yield from _derived([buffer], derivations, pen)


def _states(buffer: Buffer, pen: Pen) -> Text:
    shape = "" if buffer.shape == () else f" {say_shape(buffer.shape)}"
    title = styled((buffer.title, NAME), shape, "  ")
    if buffer.silent:
        return title + styled(("None", NOTICE), f": {buffer.silent}")
    return title + _spelled(buffer, pen)


def _shortened(states: list[str], pen: Pen) -> list[str]:
    if len(states) <= STATES or pen.verbose:
        return states
    return [*states[: STATES // 2], pen.glyphs.dots, *states[-STATES // 2 + 1 :]]


def _rows(entry: Entry, pen: Pen) -> Iterator[tuple[Text, ...]]:
    if isinstance(entry, Change):
        yield place_cell(entry.place), _cause(entry), _change(entry, pen), _detail(entry, pen)
    elif isinstance(entry, Repeat):
        yield from _repeated(entry, pen)
    elif isinstance(entry, Light):
        yield Text(), Text("recorded lightly"), Text(), _light(entry, pen)
    else:
        yield Text(), Text(f"{entry.changes:,} more"), Text(), _omitted(entry)


def _repeated(loop: Repeat, pen: Pen) -> Iterator[tuple[Text, ...]]:
    """The rows of a loop's first turn, each with its count, and where its last turn had got to."""
    times = pen.times(loop.times)
    if loop.least != loop.most:
        times = f"{pen.glyphs.times} {loop.least:,} to {loop.most:,}"
    for first, last in zip(loop.first, loop.last, strict=True):
        if isinstance(first, Change) and isinstance(last, Change):
            yield (
                place_cell(first.place),
                _repeated_cause(first, last, times),
                _ends(first, last, pen),
                _detail(last, pen),
            )
        else:
            for place, cause, change, detail in _rows(last, pen):
                yield place, cause + Text(f", all {times}") if cause else cause, change, detail
    if is_moving(loop.norms) and len(loop.first) == 1:
        low, high = (say_number(norm or 0.0) for norm in (loop.norms.low, loop.norms.high))
        yield Text(), Text(), Text(), Text(f"norms between {low} and {high}")


def _cause(change: Change) -> Text:
    return Text(change.cause)


def _repeated_cause(first: Change, last: Change, times: str) -> Text:
    if first.backward is None:
        return Text(f"{first.cause} {times}")
    return Text(f"{first.cause} to #{last.backward} {times}")


def _change(change: Change, pen: Pen) -> Text:
    if change.kind == "returned":
        return Text(f"returned {say_state(change.after)}")
    if change.kind == "held":
        return Text(say_state(change.after))
    if change.before is None and change.after is None:
        return Text("stays None")
    return Text(pen.arrow(say_state(change.before), say_state(change.after)))


def _ends(first: Change, last: Change, pen: Pen) -> Text:
    """What the first turn did, and what the last one came to."""
    if first.kind == "added":
        return Text(pen.arrow(say_state(first.before), pen.glyphs.dots, say_state(last.after)))
    if last.kind == "reset":
        return Text(pen.arrow(pen.glyphs.dots, say_state(last.after)))
    change = _change(first, pen)
    if last.after == first.after:
        return change
    return change + Text(f", last {say_state(last.after)}")


def _detail(change: Change, pen: Pen) -> Text:
    lines = [_terms(change, pen)] if change.terms else []
    notes = []
    if change.since is not None:
        notes.append(styled((f"no reset since backward #{change.since}", NOTICE)))
    if change.hooked:
        notes.append(styled(("a hook replaced what arrived", NOTICE)))
    if change.thread:
        notes.append(styled(f"thread {change.thread}"))
    if notes and lines and len(change.terms) == 1:
        return joined([*lines, *notes], "; ")
    return joined([*lines, joined(notes, "; ")] if notes else lines, "\n")


def _terms(change: Change, pen: Pen) -> Text:
    """`27 through w ** 3, line 7 / + 20 through w * 2, line 6`; the number is left out where it is the buffer's."""
    terms = change.terms if pen.verbose else change.terms[:4]
    if len(change.terms) == 1 and change.kind != "added" and terms[0].times == 1 and not change.hooked:
        return through(terms[0], pen)
    signs = ("+ " if change.kind == "added" else "", "+ ")
    lines = [
        styled(signs[number > 0], f"{_term_value(term, f' {pen.glyphs.dots} ')} ", through(term, pen))
        for number, term in enumerate(terms)
    ]
    if len(terms) < len(change.terms):
        lines.append(Text(f"+ {len(change.terms) - len(terms)} more terms"))
    return joined(lines, "\n")


def _term_value(term: Term, dots: str) -> str:
    if term.times == 1:
        return say_state(term.value)
    if term.times == 2:
        return f"{say_state(term.value)} + {say_state(term.last)}"
    total = f"{say_state(term.total)} in " if term.total is not None else ""
    return f"{total}{term.times:,} terms ({say_state(term.value)}{dots}{say_state(term.last)})"


def _light(entry: Light, pen: Pen) -> Text:
    counts = f"{say_plural(entry.writes, 'write')}, {say_plural(entry.resets, 'reset')}"
    text = styled(f"steps {entry.first_step:,} to {entry.last_step:,}: " if entry.first_step else "", counts)
    if entry.norms.first is not None and entry.norms.last is not None:
        ends = pen.arrow(say_number(entry.norms.first), say_number(entry.norms.last))
        text.append(f"; norm {ends} in the {entry.sampled:,} sampled")
    return text


def _omitted(entry: Omitted) -> Text:
    text = styled(f"{say_plural(entry.writes, 'write')} among them")
    if entry.norms.low is not None and entry.norms.high is not None:
        text.append(f", norms between {say_number(entry.norms.low)} and {say_number(entry.norms.high)}")
    return text


def _derived(buffers: Sequence[Buffer], derivations: Derivations, pen: Pen) -> Iterator[Paragraph]:
    """Expectations that do not rest on autograd; in the short report, those that agree by numbers share a line."""
    agreeing: dict[str, list[str]] = {}
    for buffer in buffers:
        found = derivations.get(buffer.tensor, ())
        for derivation in found if isinstance(found, Sequence) else (found,):
            status = getattr(derivation, "status", "")
            if not pen.verbose and status == "agrees" and not getattr(derivation, "symbolic", False):
                compared = getattr(derivation, "compared", "")
                part = f": {compared}" if "not finite" in compared or "kink" in compared else ""
                agreeing.setdefault(buffer.title, []).extend(
                    f"{place}{part}" for place in getattr(derivation, "places", ())
                )
            elif pen.verbose or status != "not derived":
                style = NOTICE if status == "disagrees" else ""
                yield from (Paragraph(styled((line, style)), indent=4) for line in derivation.lines())
    if agreeing:
        places = say_names(list(dict.fromkeys(place for several in agreeing.values() for place in several)))
        whose = f"{say_tensors(list(agreeing))}: " if len(buffers) > 1 else ""
        yield Paragraph(Text(f"{whose}central differences in float64 agree ({places})"), indent=4)


# --- many buffers, or a loop: counted ----------------------------------------------------------------


def _table(group: Sequence[Buffer], pen: Pen, derivations: Derivations) -> Iterator[Paragraph | Rows]:
    """What happened, with counts, once for all; then a row for each buffer."""
    routes = [_route(buffer, pen) for buffer in group]
    common = len(set(routes)) == 1
    yield Paragraph(_group_title(group, pen))
    yield Rows(list(_counts(group[0], common, pen)), indent=4)
    shown = group if len(group) <= TABLE_ROWS + 1 else group[:TABLE_ROWS]
    if len(group) > 1:
        prefix = common_module([buffer.title for buffer in group])
        yield Rows([_buffer_row(buffer, not common, pen, prefix) for buffer in shown], indent=4)
    if rest := group[len(shown) :]:
        yield Paragraph(Text(f"and {len(rest)} more, {rest[0].title} to {rest[-1].title}"), indent=4)
    yield from _derived(group, derivations, pen)


def _counts(buffer: Buffer, with_route: bool, pen: Pen) -> Iterator[tuple[Text, ...]]:
    """The changes in the order of their lines, each with how often it happened."""
    tallies = sorted(buffer.tallies, key=lambda tally: tally.place.line if tally.place is not None else 0)
    once = all(tally.times == 1 for tally in tallies) and buffer.light is None
    for tally in tallies:
        times = Text("" if once else pen.times(tally.times))
        does = _does(tally)
        if with_route and len(tally.last.terms) == 1:
            does.append_text(styled(", ", through(tally.last.terms[0], pen)))
        yield times, place_cell(tally.place), Text(tally.cause), does
    if (light := buffer.light) is not None:
        yield Text(pen.times(max(light.writes, light.resets))), Text(), *_lightly(light)


def _route(buffer: Buffer, pen: Pen) -> Hashable:
    """Through which places the gradient comes, as it would be told."""
    return tuple(tuple(through(term, pen).plain for term in tally.last.terms) for tally in buffer.tallies)


def _group_title(group: Sequence[Buffer], pen: Pen) -> Text:
    first = group[0]
    if len(group) == 1:
        return joined([cell for cell in _buffer_row(first, False, pen) if cell], "  ")
    title = styled((say_tensors(list(dict.fromkeys(buffer.title for buffer in group))), NAME))
    if _one_name(group):
        count = len(group) + sum(buffer.siblings for buffer in group)
        return title + Text(f"  {count:,} tensors of this name{on(first.made, ', made on ')}; the first of them:")
    return title


def _does(tally: Tally) -> Text:
    """What these changes do to the buffer."""
    if tally.kind == "set":
        return Text("fills the empty buffer")
    if tally.kind == "added":
        since = f"; no reset since backward #{tally.since}"
        return styled("adds to what is there", (since if tally.since is not None else "", NOTICE))
    if tally.kind == "reset":
        return Text("resets it to None" if tally.last.after is None else "fills it with zeros")
    if tally.kind == "held":
        return Text("was there already")
    return Text("gives the gradient away, .grad left alone" if tally.kind == "returned" else "changes it in place")


def _lightly(light: Light) -> tuple[Text, ...]:
    counts = f"{say_plural(light.writes, 'write')}, {say_plural(light.resets, 'reset')}"
    steps = f"steps {light.first_step:,} to {light.last_step:,}: " if light.first_step else ""
    return Text("recorded lightly"), Text(steps + counts)


def _buffer_row(buffer: Buffer, with_route: bool, pen: Pen, prefix: str = "") -> tuple[Text, ...]:
    """One buffer's row; a long name is told without the `prefix` that the whole table shares."""
    short = buffer.title.removeprefix(prefix) if len(buffer.title) > NAME_WIDTH else buffer.title
    name = styled((short, NAME))
    shape = Text(say_shape(buffer.shape) if buffer.shape else "")
    writes = [tally.last for tally in buffer.tallies if tally.last.terms]
    detail = _terms(writes[-1], pen) if writes and with_route else Text()
    if any(tally.last.hooked for tally in buffer.tallies):
        said = styled(("a hook replaced what arrived", NOTICE))
        detail = joined([detail, said], "; ") if detail else said
    return name, shape, _course(buffer, pen) if _has_loop(buffer) else _spelled(buffer, pen), detail


def _spelled(buffer: Buffer, pen: Pen) -> Text:
    states = [pen.glyphs.dots if isinstance(state, Gap) else say_state(state) for state in buffer.states()]
    if not states and buffer.tallies:
        return Text(f"returned {say_state(buffer.tallies[-1].last.after)}")
    return Text(pen.arrow(*_shortened(states, pen)))


def _course(buffer: Buffer, pen: Pen) -> Text:
    """Where the gradient started and where it went, over all writes that were looked at."""
    norms = buffer.norms
    writes = [tally for tally in buffer.tallies if tally.kind in ("set", "added")]
    if writes and not buffer.resets and buffer.light is None:
        values = (writes[0].first.after, writes[-1].last.after)
        known = [end for value in values if value is not None and (end := say_whole(value)) is not None]
        if len(known) == 2:
            return Text(pen.arrow("None", known[0], pen.glyphs.dots, known[1]))
    if not writes and buffer.tallies and buffer.light is None:
        ends = [say_state(buffer.tallies[-1].first.after), say_state(buffer.tallies[-1].last.after)]
        return Text(f"returned {f' {pen.glyphs.dots} '.join(dict.fromkeys(ends))}")
    if norms.first is None or norms.last is None:
        return Text()
    text = Text(f"norm {pen.arrow(say_number(norms.first), say_number(norms.last))}")
    if is_moving(norms) and norms.low is not None and norms.high is not None:
        low, high = say_number(norms.low), say_number(norms.high)
        if {low, high} != {say_number(norms.first), say_number(norms.last)}:
            text.append(f" ({low} to {high})")
    return text


def _silent(buffers: Sequence[Buffer], pen: Pen) -> Iterator[Rows]:
    """Buffers that never held a gradient: one row for each reason."""
    by_reason: dict[str, list[Buffer]] = {}
    for buffer in buffers:
        by_reason.setdefault(buffer.silent, []).append(buffer)
    rows = [
        (
            styled((say_tensors([one.title for one in group], 400 if pen.verbose else 3), NAME)),
            styled(("None", NOTICE), f": {reason}"),
        )
        for reason, group in by_reason.items()
    ]
    if rows:
        yield Rows(rows)
