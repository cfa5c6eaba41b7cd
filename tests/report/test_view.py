"""A report's parts say what the ledger holds, and do not grow with the steps of a program."""

from __future__ import annotations

import pytest
from stories import (
    STORIES,
    backward,
    deep_network,
    ended,
    long_training,
    made_anew,
    micro_batches,
    never_reset,
    not_a_number,
    overwritten,
    reset,
    started,
    two_terms,
)

from ledgers import Book, folded_loop, freed_graph, gradient_lab, scalar
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import Operand
from whygrad.report.parts import Buffer, Call, Change, Gap, Light, ModeSwitch, Omitted, Repeat, Report
from whygrad.report.view import view
from whygrad.report.wording import say_state


def buffer(report: Report, title: str) -> Buffer:
    return next(one for one in report.buffers if one.title == title)


def said(one: Buffer) -> list[str]:
    return ["..." if isinstance(state, Gap) else say_state(state) for state in one.states()]


def size(report: Report) -> int:
    """How many parts the buffers are made of."""

    def entries(parts: tuple[object, ...]) -> int:
        return sum(1 + (entries(part.first + part.last) if isinstance(part, Repeat) else 0) for part in parts)

    return sum(entries(one.entries) + len(one.tallies) for one in report.buffers)


# --- buffers ----------------------------------------------------------------------------------------


def test_the_states_of_a_buffer_are_in_order() -> None:
    assert said(buffer(view(gradient_lab()), "w")) == ["None", "20", "40", "None", "20"]


def test_a_write_into_a_full_buffer_names_the_oldest_backward_in_it() -> None:
    changes = [entry for entry in buffer(view(gradient_lab()), "w").entries if isinstance(entry, Change)]
    assert [(change.kind, change.since) for change in changes] == [
        ("set", None), ("added", 1), ("reset", None), ("set", None),
    ]  # fmt: skip


def test_an_assignment_is_told_as_it_was_written() -> None:
    assert [entry.cause for entry in buffer(view(gradient_lab()), "w").entries if isinstance(entry, Change)] == [
        "backward #1", "backward #2", "w.grad = None", "backward #3",
    ]  # fmt: skip


def test_each_term_of_a_gradient_has_its_place() -> None:
    (change,) = buffer(view(two_terms()), "w").entries
    assert isinstance(change, Change)
    assert [(say_state(term.value), term.place and term.place.code) for term in change.terms] == [
        ("27", "w ** 3"), ("20", "w * 20"),
    ]  # fmt: skip


def test_terms_through_one_place_are_summed() -> None:
    (change,) = buffer(view(freed_graph()), "w").entries
    assert isinstance(change, Change)
    (term,) = change.terms
    assert term.times == 2
    assert term.total is not None
    assert term.total.scalar == 6.0


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("b", "it does not require grad any more (line 6)"),
        ("c", "no backward reached it"),
        ("d", "no backward reached it; first used on line 7"),
    ],
)
def test_a_buffer_that_stayed_none_says_why(title: str, reason: str) -> None:
    assert buffer(view(two_terms()), title).silent == reason


def test_without_a_backward_the_reason_is_that_none_ran() -> None:
    book = started("import torch\nw = 1\n", "none.py")
    book.leaf("w", scalar(1.0))
    assert buffer(view(ended(book)), "w").silent == "no backward ran"


def test_a_stopped_backward_is_the_reason_for_none() -> None:
    assert buffer(view(overwritten()), "x").silent == "the backward (line 6) was stopped before it wrote"


def test_a_module_call_counts_as_the_use_of_its_parameters() -> None:
    assert buffer(view(gradient_lab()), "model.0.weight").silent == "no backward reached it; first used on line 32"


def test_a_hundred_steps_or_a_thousand_make_equally_many_parts() -> None:
    assert size(view(never_reset(100))) == size(view(never_reset(1000)))
    assert size(view(micro_batches(20))) == size(view(micro_batches(200)))


def test_a_loop_without_reset_is_one_repetition() -> None:
    first, loop = buffer(view(never_reset(300)), "w").entries
    assert isinstance(first, Change)
    assert isinstance(loop, Repeat)
    assert loop.times == 299
    assert loop.norms.last == pytest.approx(300 * 640**0.5)


def test_tallies_count_every_change() -> None:
    tallies = buffer(view(micro_batches(50)), "model.weight").tallies
    assert [(tally.kind, tally.times) for tally in tallies] == [("set", 50), ("added", 150), ("reset", 50)]


