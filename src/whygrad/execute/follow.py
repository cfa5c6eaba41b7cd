"""Follow code that was compiled without taps: the frame that a `with whygrad.record()` stands in.

Functions of the same file get instrumented code for the time of the recording. The running frame itself cannot,
so it is followed line by line (`sys.settrace`): expressions inside a line are not told apart there.
"""

from __future__ import annotations

import gc
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

import msgspec

from whygrad.execute.instrument import Taps, instrument
from whygrad.execute.sites import OperandForm, Passed, Place, Several, SiteTable

LineOver = Callable[[int], None]
"""Told the site of a statement when it is over."""


class Follower:
    """Follows one frame, and swaps in instrumented code for the functions of its file."""

    def __init__(self, table: SiteTable, taps: Taps, line_over: LineOver, lost: Callable[[str, str], None]) -> None:
        self.table = table
        self.taps = taps
        self.line_over = line_over
        self.lost = lost
        self._swapped: list[tuple[FunctionType, CodeType]] = []
        self._bound: dict[tuple[str, int], list[int]] = {}
        self._pending: tuple[int, dict[str, Any]] | None = None
        self._frame: FrameType | None = None
        self._tracing = False

    def start(self, frame: FrameType) -> None:
        """Follow `frame` from its next line on."""
        path = frame.f_code.co_filename
        source = "".join(linecache.getlines(path, frame.f_globals))
        if not source:
            self.lost("lines of the code", f"the source of {path} is not there")
            return
        first = len(self.table.places)
        compiled = instrument(source, path, self.table, self.taps)
        for site in range(first, len(self.table.places)):
            place = self.table.places[site]
            if place.targets or place.attribute or place.item:
                self._bound.setdefault((path, place.line), []).append(site)
        self._swap(compiled.instrumented)
        introduce(self.table, self.taps, self.table.statement(path, frame.f_lineno), frame.f_globals, "<module>")
        if frame.f_locals is not frame.f_globals:
            site = self.table.statement(path, frame.f_lineno)
            introduce(self.table, self.taps, site, frame.f_locals, frame.f_code.co_name)
        if sys.gettrace() is not None:
            self.lost("the lines of this block", "another tracer (a debugger, coverage) is active")
            return
        self._frame = frame
        self._tracing = True
        frame.f_trace = self._local
        sys.settrace(self._called)

    def stop(self) -> None:
        """Leave everything as it was."""
        if self._tracing:
            sys.settrace(None)
            self._tracing = False
        frame, self._frame = self._frame, None
        if frame is not None:
            frame.f_trace = None
            self._finish(frame)
        while self._swapped:
            function, code = self._swapped.pop()
            function.__code__ = code

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        """Other frames are not traced: theirs is instrumented code, or none of the user's."""

    def _local(self, frame: FrameType, event: str, arg: Any) -> Any:  # noqa: ARG002
        if event == "line" and frame is self._frame:
            self._finish(frame)
            self._pending = (frame.f_lineno, dict(frame.f_locals))
        return self._local

    def _finish(self, frame: FrameType) -> None:
        """The line that was pending is over: tell what it bound and wrote."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        line, before = pending
        path = frame.f_code.co_filename
        after = frame.f_locals
        for site in self._bound.get((path, line), ()):
            self._tell(site, self.table.places[site], before, after)
        self.line_over(self.table.statement(path, line))

    def _tell(self, site: int, place: Place, before: dict[str, Any], after: Any) -> None:
        names = [target for target in place.targets if target.isidentifier() and target in after]
        if place.operation and names and not place.attribute and not place.item:
            self.taps.value(site, after[names[0]], *_passed(place.operands, before))
        elif names:
            self.taps.names(site, *(after.get(target) for target in place.targets))
        elif place.attribute or place.item:
            owner = place.code.split(".", 1)[0].split("[", 1)[0].strip()
            if owner in after:
                self.taps.base(site, after[owner])
                self.taps.wrote(site)

    def _swap(self, code: CodeType) -> None:
        """Give the live functions of the file their instrumented code."""
        instrumented = {_key(inner): inner for inner in _nested(code)}
        for function in gc.get_objects():
            if type(function) is FunctionType and function.__code__.co_filename == code.co_filename:
                inner = instrumented.get(_key(function.__code__))
                if inner is not None and inner.co_freevars == function.__code__.co_freevars:
                    self._swapped.append((function, function.__code__))
                    function.__code__ = inner


def introduce(table: SiteTable, taps: Taps, site: int, names: Mapping[str, Any], scope: str) -> None:
    """Tell the names that tensors and modules have already when the recording begins."""
    known = {name: value for name, value in list(names.items()) if not name.startswith("_")}
    place = msgspec.structs.replace(table.places[site], targets=tuple(known), function=scope)
    taps.names(table.add(place), *known.values())


def _passed(operands: tuple[OperandForm, ...], names: dict[str, Any]) -> list[Any]:
    """The values of the operands that are plain names, as they were before the line ran."""
    found: dict[int, Any] = {}

    def collect(forms: tuple[OperandForm, ...]) -> None:
        for operand in forms:
            if isinstance(operand.form, Passed):
                found[operand.form.index] = names.get(operand.code)
            elif isinstance(operand.form, Several):
                collect(operand.form.items)

    collect(operands)
    return [found.get(index) for index in range(max(found, default=-1) + 1)]


def _nested(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _nested(const)


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno
