"""What the report must not claim: totals that are counts of a part, a cause that was not seen, a gradient too much."""

from __future__ import annotations

import re

import pytest
from stories import ended

from ledgers import Book, scalar
from whygrad.answers.why import why
from whygrad.errors import BadInput
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import BackwardId, ModuleId, SiteId
from whygrad.report.terminal import render

SOURCE = "import torch\nw = torch.ones(1)\nmodel.train()\na.backward()\nb.backward()\nmodel(x)\n"


def begun(**header: str) -> Book:
    """A book of a run in which torch was imported."""
    book = Book(SOURCE, **header)
    book.add(
        events.Environment, site=book.site(1, "import torch"), engine="pytorch", version="2.13.0", numpy="2.4.0",
        threads=1, deterministic=False, default_dtype="float32",
    )  # fmt: skip
    return book


def report(ledger: Ledger) -> str:
    """The report at a width at which nothing is wrapped."""
    return " ".join(render(ledger, width=240).split())


def module(book: Book) -> ModuleId:
    made = ModuleId(book.new("module"))
    book.add(events.Module, site=book.site(2, "torch.ones(1)"), id=made, path="model", kind="Linear")
    return made


def fold(book: Book, *passes: events.PassFold) -> None:
    book.add(
        events.StepsFolded, first=4, last=300, backwards=594, optimizer_steps=297, buffers=(), passes=passes,
        loss_first=1.0, loss_last=2.0,
    )  # fmt: skip


def test_counts_beside_lightly_recorded_steps_are_said_to_be_a_part() -> None:
    book = begun()
    made = module(book)
    for _ in range(10):
        book.add(
            events.ModuleCalled, site=book.site(6, "model(x)"), module=made, training=True, grad_mode="on", inputs=()
        )
    assert "Modules line 6 model × 10" in report(book.ledger)
    fold(book)
    assert "Modules counted in the steps recorded in full; there were more line 6 model × 10" in report(book.ledger)


def test_switches_that_changed_nothing_are_told_apart() -> None:
    book = begun()
    made = module(book)
    for turn in range(10):
        changed = () if turn % 2 else (("model", False),)
        book.add(
            events.ModeChanged, site=book.site(3, "model.train()"), module=made, call="train", training=True,
            changed=changed,
        )  # fmt: skip
    ended(book)
    assert "model.train() × 10 eval → train model; 5 of the 10 calls changed nothing" in report(book.ledger)


def test_losses_of_two_lines_are_not_mixed() -> None:
    book = begun()
    a, b = (SiteId(book.site(line, code)) for line, code in ((4, "a.backward()"), (5, "b.backward()")))
    fold(
        book,
        events.PassFold(site=a, backwards=297, loss_first=1.0, loss_last=2.0),
        events.PassFold(site=b, backwards=297, loss_first=10.0, loss_last=5.0),
    )
    ended(book)
    said = report(book.ledger)
    assert re.search(r"line 4 steps 4 to 300, recorded lightly × 297 loss 1 → 2", said)
    assert re.search(r"line 5 steps 4 to 300, recorded lightly × 297 loss 10 → 5", said)


def test_roots_of_other_names_from_one_line_are_not_one_course() -> None:
    book = begun()
    site = book.site(4, "a.backward()")
    for name, value in (("d_loss", 1.0), ("g_loss", 9.0), ("d_loss", 0.5), ("g_loss", 8.0)):
        root = book.leaf(name, scalar(value), book.site(2, "torch.ones(1)"))
        backward = BackwardId(book.new("backward"))
        book.add(
            events.BackwardBegan, site=site, id=backward, call="backward", roots=(root,), root_nodes=(None,),
            root_value=scalar(value),
        )  # fmt: skip
        book.add(events.BackwardEnded, site=site, id=backward)
    ended(book)
    said = report(book.ledger)
    assert "d_loss 1 → 0.5" in said
    assert "g_loss 9 → 8" in said


def test_a_recording_that_broke_down_leads_the_report_and_answers_nothing() -> None:
    book = begun()
    book.add(events.Lost, what="everything about torch", why="AttributeError: no such part")
    ended(book)
    said = report(book.ledger)
    assert said.index("The recording broke down: everything about torch was lost") < said.index("Gradients")
    assert "no backward ran" not in said
    with pytest.raises(BadInput, match="nothing can be told of this run: the recording broke down"):
        why(book.ledger, "w.grad")


def test_a_ledger_that_ends_early_is_not_a_run_without_a_backward() -> None:
    book = begun()
    assert "the ledger ends before a tensor that requires grad or a backward was seen" in report(book.ledger)
    book.leaf("w", scalar(1.0), book.site(2, "torch.ones(1)"))
    assert "w None: no backward was recorded before the ledger ends" in report(book.ledger)
    assert "it ends before the program does" in why(book.ledger, "w.grad").headline.text
    ended(book)
    assert "w None: no backward ran" in report(book.ledger)


def test_what_was_held_when_recording_began_is_not_a_change() -> None:
    book = begun(kind="block")
    w = book.leaf("w", scalar(1.0), book.site(2, "torch.ones(1)"))
    book.add(
        events.GradChanged, site=book.site(2, "torch.ones(1)"), tensor=w, by=events.HELD, before=None, after=scalar(3.0)
    )
    ended(book)
    said = report(book.ledger)
    assert "w 3 line 2 held when recording began 3" in said
    assert "no seed was set in the block" in said


def test_a_parameter_that_never_required_grad_is_mentioned() -> None:
    book = begun()
    book.leaf("frozen", scalar(1.0), book.site(2, "torch.ones(1)"), origin="parameter", requires_grad=False)
    ended(book)
    assert "line 2 frozen False when first seen" in report(book.ledger)
