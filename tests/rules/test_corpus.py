"""The corpus: correct programs of every training style, on which no rule may raise an alarm, and faulty ones that a
rule must recognise. `python -m benchmarks.diagnosis` runs the same programs and prints the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import blamed_line, recorded

from whygrad.ledger.events import Ended
from whygrad.rules.diagnose import diagnose
from whygrad.rules.finding import Severity

CORPUS = Path(__file__).parent.parent.parent / "benchmarks" / "corpus"
RIGHT = sorted((CORPUS / "right").glob("*.py"))
WRONG = sorted((CORPUS / "wrong").glob("*.py"))

MISSED: dict[str, str] = {
    "eval_left_on_pretrained": "a network that never was in training mode may be meant so",
}
"""Faulty programs that no rule recognises on the right line yet, and why. One that is recognised is taken off."""


@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.stem)
def test_a_right_program_raises_no_alarm(program: Path) -> None:
    ledger = recorded(program.read_text("utf-8"))
    ended = next(ledger.of(Ended))
    assert (ended.how, ended.exit_code) == ("returned", 0), "the program's own check that it trains failed"
    diagnosis = diagnose(ledger)
    assert not diagnosis.failed
    alarms = [one for one in diagnosis.findings if one.severity is not Severity.NOTE]
    assert not alarms, [(one.code, one.slug, one.place.line, one.title, one.happened) for one in alarms]


@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.stem)
def test_a_wrong_program_raises_its_rule_on_the_marked_line(program: Path, request: pytest.FixtureRequest) -> None:
    if program.stem in MISSED:
        request.applymarker(pytest.mark.xfail(reason=MISSED[program.stem], strict=True))
    code = program.read_text("utf-8")
    diagnosis = diagnose(recorded(code))
    assert not diagnosis.failed
    told = {(one.slug, one.place.line) for one in diagnosis.findings}
    assert (code.splitlines()[0].removeprefix("# rule: "), blamed_line(code)) in told, told


def test_what_is_missed_is_in_the_corpus() -> None:
    assert MISSED.keys() <= {program.stem for program in WRONG}
