"""Running the rules: order, consequences, failures, silence."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest
from running import recorded

from whygrad.ledger import Ledger
from whygrad.rules.diagnose import diagnose
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Evidence, Finding, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.settings import Settings

PROGRAM = """
import torch
w = torch.tensor(2.0, requires_grad=True)
loss = w * 3  # whygrad: ignore[WG902] this one is known
loss.backward()
"""


class Blames(Rule):
    """Blames a line."""

    slug = "blames"
    line = 3
    subject = "w"

    def check(self, facts: Facts) -> Iterator[Finding]:
        yield self.finding(
            facts,
            facts.line(facts.ledger.main_path(), self.line),
            "this line",
            ["It ran."],
            why="so",
            fix="change it",
            evidence=[Evidence(1, "it")],
            subjects=[self.subject],
        )


class First(Blames):
    code = "WG901"
    severity = Severity.NOTE


class Second(Blames):
    code = "WG902"
    explains = ("WG901",)


class Third(Blames):
    code = "WG903"
    explains = ("WG901",)
    subject = "v"


class Raises(Blames):
    code = "WG904"
    slug = "raises"

    def check(self, facts: Facts) -> Iterator[Finding]:
        raise ValueError(f"nothing in {len(facts.events)} events")


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return recorded(PROGRAM)


def codes(ledger: Ledger, *rules: Rule, settings: Settings | None = None) -> list[str]:
    return [one.code for one in diagnose(ledger, settings, rules).findings]


def test_a_cause_is_told_and_its_consequence_is_not(ledger: Ledger) -> None:
    class Cause(Second):
        line = 2

    assert codes(ledger, First(), Cause()) == ["WG902"]


def test_findings_about_other_subjects_are_no_consequence(ledger: Ledger) -> None:
    assert codes(ledger, First(), Third()) == ["WG903", "WG901"]


def test_the_worst_comes_first(ledger: Ledger) -> None:
    assert codes(ledger, First(), Third()) == ["WG903", "WG901"]


def test_a_rule_that_raises_is_named_and_stops_no_other(ledger: Ledger) -> None:
    diagnosis = diagnose(ledger, rules=[Raises(), Third()])
    assert [one.code for one in diagnosis.findings] == ["WG903"]
    (sentence,) = diagnosis.failed
    assert sentence.startswith("The rule WG904 (raises) failed: ValueError: nothing in")


def test_a_comment_in_the_source_silences_its_line(ledger: Ledger) -> None:
    diagnosis = diagnose(ledger, rules=[Second()])
    assert (diagnosis.findings, diagnosis.silenced) == ((), 1)
    assert codes(ledger, Third()) == ["WG903"]


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        (Settings(), ["WG903", "WG901"]),
        (Settings(ignore=("WG9",)), []),
        (Settings(ignore=("WG9",), select=("WG903",)), ["WG903"]),
        (Settings(select=("WG1",)), []),
        (Settings(per_file_ignores={"prog*.py": ("WG903",)}), ["WG901"]),
        (Settings(per_file_ignores={"other.py": ("ALL",)}), ["WG903", "WG901"]),
    ],
)
def test_settings_decide_which_rules_speak(ledger: Ledger, settings: Settings, left: list[str]) -> None:
    assert codes(ledger, First(), Third(), settings=settings) == left


def test_a_comment_for_the_file_stands_anywhere() -> None:
    marked = recorded(textwrap.dedent(PROGRAM) + "# whygrad: ignore-file[WG903]\n")
    assert codes(marked, Third()) == []
