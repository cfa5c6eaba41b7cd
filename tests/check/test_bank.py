"""The bank is true: every answer in it was settled by running it, on each engine that it is meant for."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from whygrad.check import paths
from whygrad.check.defect import Name
from whygrad.check.problems import check_problems
from whygrad.check.runner import Runner
from whygrad.practice.parse import read
from whygrad.practice.problem import Engine, Kind, Problem

PROBLEMS = Path(__file__).parents[2] / "problems"
BANK = [read(path) for path in paths.files([str(PROBLEMS)])]


def test_every_problem_is_true(pytestconfig: pytest.Config) -> None:
    kept = pytestconfig.cache.mkdir("bank") / "results.sqlite" if pytestconfig.cache is not None else None
    with Runner(str(kept) if kept else None) as runner:
        checked = check_problems(BANK, runner, ["pytorch", "embedded"])
    assert [f"{one.path}:{one.line}: {one.name.value}: {one.observed}" for one in checked.defects] == []
    assert checked.ran == len(BANK)


def test_every_kind_is_there() -> None:
    assert {problem.front.kind for problem in BANK} == set(Kind)


def test_no_two_have_the_same_code_but_for_numbers() -> None:
    shapes = Counter(
        (re.sub(r"\d+(\.\d+)?", "N", problem.code.text), problem.front.kind, problem.question)
        for problem in BANK
        if problem.code is not None
    )
    assert [code for code, count in shapes.items() if count > 1] == []


@pytest.mark.parametrize("problem", BANK, ids=lambda problem: problem.front.id)
def test_it_has_hints_an_explanation_and_links_that_lead_somewhere(problem: Problem) -> None:
    assert Path(problem.path).stem == problem.front.id
    assert problem.hints or problem.front.kind is Kind.EXPLAIN
    assert problem.explanation is not None
    text = Path(problem.path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+\.md)\)", text):
        assert (Path(problem.path).parent / target).exists(), target


@pytest.mark.parametrize("kind", [Kind.PREDICT, Kind.CHOICE, Kind.CONCEPT, Kind.WHAT_IF], ids=lambda kind: kind.value)
def test_a_key_that_is_moved_is_caught(kind: Kind) -> None:
    problem = next(one for one in BANK if one.front.kind is kind and Engine.EMBEDDED in one.front.engines)
    wrong = next(option for option in problem.options if not option.keyed)
    options = tuple(msgspec.structs.replace(one, keyed=one is wrong) for one in problem.options)
    moved = msgspec.structs.replace(problem, options=options)
    with Runner() as runner:
        (defect,) = check_problems([moved], runner, ["embedded"]).defects
    assert (defect.name, defect.line) == (Name.WRONG_KEY, wrong.line)
