"""Practice line by line: answers, hints, attempts, progress."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from whygrad.execute.children import Children
from whygrad.practice import bank
from whygrad.practice.lines import Lines, in_order, listing
from whygrad.practice.problem import Problem
from whygrad.practice.progress import Progress, Standing


@pytest.fixture(scope="module")
def runs() -> Iterator[Children]:
    with Children("embedded") as children:
        yield children


@pytest.fixture
def progress(tmp_path: Path) -> Iterator[Progress]:
    with Progress(str(tmp_path / "progress.sqlite")) as kept:
        yield kept


def problem(name: str) -> Problem:
    return next(one for one in bank.problems() if one.front.id == name)


def practise(runs: Children, progress: Progress, name: str, *typed: str) -> str:
    said: list[str] = []
    lines = iter(typed)

    def ask(prompt: str) -> str:
        said.append(prompt)
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    Lines(progress, lambda _: runs, ask, said.append).practise([problem(name)])
    return "\n".join(said)


def test_a_right_answer_brings_the_evidence_and_the_explanation(runs: Children, progress: Progress) -> None:
    said = practise(runs, progress, "two-losses-one-leaf", "c")
    assert "Right.\n  The run shows: tensor(7.)" in said
    assert "The first pass puts 3 into the buffer" in said
    assert "D: Gradients of separate passes are added" in said
    assert progress.standing(problem("two-losses-one-leaf")) == Standing(True, 1, 0)


def test_a_wrong_answer_does_not_give_the_key_away_before_the_second(runs: Children, progress: Progress) -> None:
    said = practise(runs, progress, "two-losses-one-leaf", "A")
    assert "No.\n  That is the gradient of the second loss alone.\n  Try once more." in said
    assert "The run shows" not in said
    said = practise(runs, progress, "two-losses-one-leaf", "A", "h", "B")
    assert "Hint 1 of 2: Each loss has a graph of its own." in said
    assert "The answer is C: tensor(7.)" in said
    assert progress.standing(problem("two-losses-one-leaf")) == Standing(False, 3, 1)


@pytest.mark.parametrize("typed", ["", "Z", "what?"])
def test_what_is_no_answer_is_no_attempt(typed: str, runs: Children, progress: Progress) -> None:
    said = practise(runs, progress, "two-losses-one-leaf", typed)
    assert "Type one of A, B, C, D, or h, s, q." in said
    assert progress.standing(problem("two-losses-one-leaf")) == Standing()


def test_code_is_judged_from_its_file(
    runs: Children, progress: Progress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = practise(runs, progress, "write-your-own-reset", "")
    assert "Not yet: assert gradients(" in said
    solution = problem("write-your-own-reset").solution
    assert solution is not None
    (tmp_path / "write_your_own_reset.py").write_text(solution.text)
    assert "Right: every check holds." in practise(runs, progress, "write-your-own-reset", "")


def test_a_problem_that_changed_is_open_again(runs: Children, progress: Progress) -> None:
    practise(runs, progress, "two-losses-one-leaf", "C")
    solved = problem("two-losses-one-leaf")
    other = msgspec.structs.replace(solved, question="Another question?")
    moved = msgspec.structs.replace(solved, path="elsewhere.md")
    assert progress.standing(other).right is None
    assert progress.standing(moved).right is True


def test_what_was_wrong_comes_first_and_what_is_solved_last(runs: Children, progress: Progress) -> None:
    practise(runs, progress, "two-losses-one-leaf", "C")
    practise(runs, progress, "zero-or-none", "A")
    chosen = [problem(name) for name in ("two-losses-one-leaf", "one-pass-several-paths", "zero-or-none")]
    assert [one.front.id for one in in_order(chosen, progress)] == [
        "zero-or-none",
        "one-pass-several-paths",
        "two-losses-one-leaf",
    ]
    assert [line.split()[0] for line in listing(chosen, progress)] == ["solved", "open", "wrong"]


def test_two_sessions_at_once_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "progress.sqlite")
    one = problem("two-losses-one-leaf")
    with Progress(path) as first, Progress(path) as second:
        for kept in (first, second, first, second):
            kept.answered(one, "A", is_right=False, hints=0)
        assert first.standing(one).tries == second.standing(one).tries == 4


def test_every_line_fits_into_eighty_columns(runs: Children, progress: Progress) -> None:
    said = practise(runs, progress, "lab-fresh-or-freed", "B", "C")
    assert max(map(len, said.splitlines())) <= 80
