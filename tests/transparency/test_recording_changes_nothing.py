"""Recording never changes the program: each program says the same and ends the same, bare and recorded."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from side_by_side import Invocation, Outcome, Runner, invocations

HERE = Path(__file__).parent
CASES = HERE.parents[2] / "shared" / "cases"

SHOWN = 60
"""Lines of a difference that a failure shows."""

OWN = [invocation for program in sorted((HERE / "programs").glob("*.py")) for invocation in invocations(program)]
GIVEN = [Invocation(program, slow=True) for program in sorted(CASES.glob("*/*.py"))]
TOGETHER = Invocation(
    HERE / "together.py",
    tuple(str(case.program.relative_to(CASES)) for case in GIVEN),
    interpreter=("-B",),
    folder=CASES if GIVEN else None,
)
ABSENT = pytest.mark.skipif(not GIVEN, reason="the folder shared/cases is not beside the repository")


def parameter(invocation: Invocation) -> object:
    marks = []
    if invocation.slow:
        marks.append(pytest.mark.slow)
    if sys.version_info < invocation.needs:
        marks.append(pytest.mark.skip(reason=f"needs Python {'.'.join(map(str, invocation.needs))}"))
    if invocation.differs:
        marks.append(pytest.mark.xfail(reason=invocation.differs, strict=True))
    return pytest.param(invocation, id=invocation.name, marks=marks)


@pytest.fixture(scope="session")
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """Two processes at a time, busy with what the next tests will ask for; one in each worker of pytest-xdist."""
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    runner = Runner(2 if alone else 1)
    for item in request.session.items if alone else ():
        invocation = getattr(item, "callspec", None) and item.callspec.params.get("invocation")
        if isinstance(invocation, Invocation) and not item.get_closest_marker("skip"):
            runner.bare(invocation)
            runner.recorded(invocation)
    yield runner
    runner.close()


def compare(runner: Runner, invocation: Invocation) -> None:
    bare, recorded = runner.bare(invocation).result(), runner.recorded(invocation).result()
    if bare != recorded:
        pytest.fail(difference(bare, recorded), pytrace=False)


def difference(bare: Outcome, recorded: Outcome) -> str:
    parts = []
    if bare.status != recorded.status:
        parts.append(f"status: {bare.status} bare, {recorded.status} recorded")
    if bare.files != recorded.files:
        parts.append(f"files left behind: {bare.files} bare, {recorded.files} recorded")
    for stream in ("stdout", "stderr"):
        before, after = getattr(bare, stream), getattr(recorded, stream)
        if before != after:
            lines = [text.decode(errors="backslashreplace").splitlines() for text in (before, after)]
            changes = list(difflib.unified_diff(*lines, f"{stream} bare", f"{stream} recorded", lineterm="", n=2))
            parts.extend(
                [*changes[:SHOWN], *([f"... and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else [])]
            )
    return "\n".join(parts)


@pytest.mark.parametrize("invocation", [parameter(invocation) for invocation in OWN])
def test_program_of_the_corpus(runner: Runner, invocation: Invocation) -> None:
    compare(runner, invocation)


@ABSENT
@pytest.mark.parametrize("invocation", [pytest.param(TOGETHER, id="all")])
def test_cases_one_after_another(runner: Runner, invocation: Invocation) -> None:
    compare(runner, invocation)


@ABSENT
@pytest.mark.parametrize("invocation", [parameter(invocation) for invocation in GIVEN])
def test_case(runner: Runner, invocation: Invocation) -> None:
    compare(runner, invocation)
