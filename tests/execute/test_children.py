"""A program in a child harms nothing but its own result."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from whygrad.execute.children import Children, run_in_order
from whygrad.execute.jobs import Job, Limits, Result, Step

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forked children are for Linux")

USUAL = Limits()
SHORT = Limits(time_s=1.0)


@pytest.fixture(scope="module")
def runs() -> Iterator[Children]:
    with Children("embedded") as children:
        yield children


def job(source: str, *asks: str, limits: Limits = USUAL, records: bool = False) -> Job:
    return Job((Step(source, asks=asks),), limits=limits, records=records)


def run(runs: Children, source: str, *asks: str, limits: Limits = USUAL) -> Result:
    return runs.run(job(source, *asks, limits=limits))


BACKWARD = "import torch\nw = torch.tensor([1.0, 2.0], requires_grad=True)\n(w * w).sum().backward()\n"


def test_what_it_prints_and_what_is_asked_come_back_apart(runs: Children) -> None:
    result = run(runs, BACKWARD + "print('end')", "print('asked') or w.grad", "w.grad[0].item() == 2")
    assert result.printed == "end\n"
    value, truth = result.steps[0].replies
    assert value.value is not None
    assert (value.value.kind, value.value.value, value.value.shape) == ("tensor", [2.0, 4.0], (2,))
    assert truth.holds


def test_an_error_comes_back_with_its_line_and_bases(runs: Children) -> None:
    failure = run(runs, "x = 1\nraise ModuleNotFoundError('no')").failure
    assert failure is not None
    assert (failure.kind, failure.line, failure.text) == ("ModuleNotFoundError", 2, "no")
    assert failure.is_a("ImportError")


def test_an_error_skips_the_rest_of_its_group_only(runs: Children) -> None:
    steps = (Step("1 / 0", group=0), Step("print('no')", group=0), Step("print('yes')", group=1))
    assert runs.run(Job(steps)).printed == "yes\n"


def test_steps_share_their_names_and_a_last_expression_is_shown(runs: Children) -> None:
    result = runs.run(Job((Step("x = 20"), Step("x += 1\nx * 2", shows=True))))
    value = result.steps[1].value
    assert value is not None
    assert value.value == 42


def test_nothing_leaks_from_one_to_the_next(runs: Children) -> None:
    first = "import torch, sys\ntorch.set_grad_enabled(False)\ntorch.set_default_dtype(torch.float64)\nsys.leak = 1"
    second = "import torch, sys\nprint(torch.is_grad_enabled(), torch.get_default_dtype(), hasattr(sys, 'leak'))"
    assert [result.printed for result in run_in_order(runs, [job(first), job(second)])] == [
        "",
        "True torch.float32 False\n",
    ]


@pytest.mark.parametrize(
    ("source", "stopped", "why"),
    [
        ("while True: pass", "time", "it did not end within 1 s"),
        ("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)", "time", "within 1 s"),
        ("import os\nos._exit(3)", "exit", "it ended its process itself, with exit code 3"),
        ("while True: print('x' * 1000)", "output", "it printed more than 1024 kB"),
        ("import ctypes\nctypes.string_at(0)", "signal", "killed by SIGSEGV"),
    ],
)
def test_a_program_that_does_not_end_as_it_should(runs: Children, source: str, stopped: str, why: str) -> None:
    result = run(runs, source, limits=SHORT)
    assert result.stopped == stopped
    assert why in result.why
    assert run(runs, "print('next')").printed == "next\n"


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        ("x = bytearray(5 << 30)", "memory"),
        ("open('f', 'wb').write(bytes(100 << 20))", "files"),
        ("import os\nwhile True: os.fork()", "processes"),
        ("import threading, time\n"
         "for _ in range(99): threading.Thread(target=time.sleep, args=[9]).start()", "processes"),
    ],
)  # fmt: skip
def test_a_limit_is_named(runs: Children, source: str, limit: str) -> None:
    result = run(runs, source, limits=Limits(time_s=3.0))
    assert result.failure is not None or result.stopped == "time"
    if result.failure is not None:
        assert result.failure.limit == limit
    assert run(runs, "print('next')").printed == "next\n"


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.rmdir(os.getcwd())",
        "import sys\nsys.stdout.close()",
        "import os\nos.close(1)",
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
        "import os\nos.closerange(0, 1000)",
    ],
)
def test_what_it_does_to_its_surroundings_stays_there(runs: Children, source: str) -> None:
    run(runs, source, limits=SHORT)
    assert run(runs, "print('next')").printed == "next\n"


def test_there_is_no_network(runs: Children) -> None:
    failure = run(runs, "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)").failure
    assert failure is not None
    assert "unreachable" in failure.text


def test_a_recorded_job_can_be_asked_about_its_ledger(runs: Children) -> None:
    result = runs.run(job(BACKWARD, "[ledger.name(leaf) for leaf in ledger.leaves()]", records=True))
    (reply,) = result.steps[0].replies
    assert reply.value is not None
    assert reply.value.text == "['w']"
    assert b"grad written" in result.events


def test_an_object_that_is_equal_to_all_proves_nothing(runs: Children) -> None:
    source = "class Any:\n    def __eq__(self, other): return self\n    def __bool__(self): return True\nx = Any()"
    (reply,) = run(runs, source, "x == 3").steps[0].replies
    assert not reply.holds


def test_a_seed_differs_where_the_program_has_none(runs: Children) -> None:
    step = Step("import random\nprint(random.random())")
    one, same, other = run_in_order(runs, [Job((step,), seed=1), Job((step,), seed=1), Job((step,), seed=2)])
    assert one.printed == same.printed != other.printed


@pytest.mark.slow
def test_without_fork_children_are_spawned() -> None:
    from whygrad.execute.spawned import Spawned

    runs = Spawned("embedded")
    try:
        good = runs.run(job(BACKWARD + "print('end')", "w.grad.tolist()"))
        assert good.printed == "end\n"
        assert good.steps[0].replies[0].value is not None
        assert runs.run(job("import os\nos._exit(3)")).stopped == "exit"
        assert runs.run(job("1 / 0")).failure is not None
    finally:
        runs.close()
