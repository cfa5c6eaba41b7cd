"""What the rules found, in the terminal, on the page, for machines and for code hosts."""

from __future__ import annotations

import json

from ledgers import gradient_lab
from whygrad.report import html, machine, sarif, terminal
from whygrad.rules.diagnose import Diagnosis
from whygrad.rules.finding import Evidence, Finding, Place, Severity

PLACE = Place("/home/me/gradient_lab.py", 13, "loss.backward()", "line 13")
FOUND = Finding(
    code="WG101",
    slug="gradient-not-reset",
    severity=Severity.ERROR,
    place=PLACE,
    title="the gradients of earlier steps are still in the buffers",
    happened=("w.grad held 20; the backward added 20.",),
    why="backward() adds into .grad.",
    fix="Call optimizer.zero_grad() once a step.",
    evidence=(Evidence(7, "w.grad: 20 -> 40", PLACE), Evidence(9, "a step")),
    intended="the sum is wanted",
)
DIAGNOSIS = Diagnosis((FOUND,), silenced=2, failed=("The rule WG999 failed: ValueError: no.",))


def test_findings_stand_first_in_the_terminal() -> None:
    text = terminal.render(gradient_lab(), diagnosis=DIAGNOSIS, width=100)
    assert text.index("Findings  1 error, 2 silenced") < text.index("\nGradients")
    assert "error line 13: the gradients of earlier steps are still in the buffers  [WG101]" in text
    for part in ("w.grad held 20; the backward added 20.", "Fix: Call", "Intended if the sum is wanted.", "WG999"):
        assert part in text


def test_without_findings_there_is_no_section() -> None:
    assert "Findings" not in terminal.render(gradient_lab())
    assert 'id="findings"' not in html.render(gradient_lab())


def test_findings_stand_first_on_the_page() -> None:
    page = html.render(gradient_lab(), diagnosis=DIAGNOSIS)
    assert page.index('id="findings"') < page.index('id="gradients"')
    for part in ("w.grad held 20; the backward added 20.", "WG101", "2 events as evidence", "WG999"):
        assert part in page


def test_findings_for_machines() -> None:
    (said,) = json.loads(machine.render(gradient_lab(), diagnosis=DIAGNOSIS))["findings"]
    assert (said["code"], said["severity"], said["line"], said["fix"]) == ("WG101", "error", 13, "suggested")
    assert said["happened"] == ["w.grad held 20; the backward added 20."]
    assert said["evidence"] == [7, 9]


def test_findings_for_code_hosts() -> None:
    (run,) = json.loads(sarif.render(DIAGNOSIS, "/home/me"))["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "WG101"
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "gradient_lab.py"}, "region": {"startLine": 13}}
    assert len(result["relatedLocations"]) == 1
    assert "WG999" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
