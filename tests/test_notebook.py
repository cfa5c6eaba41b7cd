"""The cell magic, in an IPython shell of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from whygrad.ledger.events import GradWritten
from whygrad.session import Recording


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
    ledger = shell.run_cell("%%whygrad\nloss = (w * 2.0 - 1.0).square()\nloss.backward()").result
    assert isinstance(ledger, Recording)
    assert shell.user_ns["loss"].item() == 25.0
    (written,) = ledger.of(GradWritten)
    assert written.after.scalar == 20.0
    assert ledger.name(written.tensor) == "w"


def test_the_last_expression_of_a_recorded_cell_is_displayed(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%whygrad\nw.detach() + 4")
    assert "tensor(7.)" in capsys.readouterr().out


def test_an_unknown_depth_is_a_clear_error(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%whygrad fuller\n1")
    assert "full, light or auto" in capsys.readouterr().err


def test_what_a_recorded_cell_raises_is_shown_as_ever(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%whygrad\nraise ValueError('mine')")
    shown = capsys.readouterr().out
    assert "ValueError" in shown
    assert "mine" in shown
