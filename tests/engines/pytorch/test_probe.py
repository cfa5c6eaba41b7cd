"""A probed function does what it did, at the lines at which it did it."""

from __future__ import annotations

import importlib.util
import inspect
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from whygrad.engines.pytorch.probe import ProbeError, Probes

SOURCE = '''
import functools


def nothing(): ...


def one_line(a, b=2): return a + b


@functools.lru_cache(
    maxsize=None
)
def decorated(
    a, /, b, *rest,
    key=(
1, 2),
    **others
):
    """A text
at the margin, which is no code:

def decorated(): pass
    """
# a comment at the margin
    text = """
x = 1
"""
    def inner():
        return "inner"

    if b:
        return [
a, b, text, inner()
]
    for _ in range(1):
        try:
            return key
        finally:
            pass


class Owner:
    class Base:
        def hello(self):
            return "hello"

    class Derived(Base):
        def hello(self):
            said = super().hello()
            return said + "!"

    def fails(self):
        if True:
            raise ValueError("as ever")


def after(): return "after"
'''


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "probed.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("probed", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


class Heard:
    """What the probe of one function told."""

    def __init__(self, function: Any) -> None:
        self.told: list[Any] = []
        self.probes = Probes()
        self.probes.add(
            function,
            before=lambda *given: self.told.append(given),
            after=self._after,
            failed=lambda: self.told.append("failed"),
        )

    def _after(self, result: Any) -> Any:
        self.told.append(result)
        return result


def test_arguments_and_result_are_told_in_order(module: ModuleType) -> None:
    heard = Heard(module.decorated)
    assert module.decorated("a", 1, 2, other=3)[:2] == ["a", 1]
    assert heard.told[0] == ("a", 1, (2,), (1, 2), {"other": 3})
    assert heard.told[1] == ["a", 1, "\nx = 1\n", "inner"]


def test_every_return_is_told_and_so_is_the_end(module: ModuleType) -> None:
    heard = Heard(module.decorated)
    assert module.decorated("a", 0) == (1, 2)
    assert heard.told[-1] == (1, 2)
    heard = Heard(module.nothing)
    assert module.nothing() is None
    assert heard.told == [(), None]


def test_a_function_on_one_line_ends_where_the_next_begins(module: ModuleType) -> None:
    heard = Heard(module.one_line)
    assert module.one_line(1) == 3
    assert heard.told == [(1, 2), 3]


def test_super_without_arguments_still_works(module: ModuleType) -> None:
    derived = module.Owner.Derived()
    heard = Heard(module.Owner.Derived.hello)
    assert derived.hello() == "hello!"
    assert heard.told == [(derived,), "hello!"]


def test_a_failure_is_told_and_its_traceback_is_the_same(module: ModuleType) -> None:
    def seen() -> list[str]:
        with pytest.raises(ValueError, match="as ever") as caught:
            module.Owner().fails()
        return traceback.format_tb(caught.value.__traceback__)[1:]

    bare = seen()
    heard = Heard(module.Owner.fails)
    assert seen() == bare
    assert heard.told[-1] == "failed"


def test_restored_functions_are_as_they_were(module: ModuleType) -> None:
    before = module.one_line.__code__
    heard = Heard(module.one_line)
    assert module.one_line.__code__ is not before
    heard.probes.restore()
    assert module.one_line.__code__ is before


def test_a_function_whose_source_is_gone_is_refused() -> None:
    space: dict[str, Any] = {}
    exec("def made(): return 1", space)
    with pytest.raises(ProbeError, match="the source of made is not there"):
        Heard(space["made"])


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else (value,)
        for member in members:
            if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                yield member


@pytest.mark.parametrize("name", ["textwrap", "inspect", "traceback"])
def test_probed_functions_of_the_library_keep_their_lines(name: str) -> None:
    for function in _functions(importlib.import_module(name)):
        code = function.__code__
        if hasattr(function, "__wrapped__") or not inspect.isfunction(function):
            continue
        heard = Heard(function)
        probed = function.__code__
        heard.probes.restore()
        assert probed.co_firstlineno == code.co_firstlineno
        lines = {line for _, _, line in probed.co_lines() if line}
        assert {line for _, _, line in code.co_lines() if line} <= lines | {code.co_firstlineno}
