"""Records a snippet of a program in this process, and spells what the ledger says about it on a line each.

A snippet's first line is line 2: the imports that every snippet needs stand on line 1.
"""

from __future__ import annotations

import textwrap
from typing import Any, TypeVar

from whygrad.engines.pytorch.session import Session
from whygrad.execute.instrument import instrument
from whygrad.execute.sites import SiteTable
from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    Contribution,
    Event,
    GradChanged,
    GradReset,
    GradWritten,
    Header,
    Lost,
    Named,
    Node,
    Operation,
    SiteId,
    TensorId,
)
from whygrad.ledger.values import Value

IMPORTS = "import torch, torch.nn as nn, torch.nn.functional as F\n"
PATH = "program.py"
HEADER = Header(whygrad="0", schema=1, program=PATH)

E = TypeVar("E", bound=Event)


class Events(list[Any]):
    """A sink that keeps the events in memory."""

    write = list.append


class Recording(Ledger):
    """The ledger of a snippet, what its names hold at the end, and what it raised."""

    def __init__(self, events: Events, names: dict[str, Any], error: BaseException | None) -> None:
        super().__init__(HEADER, events)
        self.events = events
        self.program = names
        self.error = error

    def all(self, kind: type[E]) -> list[E]:
        return list(self.of(kind))

    def one(self, kind: type[E]) -> E:
        [event] = self.of(kind)
        return event

    def line(self, site: SiteId | None) -> int | None:
        known = self.site(site)
        return None if known is None else known.line

    def code(self, site: SiteId | None) -> str:
        known = self.site(site)
        return "" if known is None else known.code

    def id(self, name: str) -> TensorId:
        """The tensor that bore `name` last."""
        found = self.find(name)
        assert found, f"no tensor is called {name!r}; names are {sorted({named.name for named in self.of(Named)})}"
        return found[0]

    def story(self, name: str) -> list[str]:
        """The history of a buffer: `line 4: 2 -> 7 = 5 through w * 5`, `line 5: 7 -> None by SGD.zero_grad`."""
        return [self._spelled(event) for event in self.history(self.id(name))]

    def terms(self, name: str) -> list[tuple[object, str, str]]:
        """(value, operation, expression) of each contribution to the last write of a buffer."""
        *_, last = (event for event in self.history(self.id(name)) if isinstance(event, GradWritten))
        return [(plain(term.value), term.operation, self.code(term.site)) for term in last.contributions]

    def operation(self, code: str) -> Operation:
        """The last operation that the expression `code` made."""
        *_, found = (event for event in self.of(Operation) if self.code(event.site) == code)
        return found

    def nodes(self) -> dict[str, Node]:
        """The nodes by the expression that made them (the last one for each)."""
        return {self.code(node.site): node for node in self.of(Node)}

    def _spelled(self, event: GradWritten | GradReset | GradChanged) -> str:
        line = self.line(event.site)
        place = "" if line is None else f"line {line}: "
        match event:
            case GradWritten():
                terms = " + ".join(self._term(term) for term in event.contributions)
                hooked = " (hooked)" if event.hooked else ""
                return f"{place}{spell(event.before)} -> {spell(event.after)} = {terms or '?'}{hooked}"
            case GradReset():
                to = "None" if event.to == "none" else "0"
                return f"{place}{spell(event.before)} -> {to} by {event.by}"
            case GradChanged():
                return f"{place}{spell(event.before)} -> {spell(event.after)} by {event.by}"

    def _term(self, term: Contribution) -> str:
        code = self.code(term.site)
        return f"{spell(term.value)} through {code or '?'}"


def record(
    source: str, depth: str = "full", raises: type[BaseException] | None = None, loses: str = "", **given: Any
) -> Recording:
    """Run a snippet under the recorder, with names `given` to it.

    It must raise `raises` and lose `loses` (again and again), or nothing.
    """
    events = Events()
    table = SiteTable()
    session = Session(events, table, depth)
    names: dict[str, Any] = {"__name__": "__main__", **given}
    code = instrument(IMPORTS + textwrap.dedent(source).strip("\n") + "\n", PATH, table, session.taps).instrumented
    error: BaseException | None = None
    session.start()
    try:
        exec(code, names)
    except BaseException as raised:
        error = raised
        error.__traceback__ = raised.__traceback__ and raised.__traceback__.tb_next
    finally:
        session.finish("returned" if error is None else "exception", 0 if error is None else 1, error)
    if error is not None and (raises is None or not isinstance(error, raises)):
        raise error
    assert raises is None or error is not None, f"the snippet did not raise {raises.__name__}"
    recording = Recording(events, names, error)
    lost = [f"{event.what}: {event.why}" for event in recording.of(Lost)]
    assert all(loses and loses in text for text in lost), lost
    assert lost or not loses, "nothing was lost"
    return recording


def plain(value: Value | None) -> object:
    """A number for one element, a flat list for several, the outline for what was not kept whole."""
    if value is None:
        return None
    if value.items is None:
        return f"{value.dtype} {value.shape}"
    items = [_short(item) for item in value.items]
    return items[0] if value.shape == () else items


def spell(value: Value | None) -> str:
    return str(plain(value)).replace("'", "")


def _short(item: Any) -> Any:
    if not isinstance(item, float):
        return item
    rounded = float(f"{item:.6g}")
    return int(rounded) if rounded == int(rounded) else rounded
