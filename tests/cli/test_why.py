"""`whygrad why`: a program is run or a ledger read, and one question answered; a bad one costs a line and code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers import freed_graph, gradient_lab
from whygrad import cli
from whygrad.ledger import Ledger, Writer

LAB = Path(__file__).parent.parent.parent / "examples" / "gradient_lab.py"

DOUBLED = "w.grad is 40 at line 13: 20 (backward #1, line 9, through w * 2.0) + 20 (backward #2, line 13,"


def _kept(ledger: Ledger, path: Path) -> Path:
    with Writer(path, ledger.header) as writer:
        for event in ledger:
            writer.write(event)
    return path


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return _kept(gradient_lab(), tmp_path / "run.ledger")


def _whygrad(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "whygrad", *arguments]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


# --- a kept ledger --------------------------------------------------------------------------------------


def test_a_ledger_is_known_by_its_content(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["why", f"{lab}:13", "w.grad", "--width", "100"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(DOUBLED)
    assert err == ""


def test_without_a_line_the_end_is_asked_about(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["why", str(lab), "w.grad"]) == 0
    assert capsys.readouterr().out.startswith("w.grad is 20 at the end: ")


def test_without_an_expression_the_line_is_asked_about(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["why", f"{lab}:9"]) == 0
    assert capsys.readouterr().out.startswith("`loss.backward()` (line 9) ran backward #1")


def test_without_both_the_error_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = _kept(freed_graph(), tmp_path / "twice.jsonl")
    assert cli.call(["why", str(kept)]) == 0
    assert capsys.readouterr().out.startswith("Line 4 raised RuntimeError: this is the second backward from loss")


def test_json_is_one_object(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["why", "--json", f"{lab}:13", "w.grad"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["about"], answer["value"], answer["reason"]) == ("w.grad", "40", "accumulated")


def test_the_width_is_obeyed(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.call(["why", str(lab), "error", "--width", "60"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{lab}", "wheight.grad"], "wheight: nothing of this name took part in what was recorded. Known names: "),
        (["{lab}:300", "w.grad"], "line 300: gradient_lab.py has 54 lines."),
        (["{lab}", "w.grad", "--", "--epochs", "2"], "is a ledger, and nothing is run"),
        (["{lab}:3", "w", "--at", "gradient_lab.py:9"], "a line is named twice"),
        (["{lab}", "w", "--at", "gradient_lab.py"], "name a file and a line, as in helpers.py:6"),
        (["{lab}", "w", "--at", "other.py:3"], "other.py: the ledger holds no such file"),
        (["nowhere.py:3", "w"], "nowhere.py: there is no such file."),
        (["nowhere.py:x", "w"], "nowhere.py:x: there is no such file."),
        ([], "missing argument"),
    ],
)
def test_a_bad_question_is_one_line_and_code_2(
    arguments: list[str], says: str, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.call(["why", *(argument.format(lab=lab) for argument in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


def test_a_place_in_another_file(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["why", str(lab), "w.grad", "--at", "gradient_lab.py:13"]) == 0
    assert capsys.readouterr().out.startswith("w.grad is 40 at line 13")


# --- a program ------------------------------------------------------------------------------------------


def test_a_program_is_run_and_its_output_comes_first(tmp_path: Path) -> None:
    ran = _whygrad("why", f"{LAB}:13", "w.grad", cwd=tmp_path)
    assert ran.returncode == 0
    output, _, answer = ran.stdout.partition("\n\n")
    assert output.startswith("expected failure: accumulated gradient is 40, not 20\n")
    assert answer.startswith(DOUBLED)
    assert ran.stderr == ""


def test_quiet_hides_what_the_program_prints(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import os, sys\nprint('out')\nprint('err', file=sys.stderr)\nos.write(1, b'raw')\nraise ValueError('no')\n"
    )
    ran = _whygrad("why", "-q", "loud.py", "error", cwd=tmp_path)
    assert ran.stdout == "Line 5 raised ValueError: no\n  - The line is `raise ValueError('no')` (line 5).\n"
    assert ran.stderr == ""
    assert ran.returncode == 1


def test_the_program_has_its_own_arguments_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "arguments.py").write_text("import sys\nprint(sys.argv)\nassert len(sys.argv) == 1\n")
    ran = _whygrad("why", "arguments.py", "error", "--", "--epochs", "2", cwd=tmp_path)
    assert ran.returncode == 1
    assert ran.stdout.startswith("['arguments.py', '--epochs', '2']\n\nLine 3 raised AssertionError: ")
    assert "Traceback" in ran.stderr


def test_a_question_that_cannot_be_answered_gives_code_2_after_the_run(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("x = 1\nprint('ran')\n")
    ran = _whygrad("why", "fine.py", "nothing", cwd=tmp_path)
    assert ran.stdout.strip() == "ran"
    assert ran.stderr == "whygrad: nothing: the ledger names no tensor and no module.\n"
    assert ran.returncode == 2


def test_a_line_that_the_program_has_not_is_refused_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("print('ran')\n")
    ran = _whygrad("why", "fine.py:9", "w", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "whygrad: fine.py:9: the file has 1 line.\n"


def test_a_program_that_is_not_python(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = (\n")
    ran = _whygrad("why", "-q", "broken.py", "x", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "SyntaxError" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_line_of_a_notebooks_cell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cells = ["import torch\nw = torch.tensor(2.0, requires_grad=True)", "x = w * 3\nx.backward()", "w.grad = None"]
    notebook = {
        "nbformat": 4, "nbformat_minor": 5, "metadata": {},
        "cells": [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells],
    }  # fmt: skip
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps(notebook))
    kept = tmp_path / "run.jsonl"
    subprocess.run([sys.executable, "-m", "whygrad", "run", "-q", "-o", kept, path], check=True)
    for question in ([str(kept), "w.grad", "--at", "train.ipynb[2]:2"], [f"{path}[2]:2", "w.grad"]):
        command = [sys.executable, "-m", "whygrad", "why", *question]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "w.grad is 3 at train.ipynb[2]:2" in done.stdout
    assert cli.call(["why", f"{path}:2", "w.grad"]) == cli.BAD_INPUT
    assert 'lines of a notebook are counted in a cell; name it, as in "' in capfd.readouterr().err


def test_a_file_that_is_no_ledger_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("print('run')\n")
    assert cli.call(["why", str(path), "w"]) == cli.BAD_INPUT
    said = capsys.readouterr()
    assert "is not a ledger" in said.err
    assert said.out == ""
