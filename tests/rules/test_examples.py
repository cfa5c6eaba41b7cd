"""Every rule's own examples: the wrong ones raise it, alone, on the marked line; the right ones raise nothing."""

from __future__ import annotations

import pytest
from running import blamed_line, findings

from whygrad.rules.registry import rules
from whygrad.rules.rule import Rule

RULES = rules()
WRONG = [(rule, code) for rule in RULES for code in rule.wrong]
RIGHT = [(rule, code) for rule in RULES for code in rule.right]


@pytest.mark.parametrize(("rule", "code"), WRONG, ids=[f"{rule.slug}-{i}" for i, (rule, _) in enumerate(WRONG)])
def test_a_wrong_example_raises_its_rule_on_the_marked_line(rule: Rule, code: str) -> None:
    diagnosis = findings(code)
    assert not diagnosis.failed
    told = [(one.code, one.place.line, one.title) for one in diagnosis.findings]
    assert {(found, line) for found, line, _ in told} == {(rule.code, blamed_line(code))}, told


@pytest.mark.parametrize(
    "code", [code for _, code in RIGHT], ids=[f"{rule.slug}-{i}" for i, (rule, _) in enumerate(RIGHT)]
)
def test_a_right_example_raises_nothing(code: str) -> None:
    diagnosis = findings(code)
    assert not diagnosis.failed
    assert not diagnosis.findings, [(one.code, one.place.line, one.title) for one in diagnosis.findings]


@pytest.mark.parametrize("rule", RULES, ids=[rule.slug for rule in RULES])
def test_a_rule_has_a_page(rule: Rule) -> None:
    assert rule.title()
    assert len(rule.text()) > 200
    assert rule.wrong
    assert rule.right
    assert rule.search
