"""`whygrad check`: its report, its exit codes, its forms for machines, its cache."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from whygrad import cli

RIGHT = "```python\nprint(6 * 7)  # 42\n```\n"
WRONG = RIGHT.replace("42", "43")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def check(*arguments: str) -> int:
    return cli.call(["check", "--engine", "embedded", *arguments])


def test_a_page_that_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.md").write_text(RIGHT)
    assert check("page.md") == 0
    assert capsys.readouterr().out == (
        "found 1 in 1 file, ran 1, skipped 0\nno defect: every answer and every output is what a run shows\n"
    )


def test_a_page_that_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.md").write_text(WRONG)
    assert check("page.md") == 1
    out = capsys.readouterr().out
    assert "page.md:2: wrong-output\n  published:     43\n  the run shows: 42\n" in out
    assert out.endswith("1 defect: 1 wrong-output\n")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone.md", None, "whygrad: gone.md: there is no such file."),
        ("a.png", "x", "whygrad: a.png: cannot be checked; what can: "),
        ("p.md", "---\nid: p\nkind: predict\n---\n", "whygrad: p.md:1: front matter: "),
        ("n.ipynb", "{", "whygrad: n.ipynb:1: is cut off"),
        ("m.py", "def (", "whygrad: m.py:1: is not Python"),
    ],
)
def test_what_cannot_be_read_is_bad_input(
    name: str, text: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        Path(name).write_text(text)
    assert check(name) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(said)
    assert captured.err.count("\n") == 1


def test_json_on_stdout_is_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.md").write_text(WRONG + "```python no-run\nx\n```\n")
    assert check("--json", "-", "page.md") == 1
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "found": 2,
        "ran": 1,
        "skipped": [{"path": "page.md", "line": 5, "why": "it is marked as not to be run"}],
        "defects": [{"name": "wrong-output", "path": "page.md", "line": 2, "published": "43", "observed": "42"}],
    }


def test_forms_for_test_reports_and_code_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.md").write_text(WRONG)
    Path("good.md").write_text(RIGHT)
    assert check("--junit", "out.xml", "--sarif", "out.sarif", "--github", "page.md", "good.md") == 1
    suite = ElementTree.parse("out.xml").getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    (result,) = json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "wrong-output"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}
    out = capsys.readouterr().out
    assert "::error file=page.md,line=2,title=wrong-output::published: 43; the run shows: 42\n" in out
    assert check("--junit", "out.xml", "page.md") == 2, "what is there is not overwritten"


def test_results_are_kept_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from whygrad.check import runner

    Path("page.md").write_text(RIGHT)
    assert check("page.md") == 0
    monkeypatch.setattr(runner, "children", None)
    assert check("page.md") == 0, "from the cache"
    Path("page.md").write_text(RIGHT + "\n")
    assert check("page.md") == 0, "the code and its lines are the same"
    Path("page.md").write_text("\n" + RIGHT)
    assert check("page.md") == 70, "it would have to run"


def test_an_update_shows_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.md").write_text(WRONG)
    assert check("--update", "page.md") == 0
    assert Path("page.md").read_text() == RIGHT
    out = capsys.readouterr().out
    assert "-print(6 * 7)  # 43\n+print(6 * 7)  # 42\n" in out
