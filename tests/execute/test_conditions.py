"""Conditions and failed assertions stand in tracebacks where Python alone would put them."""

import ast
import linecache
import traceback

import pytest

from whygrad.execute.conditions import Span, decided_and_raised
from whygrad.execute.instrument import instrument
from whygrad.execute.sites import SiteTable

CONDITIONS = [
    "assert a == b",
    "assert not a != b",
    "assert a is b, 'text'",
    "assert a and a < b < 0 and b, (\n    'a text',\n    b)",
    "assert (\n    a\n    > b\n), 'text'",
    "assert a > b or not (\n    b)",
    "assert b if a else b > 1",
    "assert bad == bad",
    "assert bad",
    "assert a and bad > 1",
    "if bad > 1:\n    pass",
    "if not (\n    bad\n    > 1):\n    pass",
    "while a and bad: pass",
    "x = 1 if bad > 2 else 3",
    "assert False",
    "assert 0, 'never'",
]

PREAMBLE = """
class Bad:
    def __bool__(self): raise ValueError("neither true nor false")
    def __eq__(self, other): return self
    def __gt__(self, other): return self
bad, a, b = Bad(), 1, 0
"""


class Silent:
    """Taps that only hand values on, and count checks."""

    def __init__(self) -> None:
        self.checks: list[bool] = []

    def value(self, _site: int, value: object = None, *_names: object) -> object:
        return value

    def __getattr__(self, _name: str) -> object:
        return self.value

    def side(self, _site: int, _index: int, value: object) -> object:
        return value

    def check(self, _site: int, held: bool) -> None:
        self.checks.append(held)

    def names(self, *_: object) -> None: ...

    updated = caught = names


def outcome(code: object) -> list[str]:
    try:
        exec(code, {"__name__": "program"})  # type: ignore[call-overload]
    except Exception as error:
        return traceback.format_exception(type(error), error, error.__traceback__.tb_next)  # type: ignore[union-attr]
    return []


@pytest.mark.parametrize("condition", CONDITIONS)
def test_traceback_is_pythons_own(condition: str) -> None:
    source = PREAMBLE + condition + "\n"
    path = "<condition>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    taps = Silent()
    compiled = instrument(source, path, SiteTable(), taps)  # type: ignore[arg-type]
    assert outcome(compiled.instrumented) == outcome(compiled.plain)


def test_outcome_of_an_assertion_is_told_once() -> None:
    taps = Silent()
    source = PREAMBLE + "assert a > b\ntry:\n    assert a < b\nexcept AssertionError:\n    pass\n"
    exec(instrument(source, "<told>", SiteTable(), taps).instrumented, {"__name__": "program"})  # type: ignore[arg-type]
    assert taps.checks == [True, False]


def test_message_is_not_evaluated_when_the_assertion_holds() -> None:
    source = "assert True == True, 1 / 0\n"
    exec(instrument(source, "<held>", SiteTable(), Silent()).instrumented, {})  # type: ignore[arg-type]


def test_place_of_an_assertion_with_yield_is_the_statement() -> None:
    (function,) = ast.parse("def f():\n    assert (yield) == 1").body
    assert isinstance(function, ast.FunctionDef)
    (assertion,) = function.body
    assert isinstance(assertion, ast.Assert)
    whole = Span(2, 4, 2, 23)
    assert decided_and_raised(assertion) == (whole, whole)
