"""Choosing an engine, comparing the two, and telling what is here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from whygrad import cli
from whygrad.engines import choice
from whygrad.engines.choice import Engine
from whygrad.errors import BadInput
from whygrad.ledger import read

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cube_gradient.py"
BETWEEN = re.compile(r"(<!-- coverage -->\n).*?(<!-- /coverage -->)", re.DOTALL)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "whygrad", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_engine_is_pytorch_where_it_is_found_and_embedded_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "has_pytorch", lambda: True)
    assert choice.choose("auto") is Engine.PYTORCH
    monkeypatch.setattr(choice, "has_pytorch", lambda: False)
    assert choice.choose("auto") is Engine.EMBEDDED
    assert choice.choose("embedded") is Engine.EMBEDDED


def test_asking_for_pytorch_where_it_is_not_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "has_pytorch", lambda: False)
    with pytest.raises(BadInput, match=r"PyTorch is not installed here; `pip install torch`.*--engine embedded"):
        choice.choose("pytorch")


def test_the_embedded_engine_gives_the_full_report(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    done = run("--engine", "embedded", "-o", str(kept), str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("12.0\n")
    assert "None → 12" in done.stdout
    assert read(kept).header.engine == "embedded"


def test_what_is_not_covered_names_itself_and_the_way_out() -> None:
    done = run("-q", "--engine", "embedded", "-c", "import torch\ntorch.compile(lambda x: x)")
    assert done.returncode == 1
    assert re.search(r"does not cover torch\.compile; .*`pip install torch`, then `--engine pytorch`", done.stderr)


def test_both_engines_agree_on_an_example() -> None:
    pytest.importorskip("torch")
    done = run("-q", "--engine", "both", str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    assert "the embedded engine agrees: the same output, and the same" in done.stdout


def test_both_engines_tell_where_they_differ_and_keep_the_exit_code() -> None:
    pytest.importorskip("torch")
    done = run("-q", "--engine", "both", "-c", "import torch, sys\nprint(torch.__version__)\nsys.exit(3)")
    assert done.returncode == 3
    assert re.search(r"output 1\s+printed\n\s+PyTorch\s+2\..*\n\s+embedded\s+2\..*\+whygrad", done.stdout)


def test_engines_lists_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["engines"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^pytorch   \S", said, re.MULTILINE)
    assert re.search(r"^embedded  2\.\S+\+whygrad, on NumPy 2", said, re.MULTILINE)
    assert re.search(r"torch\.nn\.functional +\d+ of \d+", said)


def test_engines_can_list_every_name_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["engines", "--missing"]) == 0
    assert "grid_sample" in capsys.readouterr().out


def test_the_documentation_shows_the_coverage_as_it_is(request: pytest.FixtureRequest) -> None:
    from whygrad.engines.embedded import coverage

    path = ROOT / "docs" / "engines.md"
    text = path.read_text(encoding="utf-8")
    renewed = BETWEEN.sub(lambda found: found[1] + coverage.table() + found[2], text)
    if request.config.getoption("--update-golden"):
        path.write_text(renewed, encoding="utf-8")
    assert text == renewed, "look, then run pytest --update-golden"
