"""The cell magic, in an IPython shell of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from whygrad.ledger.events import GradWritten
from whygrad.session import last_recording


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell.instance()
    shell.run_line_magic("load_ext", "whygrad")
    shell.run_cell("import torch\nw = torch.tensor(3.0, requires_grad=True)")
    yield shell
    interactive.InteractiveShell.clear_instance()


def test_a_recorded_cell_runs_in_the_notebooks_namespace_and_gives_its_ledger(shell: Any) -> None:
    shell.run_cell("w.grad = None")
    shell.run_cell("%%whygrad\nloss = (w * 2.0 - 1.0).square()\nloss.backward()")
    ledger = last_recording()
    assert ledger is not None
    assert shell.user_ns["loss"].item() == 25.0
    (written,) = ledger.of(GradWritten)
    assert written.after.scalar == 20.0
    assert ledger.name(written.tensor) == "w"


def test_the_last_expression_of_a_recorded_cell_is_displayed(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("%%whygrad\nw.detach() + 4").result
    shown = capsys.readouterr().out
    assert result.item() == 7.0
    assert shown.index("tensor(7.)") < shown.index("a recorded block")


def test_a_cell_that_ends_in_a_semicolon_gives_nothing(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell("%%whygrad\nw.detach() + 4;").result is None
    assert "tensor(7.)" not in capsys.readouterr().out


def test_an_unknown_depth_is_a_clear_error(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%whygrad fuller\n1")
    assert "full, light or auto" in capsys.readouterr().err


def test_what_a_recorded_cell_raises_is_shown_as_ever(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%whygrad\nraise ValueError('mine')")
    shown = capsys.readouterr().out
    assert "ValueError" in shown
    assert "mine" in shown
    assert "notebook.py" not in shown


def test_the_report_follows_the_traceback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("%%whygrad\nw.grad = None\n(w * 2).backward()\nraise ValueError('mine')")
    shown = capsys.readouterr().out
    assert not result.success
    assert shown.index("ValueError") < shown.index("the recorded block raised") < shown.index("None → 2")
    shell.run_cell("1 + 1")
    assert "the recorded block" not in capsys.readouterr().out


def test_what_was_there_before_the_cell_is_said(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("w.grad = torch.tensor(5.0)")
    shell.run_cell("%%whygrad\n(w * 2).backward()")
    shown = capsys.readouterr().out
    assert "5 → 7" in shown
    assert "held when recording began" in shown


def test_a_cell_with_a_syntax_error_is_not_run(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("%%whygrad\nx = (")
    shown = capsys.readouterr()
    assert not result.success
    assert "was never closed" in shown.err
    assert "recorded block" not in shown.out