def test_norms_are_those_before_each_reset() -> None:
    norms = buffer(view(micro_batches(50)), "model.weight").norms
    assert norms.first == pytest.approx(12.0)
    assert norms.last == pytest.approx(12.0 / 50)


def test_lightly_recorded_steps_are_counted_with_the_others() -> None:
    weight = buffer(view(long_training(10_000)), "model.weight")
    assert weight.writes == 10_000
    assert weight.light is not None
    assert (weight.light.first_step, weight.light.last_step, weight.light.writes) == (6, 10_000, 9_994)


def test_a_leaf_made_anew_in_every_turn_is_told_a_few_times() -> None:
    report = view(made_anew(40))
    assert len(report.buffers) == 3
    assert report.buffers[-1].siblings == 37


def test_a_life_without_a_pattern_stays_bounded() -> None:
    book = started("import torch\n" + "w.grad = None\n" * 3000, "wild.py")
    w = book.leaf("w", scalar(1.0))
    for line in range(2, 3000):
        reset(book, book.site(line, "w.grad = None"), w, None, "= None")
    (one,) = view(ended(book)).buffers
    assert len(one.entries) < 250
    assert any(isinstance(entry, Omitted) for entry in one.entries)


def test_zeros_are_no_earlier_gradient() -> None:
    book = started("import torch\nw.grad.zero_()\nloss.backward()\n", "zeros.py")
    w = book.leaf("w", scalar(1.0))
    loss = book.tensor()
    call = book.site(3, "loss.backward()")
    backward(book, call, loss, scalar(1.0), {w: (None, (), scalar(2.0))})
    book.add(events.GradReset, site=book.site(2, "w.grad.zero_()"), tensor=w, to="zero", by="zero_", before=scalar(2.0))
    backward(book, call, loss, scalar(1.0), {w: (scalar(0.0), (), scalar(2.0))})
    (one,) = view(ended(book)).buffers
    assert said(one) == ["None", "2", "0", "2"]
    assert [entry.since for entry in one.entries if isinstance(entry, Change)] == [None, None, None]


# --- not finite, failures, checks ---------------------------------------------------------------------


def test_the_first_gradient_that_is_not_finite_is_kept_with_its_term() -> None:
    first, _ = view(not_a_number()).nonfinite
    assert first.title == "model.weight"
    assert first.value.nan == 12
    assert first.term is not None
    assert first.term.place is not None
    assert first.term.place.where == "losses.py:2"


def test_a_caught_assertion_is_tied_to_its_check() -> None:
    failure = view(gradient_lab()).failures[0]
    assert failure.caught is not None
    assert failure.assertion is not None
    assert failure.assertion.sides[0] == ("w.grad.item()", "40.0")


def test_an_error_in_a_module_is_tied_to_the_contract_it_broke() -> None:
    failure = view(gradient_lab()).failures[1]
    assert failure.module == "model.0"
    assert failure.broken == "Linear(2, 1) expected 2 features in the last dimension, got 3"


def test_an_error_in_a_backward_is_tied_to_the_pass_that_it_stopped() -> None:
    (failure,) = view(freed_graph()).failures
    assert failure.stopped is not None
    assert failure.stopped.freed_by == 1
    assert failure.stopped.freed_at is not None
    assert failure.stopped.freed_at.where == "line 3"
    assert failure.stopped.blamed is not None
    assert failure.stopped.blamed.code == "w * w"


def test_what_nothing_caught_comes_first() -> None:
    book = started("import torch\na()\nb()\n", "order.py")
    book.add(events.Raised, site=book.site(2, "a()"), kind="ValueError", text="first", caught=book.site(2, "a()"))
    book.add(events.Raised, site=book.site(3, "b()"), kind="ValueError", text="second")
    assert [failure.text for failure in view(ended(book)).failures] == ["second", "first"]


def test_checks_in_a_loop_are_one_with_counts() -> None:
    book = started("import torch\nassert x > 0\n", "loop.py")
    for turn in range(100):
        book.check(2, "x > 0", turn != 50, ("x", str(turn)))
    (assertion,) = view(ended(book)).assertions
    assert (assertion.held, assertion.failed) == (99, 1)
    assert assertion.sides == (("x", "50"),)


# --- modules, graphs, optimizers -----------------------------------------------------------------------


def test_calls_with_different_batch_sizes_are_one_with_a_range() -> None:
    (call,) = view(micro_batches(50)).modules
    assert isinstance(call, Call)
    assert call.times == 200
    assert (call.inputs[0].low, call.inputs[0].high) == ((7, 3), (16, 3))


