"""`whygrad run`: whose options are whose, where the output goes, what is kept, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from whygrad.ledger import events, read

ECHO = "import sys\nprint(sys.argv)\n"
GRADIENT = """
import torch

w = torch.tensor(3.0, requires_grad=True)
(w * 2).backward()
print("done")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path


def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whygrad", "run", *words], input=stdin, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


def notebook(source: str) -> str:
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": source}]})


def left_over() -> list[str]:
    return os.listdir("temporary")


def test_what_follows_the_program_is_the_programs() -> None:
    Path("echo.py").write_text(ECHO)
    done = run("-q", "echo.py", "-v", "--json", "x", "-m", "--", "-c", "--help")
    assert done.stdout == "['echo.py', '-v', '--json', 'x', '-m', '--', '-c', '--help']\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_every_kind_of_program_runs() -> None:
    Path("echo.py").write_text(ECHO)
    Path("guide.md").write_text(f"# Guide\n\n```python\n{ECHO}```\n")
    Path("lab.ipynb").write_text(notebook(ECHO))
    assert run("-q", "-m", "echo", "-v").stdout == f"['{Path('echo.py').resolve()}', '-v']\n"
    assert run("-q", "-c", ECHO, "-v").stdout == "['-c', '-v']\n"
    assert run("-q", "-", "-v", stdin=ECHO).stdout == "['-', '-v']\n"
    assert run("-q", "guide.md", "-v").stdout == "['guide.md', '-v']\n"
    assert run("-q", "lab.ipynb", "-v").stdout == "['lab.ipynb', '-v']\n"


def test_the_programs_output_comes_first_and_its_exit_code_is_kept() -> None:
    Path("fails.py").write_text("import atexit, sys\natexit.register(print, 'bye')\nprint('out')\nsys.exit(3)\n")
    done = run("fails.py")
    assert done.returncode == 3
    assert done.stdout.startswith("out\nbye\n\nfails.py")
    assert "exit code 3" in done.stdout
    assert left_over() == []


def test_quiet_says_nothing_of_its_own_on_the_terminal() -> None:
    Path("train.py").write_text("import os\nos.chdir('/')\nprint('out')\n")
    done = run("-q", "--html", "page.html", "--json", "summary.json", "train.py")
    assert done.stdout == "out\n"
    assert Path("page.html").read_text().startswith("<!")
    assert Path("summary.json").read_text().startswith("{")


def test_the_ledger_is_kept_where_it_was_asked_for() -> None:
    Path("train.py").write_text(GRADIENT)
    done = run("-q", "-o", "run.jsonl", "--depth", "full", "train.py", "--lr", "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    ledger = read("run.jsonl")
    assert (ledger.header.program, ledger.header.kind, ledger.header.depth) == ("train.py", "script", "full")
    assert ledger.header.argv == ("train.py", "--lr", "3")
    assert [event.after.scalar for event in ledger if isinstance(event, events.GradWritten)] == [2.0]
    *_, last = ledger
    assert isinstance(last, events.Ended)
    assert (last.how, last.exit_code) == ("returned", 0)


def test_what_a_notebook_left_out_is_in_its_ledger() -> None:
    Path("lab.ipynb").write_text(notebook("%matplotlib inline\nx = 1"))
    run("-q", "-o", "run.jsonl", "lab.ipynb")
    noted = [event.text for event in read("run.jsonl") if isinstance(event, events.Noted)]
    assert noted == ["lab.ipynb, cell 1, line 1: `%matplotlib inline` was left out"]


@pytest.mark.parametrize(("words", "sentence"), [
    (["absent.py"], "absent.py: there is no such file."),
    (["broken.py"], "broken.py:2: SyntaxError: '[' was never closed: y = [1"),
    (["-m", "absent"], "-m absent: there is no such module."),
    (["-"], "<stdin>:1: SyntaxError: '(' was never closed: print("),
    ([], "name a program to run: a file, -m MODULE, -c CODE, or - for standard input. See `whygrad run --help`."),
    (["-m", "-c", "x"], "-m and -c each name a program; give one of them. See `whygrad run --help`."),
    (["-o", "kept.jsonl", "fine.py"], "kept.jsonl: exists already; use --force to overwrite it."),
    (["--html", "nowhere/page.html", "fine.py"], "nowhere/page.html: there is no directory nowhere."),
    (["--force", "-o", "fine.py", "fine.py"], "fine.py: is read by this command; write to another file."),
])  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_touched(words: list[str], sentence: str) -> None:
    Path("broken.py").write_text("x = 1\ny = [1\n")
    Path("fine.py").write_text("print(1)\n")
    Path("kept.jsonl").write_text("precious\n")
    done = run(*words, stdin="print(\n")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"whygrad: {sentence}\n")
    assert Path("kept.jsonl").read_text() == "precious\n"
    assert Path("fine.py").read_text() == "print(1)\n"
    assert left_over() == []


def test_a_program_that_is_not_python_overwrites_nothing_even_when_told_to() -> None:
    Path("broken.py").write_text("x = [\n")
    Path("kept.jsonl").write_text("precious\n")
    assert run("--force", "-o", "kept.jsonl", "broken.py").returncode == 2
    assert Path("kept.jsonl").read_text() == "precious\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "ending"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_ends_the_program_as_ever_after_the_report(number: signal.Signals, ending: str) -> None:
    Path("waits.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "whygrad", "run", "waits.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == -number
    assert ending in stdout
    assert left_over() == []


def test_forked_children_give_no_report() -> None:
    Path("forks.py").write_text(
        "import os\nif child := os.fork():\n    os.waitpid(child, 0)\nprint('end', flush=True)\n"
    )
    done = run("forks.py")
    assert done.stdout.count("end\n") == 2
    assert done.stdout.count("exit code 0") == 1


def test_a_report_that_nobody_reads_is_no_fault() -> None:
    Path("fine.py").write_text("print('out', flush=True)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "whygrad", "run", "fine.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (0, b"")


def test_a_program_that_closes_its_output_loses_only_the_report() -> None:
    Path("closes.py").write_text("import sys\nprint('out')\nsys.stdout.close()\n")
    done = run("--json", "summary.json", "closes.py")
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert Path("summary.json").exists()
