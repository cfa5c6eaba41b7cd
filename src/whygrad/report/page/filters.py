"""What the templates may call: the wording that all reports share, as text or with the marks of HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup, escape
from rich.text import Text

from whygrad.ledger.values import Value
from whygrad.report.page.course import course, shortened
from whygrad.report.page.visible import visible
from whygrad.report.parts import Buffer, Change, Cut, Failure, Gap, NonFinite, Part, Spread, Term
from whygrad.report.sections.failures import telling, told
from whygrad.report.sections.graph import MEANS
from whygrad.report.sections.words import through
from whygrad.report.sheet import UNICODE, Pen, styled
from whygrad.report.wording import (
    is_moving,
    say_first_sentence,
    say_names,
    say_norm,
    say_number,
    say_plural,
    say_shape,
    say_sizes,
    say_state,
    say_whole,
)

CODE_LIMIT = 72
NAME_LIMIT = 40
SHORT_STATES = 6
"""States of a buffer that is told in one line."""

MESSAGE_LIMIT = 1500
"""Characters of a piece of source, of each name in a list of names, and of an exception with its cause."""


class PagePen(Pen):
    """Tells everything, each piece of source at most `CODE_LIMIT` characters long."""

    def clipped(self, code: str, most: int = 0) -> str:  # noqa: ARG002
        return clipped(code)


PEN = PagePen(glyphs=UNICODE, verbose=True)


def clipped(text: str, most: int = CODE_LIMIT) -> str:
    """On one line, and not too long."""
    flat = " ".join(text[: most * 8].split())
    return flat if len(flat) <= most and len(text) <= most * 8 else flat[: most - 1].rstrip() + "…"


def names(texts: tuple[str, ...]) -> str:
    return say_names([clipped(text, NAME_LIMIT) for text in texts], 6)


def state(value: Any) -> str:
    """A state of a buffer."""
    return "…" if isinstance(value, Gap) else say_state(value)


def facts(buffer: Buffer) -> str:
    """What kind of tensor a buffer belongs to: `leaf, float32, shape (2, 3)`."""
    shape = f"shape {say_shape(buffer.shape)}" if buffer.shape else "scalar"
    device = buffer.device if buffer.device != "cpu" else ""
    other = say_names([name for name in buffer.names if name != buffer.title])
    kind = buffer.origin if buffer.origin == "parameter" else "leaf" if buffer.leaf else "not a leaf"
    also = f"also known as {other}" if other else ""
    return ", ".join(filter(None, (kind, shape, buffer.dtype.removeprefix("torch."), device, also)))


def result(value: Value | None) -> str:
    """What came out of a call, if it is small; the only element of a tensor stands without its brackets."""
    if value is None:
        return ""
    return (say_whole(value) or "") if value.scalar is None else say_number(value.scalar)


def prose(text: str) -> Markup:
    """Text whose pieces of source are marked as such."""
    parts = str(visible(text)).split("`")
    if len(parts) % 2 == 0:
        return escape("`".join(parts))
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def titled(title: str) -> Markup:
    """A tensor's name as code, or its description as text."""
    if title.startswith(("a ", "the result of ")):
        return prose(title)
    return Markup("<code>{}</code>").format(visible(title))


def in_short(buffer: Buffer) -> str:
    """A life in one line: its states, or where its norms went if it was a loop."""
    norms = buffer.norms
    if all(isinstance(entry, Change) for entry in buffer.entries) or norms.first is None or norms.last is None:
        states = [state(step.value) for step in course(buffer)]
        most = SHORT_STATES
        return PEN.arrow(*(states if len(states) <= most else [*states[: most // 2], "…", *states[-most // 2 :]]))
    beyond = f" (from {say_number(norms.low or 0)} to {say_number(norms.high or 0)})" if is_wider(norms) else ""
    return f"norm {PEN.arrow(say_number(norms.first), say_number(norms.last))}{beyond}"


def last_state(buffer: Buffer) -> str:
    states = buffer.states()
    return state(states[-1]) if states else "None"


def is_wider(norms: Spread) -> bool:
    """Whether a gradient was ever beyond its first and its last norm."""
    ends = (norms.first, norms.last)
    return is_moving(norms) and {say_number(end) for end in ends if end is not None} != {
        say_number(end) for end in (norms.low, norms.high) if end is not None
    }


def is_known(norms: Spread) -> bool:
    return norms.first is not None and norms.last is not None


def set_from(text: Text, link: str = "") -> Markup:
    """A sentence of the terminal report: its source becomes code, its warnings bold, its lines lines.

    With `link`, the id of a place in the source, the code leads there.
    """
    code = Markup('<a href="#{}"><code>{{}}</code></a>').format(link) if link else Markup("<code>{}</code>")
    tags = {"italic": code, "bold": Markup("<b>{}</b>"), "yellow": Markup("<b>{}</b>")}
    lines = []
    for line in text.split("\n"):
        pieces = Markup("")
        for piece in line.divide(sorted({edge for span in line.spans for edge in (span.start, span.end)})):
            styles = " ".join(str(span.style) for span in piece.spans)
            tag = next((tag for style, tag in tags.items() if style in styles), Markup("{}"))
            pieces += tag.format(visible(piece.plain))
        lines.append(pieces)
    return Markup("<br>").join(lines)


def set_through(term: Term, link: str) -> Markup:
    """Where a term came through."""
    return set_from(through(term, PEN), link)


def set_told(part: Failure | NonFinite) -> Markup:
    """An exception with its cause, or how a gradient stopped being finite."""
    if isinstance(part, Failure):
        return set_from(told(part, PEN)[:MESSAGE_LIMIT])
    text = styled(part.cause, f": {clipped(part.title)}: ", (say_norm(part.value), "bold"))
    return set_from(text + styled(", ", through(part.term, PEN)) if part.term is not None else text)


def meaning(cut: Cut) -> str:
    """What a cut did to the tensor."""
    of, result = clipped(cut.of or "a tensor"), clipped(cut.result or "the result")
    if (means := MEANS.get(cut.by)) is None:
        return f"{cut.by} gave {result} without the history of {of}"
    return means.format(of=of, result=result)


def kind_of(part: Part) -> str:
    """The class of a part, for a template that tells several kinds in one list."""
    return type(part).__name__.lower()


FILTERS: Mapping[str, Callable[..., Any]] = {
    "clipped": clipped,
    "count": "{:,}".format,
    "course": lambda buffer: shortened(course(buffer)),
    "facts": facts,
    "first_sentence": say_first_sentence,
    "in_short": in_short,
    "kind": kind_of,
    "last_state": last_state,
    "meaning": meaning,
    "names": names,
    "number": say_number,
    "prose": prose,
    "result": result,
    "plural": lambda count, noun, plural="": say_plural(count, noun, plural),
    "shape": say_shape,
    "sizes": say_sizes,
    "state": state,
    "telling": telling,
    "through": set_through,
    "titled": titled,
    "told": set_told,
}

TESTS: Mapping[str, Callable[..., bool]] = {
    "wider": is_wider,
    "known": is_known,
}