def test_a_mode_switch_lists_what_it_changed() -> None:
    switches = [entry for entry in view(gradient_lab()).modules if isinstance(entry, ModeSwitch)]
    assert [(switch.call, switch.changed) for switch in switches] == [
        ("train", ()), ("eval", ("model", "model.0", "model.1")), ("train", ("model", "model.0", "model.1")),
    ]  # fmt: skip


def test_calls_in_another_mode_are_others() -> None:
    outer = [entry for entry in view(gradient_lab()).modules if isinstance(entry, Call) and not entry.depth]
    assert [(call.training, call.grad_mode) for call in outer] == [
        (True, "on"), (False, "on"), (False, "off"), (True, "off"), (True, "on"),
    ]  # fmt: skip


def test_a_skipped_parameter_has_a_reason() -> None:
    (steps,) = view(micro_batches(50)).optimizing
    skipped = next(moved for moved in steps.moved if moved.skipped)
    assert (skipped.title, skipped.skipped, skipped.why) == ("unused", 50, "no backward had reached it")


def test_a_parameter_that_was_reset_before_the_step_says_so() -> None:
    book = started("import torch\nloss.backward()\no.zero_grad()\no.step()\n", "order.py")
    w = book.leaf("w", scalar(1.0))
    backward(book, book.site(2, "loss.backward()"), book.tensor(), scalar(1.0), {w: (None, (), scalar(2.0))})
    reset(book, book.site(3, "o.zero_grad()"), w, scalar(2.0))
    optimizer = book.new("optimizer")
    book.add(events.Optimizer, id=optimizer, kind="SGD", groups=(), name="o")
    book.add(events.OptimizerStepped, site=book.site(4, "o.step()"), optimizer=optimizer, updates=(), skipped=(w,))
    (steps,) = view(ended(book)).optimizing
    assert steps.moved[0].why == "reset by SGD.zero_grad (line 3), no backward since"


def test_a_cut_says_of_what_and_into_what() -> None:
    (cut,) = view(overwritten()).cuts
    assert (cut.by, cut.of, cut.result) == ("detach", "y", "h")


def test_a_cut_of_something_without_a_name_is_said_as_it_was_written() -> None:
    book = started("import torch\n(a * b).item()\n", "cut.py")
    product, _ = book.operation(book.site(2, "a * b"), "mul", [], scalar(1.0))
    book.add(
        events.Operation, site=book.site(2, "(a * b).item()"), function="item", cut="item",
        inputs=(Operand(tensor=product, code="a * b"),),
    )  # fmt: skip
    (cut,) = view(ended(book)).cuts
    assert (cut.of, cut.leaves_torch) == ("a * b", True)


# --- the run ---------------------------------------------------------------------------------------------


def test_a_ledger_that_breaks_off_has_no_ending() -> None:
    whole = gradient_lab()
    report = view(Ledger(whole.header, list(whole)[:60]))
    assert report.run.how == ""
    assert said(buffer(report, "w"))[:3] == ["None", "20", "40"]


def test_an_empty_ledger_has_a_view() -> None:
    report = view(Book(program="empty.py").ledger)
    assert (report.run.program, report.buffers) == ("empty.py", ())


def test_the_last_seed_counts() -> None:
    book = started("import torch\n", "seeds.py")
    for seed in ("1", "2", "3"):
        book.add(events.Seeded, generator="torch", seed=seed)
    (seed,) = view(ended(book)).run.seeds
    assert (seed.seed, seed.times) == ("3", 3)


def test_a_setting_that_the_program_changed_is_said() -> None:
    book = started("import torch\n", "settings.py")
    book.add(
        events.Environment, engine="pytorch", version="2.13.0+cpu", numpy="2.4.0", threads=8, deterministic=False,
        default_dtype="float32",
    )  # fmt: skip
    assert view(ended(book)).run.settings_changed == ("threads 1 -> 8",)


@pytest.mark.parametrize("name", STORIES)
def test_every_prefix_of_a_ledger_has_a_view(name: str) -> None:
    whole = STORIES[name]()
    known = list(whole)
    for length in range(0, len(known), max(len(known) // 25, 1)):
        view(Ledger(whole.header, known[:length]))


def test_a_light_stretch_is_a_gap_between_states() -> None:
    weight = buffer(view(folded_loop()), "model.weight")
    assert any(isinstance(entry, Light) for entry in weight.entries)
    assert said(weight)[-1] == "..."
    assert len(view(deep_network()).buffers) == 12
