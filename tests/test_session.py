"""Recording from inside a running program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import whygrad
from whygrad.errors import BadInput
from whygrad.ledger.events import GradReset, GradWritten, Lost, Operation


def doubled_cube(v: torch.Tensor) -> torch.Tensor:
    cubed = v**3
    return cubed + v * 2


def numbers(event: GradWritten) -> tuple[object, ...]:
    return tuple(term.value.scalar for term in event.contributions)


def test_the_block_gives_the_history_of_a_tensor_that_was_there_before() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    with whygrad.record() as ledger:
        loss = (w * 2.0 - 1.0).square()
        loss.backward()
        w.grad = None
    written, reset = ledger.history(w)
    assert isinstance(written, GradWritten)
    assert written.after.scalar == 20.0
    assert isinstance(reset, GradReset)
    assert reset.to == "none"
    assert ledger.name(ledger.id_of(w)) == "w"


def test_a_function_called_in_the_block_is_recorded_by_its_expressions() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    with whygrad.record() as ledger:
        doubled_cube(w).backward()
    (written,) = ledger.history(w)
    assert isinstance(written, GradWritten)
    through = {term.value.scalar: ledger.site(term.site).code for term in written.contributions if term.site}
    assert through == {27.0: "v**3", 2.0: "v * 2"}


def test_the_lines_of_the_block_are_told_apart() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    with whygrad.record() as ledger:
        a = w**3
        b = w * 2
        (a + b).backward()
    (written,) = ledger.history(w)
    assert isinstance(written, GradWritten)
    codes = {term.value.scalar: ledger.site(term.site).code for term in written.contributions if term.site}
    assert codes == {27.0: "w**3", 2.0: "w * 2"}


def test_a_cut_in_the_block_is_named() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    with whygrad.record() as ledger:
        h = w.detach()
    (cut,) = [event for event in ledger.of(Operation) if event.cut]
    assert cut.cut == "detach"
    assert ledger.name(cut.outputs[0]) == "h"
    assert h.item() == 3.0


def test_why_answers_for_a_tensor_and_for_an_expression() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    with whygrad.record():
        (w * 2).backward()
        (w * 2).backward()
    assert "4" in whygrad.why(w).headline.text
    assert "2 (backward #1" in str(whygrad.why("w.grad"))


def test_functions_torch_and_tracing_are_as_before_afterwards() -> None:
    code, call = doubled_cube.__code__, torch.nn.Module.__call__.__code__
    trace = sys.gettrace()
    with whygrad.record():
        torch.nn.Linear(1, 1)(torch.ones(1, 1))
    assert doubled_cube.__code__ is code
    assert torch.nn.Module.__call__.__code__ is call
    assert sys.gettrace() is trace


def test_an_exception_of_the_block_passes_and_is_in_the_ledger() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    loss = w * w
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"), whygrad.record():
        loss.backward()
    assert "freed before recording began" in str(whygrad.why("error"))


def test_another_tracer_is_left_alone_and_the_loss_is_said() -> None:
    def tracer(frame: object, event: str, arg: object) -> None: ...

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with whygrad.record() as ledger:
            torch.ones(1)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert any("tracer" in event.why for event in ledger.of(Lost))


def test_two_recordings_at_once_are_refused() -> None:
    with whygrad.record(), pytest.raises(BadInput, match="running already"), whygrad.record():
        pass


def test_a_tensor_that_took_no_part_is_a_clear_error() -> None:
    with whygrad.record() as ledger:
        pass
    with pytest.raises(BadInput, match="took no part"):
        ledger.history(torch.ones(1))


def test_the_report_and_the_page_come_from_the_same_ledger() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    with whygrad.record() as ledger:
        (w * 2.0 - 1.0).square().backward()
    assert "None → 20" in ledger.report(width=100)
    assert "srcdoc" in ledger._repr_html_()


def test_importing_whygrad_imports_nothing_else_of_ours(tmp_path: Path) -> None:
    import subprocess

    code = "import sys, whygrad; print([n for n in sys.modules if n.startswith('whygrad.') or n == 'torch'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "[]"


def test_a_gradient_that_was_there_before_the_block_is_said() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    untouched = torch.tensor(1.0, requires_grad=True)
    (w * 3).backward()
    (untouched * 4).backward()
    with whygrad.record() as ledger:
        (w * 2).backward()
    assert "w.grad is 5 at the end: 3 (held when recording began, line" in whygrad.why(w).headline.text
    assert "it held that when recording began" in whygrad.why(untouched).headline.text
    report = ledger.report(width=120)
    assert "w  3 → 5" in report
    assert "untouched  4" in report
    assert "no seed was set in the block" in report


def test_what_was_there_before_was_not_made_by_the_with_line() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    h = w * 2
    with whygrad.record():
        h.sum().backward()
    answers = [str(whygrad.why(w, aspect)) for aspect in ("value", "requires_grad", "is_leaf")]
    answers += [str(whygrad.why(h, aspect)) for aspect in ("value", "grad", "requires_grad", "is_leaf")]
    assert not [answer for answer in answers if "`with whygrad.record():`" in answer]


def test_a_module_and_an_unknown_aspect_are_clear_errors() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    model = torch.nn.Linear(1, 1)
    with whygrad.record():
        model(w.reshape(1, 1)).backward()
    with pytest.raises(BadInput, match=r"not a Linear\. For a module, ask for its name"):
        whygrad.why(model)
    with pytest.raises(BadInput, match="'frob' is nothing that can be asked of a tensor; ask for one of: value, grad"):
        whygrad.why(w, "frob")
