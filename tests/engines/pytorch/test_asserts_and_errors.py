"""Assertions with their sides, exceptions and warnings with their lines, seeds, how the program ended."""

import warnings

import pytest
from recording import Recording, record

from whygrad.ledger.events import Check, Ended, Environment, Raised, Seeded, Warned


def check(run: Recording) -> tuple[bool, tuple[tuple[str, str], ...]]:
    event = run.one(Check)
    return event.held, event.sides


def test_assertion_that_held() -> None:
    run = record("""
        x = torch.tensor(2.0)
        assert x.item() == 2.0
    """)
    assert check(run) == (True, (("x.item()", "2.0"),))
    assert run.one(Check).code == "x.item() == 2.0"


def test_assertion_that_failed() -> None:
    run = record("a, b = 1, 2\nassert a == b, 'they differ'", raises=AssertionError)
    assert check(run) == (False, (("a", "1"), ("b", "2")))
    raised = run.one(Raised)
    assert (raised.kind, raised.text, run.line(raised.site), raised.caught) == (
        "AssertionError",
        "they differ",
        3,
        None,
    )


def test_failure_that_the_program_expects_is_caught() -> None:
    run = record("""
        try:
            assert 1 > 2
        except AssertionError:
            print(end="")
    """)
    raised = run.one(Raised)
    assert (run.line(raised.site), run.line(raised.caught)) == (3, 4)
    assert not run.one(Check).held


@pytest.mark.parametrize(
    ("condition", "sides"),
    [
        ("torch.equal(x, y)", (("torch.equal(x, y)", "True"),)),
        ("not x.requires_grad", (("x.requires_grad", "False"),)),
        ("x.sum() > 1 and True", (("x.sum()", "2.0"),)),
        ("x is y", (("x", "[1.0, 1.0] of shape (2,)"), ("y", "[1.0, 1.0] of shape (2,)"))),
        ("x.shape == (2,)", (("x.shape", "torch.Size([2])"), ("(2,)", "(2,)"))),
        ("(x == y).all()", (("(x == y).all()", "True"),)),
        ("1 < x.numel() < 3", (("x.numel()", "2"),)),
        ("len(big) == 100", (("len(big)", "100"),)),
        ("big.any()", (("big.any()", "True"),)),
        ("big.max() == 1", (("big.max()", "1.0"),)),
    ],
)
def test_sides(condition: str, sides: tuple[tuple[str, str], ...]) -> None:
    setup = "x = torch.ones(2); y = x; big = torch.ones(100)\n"
    event = record(setup + f"assert {condition}").one(Check)
    assert event.sides == sides


def test_side_whose_text_would_run_the_programs_code_is_not_printed() -> None:
    run = record("""
        class Loud:
            def __repr__(self):
                raise RuntimeError("do not print me")
            def __bool__(self):
                return True
        assert Loud()
    """)
    assert check(run) == (True, (("Loud()", "a Loud"),))


def test_condition_is_evaluated_once() -> None:
    run = record("""
        seen = []
        class Once:
            def __bool__(self):
                seen.append(1)
                return True
        assert Once()
    """)
    assert run.program["seen"] == [1]


def test_sides_of_an_assertion_in_a_function_do_not_mix() -> None:
    run = record("""
        def half(x):
            assert x >= 0
            return x if x < 1 else half(x - 1)
        assert half(1.5) == 0.5
    """)
    assert [event.sides for event in run.of(Check)] == [
        (("x", "1.5"),), (("x", "0.5"),), (("half(1.5)", "0.5"),),
    ]  # fmt: skip


def test_assertion_in_a_loop_is_written_a_limited_number_of_times() -> None:
    run = record("for i in range(10_000):\n    assert i >= 0")
    assert len(run.all(Check)) == 50


def test_failure_after_many_that_held_is_written() -> None:
    run = record("for i in range(100):\n    assert i < 99", raises=AssertionError)
    *_, last = run.of(Check)
    assert (last.held, last.sides) == (False, (("i", "99"),))


def test_exception_of_a_library_is_at_the_line_that_called() -> None:
    run = record("torch.ones(2) @ torch.ones(3)", raises=RuntimeError)
    raised = run.one(Raised)
    assert (raised.kind, run.line(raised.site)) == ("RuntimeError", 2)
    assert "size" in raised.text


def test_exception_from_a_function_is_at_the_innermost_line() -> None:
    run = record(
        """
        def inner():
            raise KeyError("deep")
        def outer():
            inner()
        outer()
        """,
        raises=KeyError,
    )
    assert run.line(run.one(Raised).site) == 3


def test_caught_exception_raised_again_is_told_twice_with_its_line() -> None:
    run = record(
        """
        try:
            raise ValueError("first")
        except ValueError as error:
            raise KeyError("second") from error
        """,
        raises=KeyError,
    )
    first, second = run.all(Raised)
    assert (first.kind, run.line(first.site), run.line(first.caught)) == ("ValueError", 3, 4)
    assert (second.kind, run.line(second.site), second.caught) == ("KeyError", 5, None)


def test_exception_whose_text_fails_has_none() -> None:
    run = record(
        """
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no text")
        raise Mute()
        """,
        raises=Exception,
    )
    assert run.one(Raised).text == ""


def test_exception_in_a_generator_and_in_a_comprehension() -> None:
    run = record("""
        def numbers():
            yield 1
            raise ValueError("end")
        try:
            [x for x in numbers()]
        except ValueError:
            pass
    """)
    assert run.line(run.one(Raised).site) == 4


def test_exception_group() -> None:
    run = record("""
        try:
            raise ExceptionGroup("several", [ValueError("one")])
        except* ValueError:
            pass
    """)
    raised = run.one(Raised)
    assert (raised.kind, run.line(raised.caught)) == ("ExceptionGroup", 4)


def test_warning_of_the_program() -> None:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        run = record('import warnings\nwarnings.warn("look out")')
    warned = run.one(Warned)
    assert (warned.kind, warned.text, run.line(warned.site)) == ("UserWarning", "look out", 3)


def test_warning_of_a_library_is_at_the_line_that_called() -> None:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        run = record("x = torch.ones(2, requires_grad=True)\ny = torch.tensor(x)")
    warned = run.one(Warned)
    assert warned.text.startswith("To copy construct from a tensor")
    assert run.line(warned.site) == 3


def test_warning_that_is_filtered_is_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = record('import warnings\nwarnings.warn("look out")')
    assert run.all(Warned) == []


def test_seeds() -> None:
    run = record("""
        import random, numpy as np
        torch.manual_seed(7)
        random.seed(8)
        np.random.seed(9)
        seed = 10
        rng = np.random.default_rng(seed)
    """)
    assert [(event.generator, event.seed, run.line(event.site)) for event in run.of(Seeded)] == [
        ("torch", "7", 3), ("random", "8", 4), ("numpy", "9", 5), ("numpy generator", "10", 7),
    ]  # fmt: skip


def test_environment_is_told_and_again_when_a_setting_changed() -> None:
    run = record("""
        torch.set_default_dtype(torch.float64)
        x = torch.ones(1)
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(True)
    """)
    try:
        first, last = run.all(Environment)
    finally:
        import torch

        torch.use_deterministic_algorithms(False)
    assert (first.engine, first.default_dtype, first.deterministic) == ("pytorch", "float32", False)
    assert last.deterministic


def test_ending_is_the_last_event() -> None:
    run = record("x = 1")
    assert run.events[-1] == run.one(Ended)
    assert (run.one(Ended).how, run.one(Ended).exit_code) == ("returned", 0)
