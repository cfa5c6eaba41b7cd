"""`whygrad fix`: shows a change that was run, writes it when asked, and ends with the code that says what is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whygrad import cli

MISSING_RESET = """\
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(8, 4), torch.randn(8, 1)
for _ in range(int(sys.argv[1])):
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()  # fills the buffers
    opt.step()
    print(loss.item())
"""

RESET = "    opt.zero_grad()\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(MISSING_RESET)
    return path


def test_it_shows_a_change_and_what_it_does(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["fix", "train.py", "--", "5"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("WG101 error train.py:10: ")
    assert "\n  verified: Call optimizer.zero_grad() once a step" in out
    assert f"\n+{RESET}     loss.backward()  # fills the buffers\n" in out
    assert "the loss of the last backward " in out
    assert out.endswith(
        "1 finding: 1 fixed by a change that was run, 0 left. `whygrad fix --apply train.py` writes it.\n"
    )
    assert program.read_text() == MISSING_RESET


def test_apply_writes_and_then_nothing_is_left(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["fix", "--apply", "--backup", "train.py", "--", "5"]) == 0
    assert RESET in program.read_text()
    assert (program.parent / "train.py.orig").read_text() == MISSING_RESET
    capsys.readouterr()
    assert cli.call(["fix", "train.py", "--", "5"]) == 0
    assert capsys.readouterr().out == "train.py: nothing to fix.\n"


def test_json_has_the_same(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["fix", "--json", "--only", "WG101", str(program), "--", "3"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(one["code"], one["line"], one["fix"]) for one in told["findings"]] == [("WG101", 10, "verified")]
    assert (told["runs"], told["applied"], told["seeded"]) == (2, False, True)
    assert f"+{RESET}" in told["diffs"][0]


def test_apply_needs_git_or_a_backup_before_anything_runs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text("import pathlib\npathlib.Path('ran').touch()\n")
    assert cli.call(["fix", "--apply", "train.py"]) == 2
    assert "is not in a git repository" in capsys.readouterr().err
    assert not (program.parent / "ran").exists()


def test_a_rule_that_is_not_there_is_bad_input(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["fix", "--only", "WG9999", program.name]) == 2
    assert (
        capsys.readouterr().err == "whygrad: --only WG9999: there is no such rule; `whygrad rule --all` lists them.\n"
    )


def test_a_program_that_is_not_python_is_bad_input(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text("x = (\n")
    assert cli.call(["fix", program.name]) == 2
    assert "train.py:1: SyntaxError" in capsys.readouterr().err


def test_a_program_that_ends_early_has_nothing_to_fix(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text("raise SystemExit(3)\n")
    assert cli.call(["fix", program.name]) == 0
    assert capsys.readouterr().out == "train.py: nothing to fix.\n"
