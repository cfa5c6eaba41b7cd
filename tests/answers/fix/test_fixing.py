"""A change is offered where the run with it lacks the finding, shows nothing new, and fails in no way of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from wordrules import WordRule

from whygrad.answers.fix import Fixes, Status, fixing, try_fixes
from whygrad.errors import BadInput
from whygrad.execute import program as programs
from whygrad.rules.settings import Settings

VERIFIED, SUGGESTED, FAILED = Status.VERIFIED, Status.SUGGESTED, Status.FAILED


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "program.py"


def _put(path: Path, text: str) -> None:
    """Write a program; its assertion is what makes the ledger speak of it."""
    path.write_text(f"{text}assert True\n")


def _fixes(path: Path, *rules: WordRule, arguments: tuple[str, ...] = (), settings: Settings | None = None) -> Fixes:
    return try_fixes(programs.file(path.name, arguments), settings, rules=rules)


def _outcome(fixes: Fixes) -> list[tuple[str, Status]]:
    return [(one.finding.code, one.status) for one in fixes.fixes]


def test_a_change_that_removes_the_finding_is_verified(program: Path) -> None:
    _put(program, "bad = 1\nprint(bad)\n")
    fixes = _fixes(program, WordRule("bad", "good"))
    assert {status for _, status in _outcome(fixes)} == {VERIFIED}
    assert [source.text for source in fixes.after] == ["good = 1\nprint(good)\nassert True\n"]
    assert fixes.left() == ()


def test_the_file_itself_is_not_written(program: Path) -> None:
    _put(program, "bad = 1\n")
    _fixes(program, WordRule("bad", "good"))
    assert program.read_text() == "bad = 1\nassert True\n"
    assert [path.name for path in program.parent.iterdir() if path.suffix == ".py"] == ["program.py"]


def test_a_finding_without_a_change_is_a_suggestion(program: Path) -> None:
    _put(program, "bad = 1\n")
    fixes = _fixes(program, WordRule("bad", None))
    assert _outcome(fixes) == [("WG990", SUGGESTED)]
    assert (fixes.after, fixes.runs, len(fixes.left())) == ((), 1, 1)


def test_a_change_that_leaves_the_finding_is_not_offered(program: Path) -> None:
    _put(program, "bad = 1\n")
    fixes = _fixes(program, WordRule("bad", "bad "))
    assert _outcome(fixes) == [("WG990", FAILED)]
    assert fixes.fixes[0].reason == "the finding is still there with the change"
    assert fixes.after == ()


def test_a_change_that_makes_the_program_fail_is_not_offered(program: Path) -> None:
    _put(program, "print(len('bad'))\n")
    fixes = _fixes(program, WordRule("len", "size"))
    assert _outcome(fixes) == [("WG990", FAILED)]
    assert fixes.fixes[0].reason == "the program then raises NameError: name 'size' is not defined"


def test_a_change_that_brings_another_finding_is_not_offered(program: Path) -> None:
    _put(program, "bad = 1\n")
    fixes = _fixes(program, WordRule("bad", "worse"), WordRule("worse", None, "WG991"))
    assert fixes.fixes[0].reason == "the run with the change shows WG991 on line 1: worse is there"


def test_a_failure_that_was_there_may_go(program: Path) -> None:
    _put(program, "print(1 / bad)\n")
    fixes = _fixes(program, WordRule("bad", "2"))
    assert _outcome(fixes) == [("WG990", VERIFIED)]
    assert [(row.before, row.after) for row in fixes.changes if row.what == "how the program ended"] == [
        ("NameError: name 'bad' is not defined", "without an error")
    ]


def test_several_changes_are_tried_together(program: Path) -> None:
    _put(program, "bad = 1\nevil = 2\n")
    fixes = _fixes(program, WordRule("bad", "good"), WordRule("evil", "kind", "WG991"))
    assert _outcome(fixes) == [("WG990", VERIFIED), ("WG991", VERIFIED)]
    assert fixes.runs == 2
    assert fixes.after[0].text == "good = 1\nkind = 2\nassert True\n"


def test_a_change_that_fails_takes_no_other_with_it(program: Path) -> None:
    _put(program, "bad = 1\nint('1')\n")
    fixes = _fixes(program, WordRule("bad", "good"), WordRule("int", "unknown", "WG991"))
    assert _outcome(fixes) == [("WG990", VERIFIED), ("WG991", FAILED)]
    assert fixes.after[0].text == "good = 1\nint('1')\nassert True\n"


def test_of_overlapping_changes_the_first_is_made(program: Path) -> None:
    _put(program, "bad = 1\n")
    fixes = _fixes(program, WordRule("bad", "good"), WordRule("bad", "fine", "WG991"))
    assert _outcome(fixes) == [("WG990", VERIFIED), ("WG991", FAILED)]
    assert "overlaps" in fixes.fixes[1].reason


def test_modules_beside_the_program_are_changed_too(program: Path) -> None:
    _put(program.with_name("helper.py"), "bad = 1\n")
    _put(program.with_name("other.py"), "value = 5\n")
    _put(program, "import helper, other\nprint(other.value, vars(helper).get('good'))\n")
    fixes = _fixes(program, WordRule("bad", "good"))
    assert _outcome(fixes) == [("WG990", VERIFIED)]
    assert [Path(source.path).name for source in fixes.after] == ["helper.py"]
    assert [(row.before, row.after) for row in fixes.changes] == [("5 None", "5 1")]


def test_the_runs_get_the_program_s_own_arguments_and_folder(program: Path) -> None:
    _put(program, "import os, sys\nbad = 1\nprint('bad' in dir(), sys.argv, os.getcwd(), __file__)\n")
    rule = WordRule("bad = 1", "good = 1")
    fixes = _fixes(program, rule, arguments=("--epochs", "1"))
    (printed,) = [row for row in fixes.changes if row.what.startswith("printed")]
    rest = f"['program.py', '--epochs', '1'] {program.parent} {program}"
    assert (printed.before, printed.after) == tuple(f"{first} {rest}"[:57] + "..." for first in (True, False))


def test_a_run_that_does_not_end_is_no_fix(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixing, "GRACE_S", 0.5)
    _put(program, "bad = 0\nassert True\nwhile bad: pass\n")
    fixes = _fixes(program, WordRule("bad = 0", "bad = 1"))
    assert _outcome(fixes) == [("WG990", FAILED)]
    assert "did not end within" in fixes.fixes[0].reason


def test_the_first_run_has_a_time_too(program: Path) -> None:
    program.write_text("while True: pass\n")
    with pytest.raises(BadInput, match="did not end within 1 s; --timeout gives it longer"):
        try_fixes(programs.file(program.name), rules=(), timeout_s=1)


def test_what_the_settings_silence_is_not_fixed(program: Path) -> None:
    _put(program, "bad = 1  # whygrad: ignore\n")
    assert _fixes(program, WordRule("bad", "good")).fixes == ()


def test_files_of_the_program_s_folder_stand_in_for_none_of_ours(program: Path) -> None:
    (program.parent / "click.py").write_text("raise SystemExit('not the library')\n")
    _put(program, "bad = 1\n")
    assert _outcome(_fixes(program, WordRule("bad", "good"))) == [("WG990", VERIFIED)]


def test_a_document_is_bad_input(program: Path) -> None:
    notes = program.with_name("notes.md")
    notes.write_text("```python\nbad = 1\n```\n")
    with pytest.raises(BadInput, match="edits of Python files"):
        _fixes(notes, WordRule("bad", "good"))
