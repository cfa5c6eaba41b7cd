"""`whygrad rule`."""

from __future__ import annotations

import pytest

from whygrad import cli
from whygrad.rules.registry import rules


def test_the_page_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["rule", "wg101"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# WG101 gradient-not-reset\n")
    assert "optimizer.step()" in out


def test_all_rules_on_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["rule", "--all"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [rule.code for rule in rules()]


def test_rules_are_found_by_a_word_of_their_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["rule", "--all", "zero_grad"]) == 0
    assert "gradient-not-reset" in capsys.readouterr().out


def test_an_unknown_rule_is_told_with_one_that_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["rule", "gradient-not-rest"]) == 2
    assert "Did you mean gradient-not-reset?" in capsys.readouterr().err
