"""The terminal report, as a stranger reads it. The golden files are to be read, too."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import STORIES, backward, ended, micro_batches, started

from ledgers import Book, folded_loop, freed_graph, gradient_lab, scalar
from whygrad.answers.derive import Derivation, Status
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import BackwardId, TensorId
from whygrad.report.terminal import render

Golden = Callable[[str, str], None]

LEDGERS: dict[str, Callable[[], Ledger]] = STORIES | {
    made.__name__: made for made in (gradient_lab, folded_loop, freed_graph)
}

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", LEDGERS)
def test_golden_report(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", render(LEDGERS[name](), width=80))


@pytest.mark.parametrize("name", ["gradient_lab", "micro_batches"])
def test_golden_report_in_full(name: str, golden: Golden) -> None:
    golden(f"{name}_verbose.txt", render(LEDGERS[name](), width=120, verbose=True))


def test_golden_report_without_unicode(golden: Golden) -> None:
    golden("gradient_lab_ascii.txt", render(gradient_lab(), width=80, unicode=False))


def test_golden_report_in_colour(golden: Golden) -> None:
    golden("gradient_lab_colour.txt", render(gradient_lab(), width=80, color=True).replace("\x1b", "<ESC>"))


def test_a_small_program_fits_a_screen() -> None:
    assert len(render(gradient_lab(), width=120).splitlines()) <= 32


@pytest.mark.parametrize("name", LEDGERS)
def test_colour_adds_nothing_but_escape_codes(name: str) -> None:
    plain, coloured = (render(LEDGERS[name](), width=100, color=color) for color in (False, True))
    assert ESCAPES.sub("", coloured) == plain
    assert "\x1b" not in plain


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("verbose", [False, True])
def test_without_unicode_the_report_is_ascii(name: str, verbose: bool) -> None:
    assert render(LEDGERS[name](), width=80, unicode=False, verbose=verbose).isascii()


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal(name: str, width: int, verbose: bool) -> None:
    lines = render(LEDGERS[name](), width=width, verbose=verbose).splitlines()
    assert not [line for line in lines if len(line) > width]


@pytest.mark.parametrize("name", LEDGERS)
def test_no_line_ends_in_blanks_and_no_two_are_empty(name: str) -> None:
    text = render(LEDGERS[name](), width=80)
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    assert "\n\n\n" not in text


@pytest.mark.parametrize(
    ("name", "first"), [("freed_graph", "Failed"), ("not_a_number", "Failed"), ("two_terms", "Gradients")]
)
def test_what_went_wrong_comes_first(name: str, first: str) -> None:
    titles = [line for line in render(LEDGERS[name](), width=80).splitlines()[2:] if line[:1].strip()]
    assert titles[1 if titles[0] == "was set" else 0] == first


def derived(ledger: Ledger, name: str, **fields: Any) -> dict[TensorId, tuple[Derivation, ...]]:
    leaf = next(leaf for leaf in ledger.leaves() if ledger.name(leaf) == name)
    known = {"tensor": leaf, "name": name, "backward": BackwardId(1), "status": Status.AGREES}
    return {leaf: (Derivation(**(known | fields)),)}


def test_a_derivation_is_shown_under_its_buffer() -> None:
    ledger = gradient_lab()
    found = derived(
        ledger, "w", function="(2*w - 1)^2", steps=("4*(2*w - 1)",), result="20", point="w = 3", observed_text="20"
    )
    lines = render(ledger, width=120, derivations=found).splitlines()
    at = next(number for number, line in enumerate(lines) if "d/dw" in line)
    assert lines[at - 1].startswith("    line 23")
    assert lines[at] == "    d/dw (2*w - 1)^2 = 4*(2*w - 1) = 20 at w = 3; agrees with the observed 20"


def test_derivations_of_a_tensor_may_come_as_one() -> None:
    class Together:
        def lines(self) -> list[str]:
            return ["one line", "another line"]

    leaf = gradient_lab().leaves()[0]
    assert "    one line\n    another line\n" in render(gradient_lab(), width=80, derivations={leaf: Together()})


def test_gradients_that_agree_by_numbers_share_a_line() -> None:
    ledger = micro_batches()
    found = derived(ledger, "model.weight", result="norm 3", places=("line 7",))
    assert "    central differences in float64 agree (line 7)\n" in render(ledger, width=80, derivations=found)


def test_a_gradient_that_disagrees_is_shown_in_numbers() -> None:
    ledger = micro_batches()
    found = derived(
        ledger, "model.weight", status=Status.DISAGREES, result="norm 3", observed_text="norm 4", difference=1.0,
        tolerance=0.001,
    )  # fmt: skip
    assert "disagrees with the observed norm 4" in render(ledger, width=120, derivations=found)


def test_what_could_not_be_derived_is_said_when_all_is_told() -> None:
    ledger = micro_batches()
    found = derived(ledger, "model.weight", status=Status.NOT_DERIVED, reason="`f(x)` was not recorded")
    assert "not derived" not in render(ledger, width=80, derivations=found)
    assert "not derived: `f(x)` was not recorded" in render(ledger, width=80, verbose=True, derivations=found)


def test_source_that_looks_like_markup_is_shown_as_it_is() -> None:
    book = started("import torch\nx['[bold]'] * w\nloss.backward()\n", "markup.py")
    w = book.leaf("x['[/red]']", scalar(1.0))
    made = book.site(2, "x['[bold]'] * w")
    term = events.Contribution(value=scalar(2.0), site=made, operation="mul")
    backward(book, book.site(3, "loss.backward()"), book.tensor(), scalar(1.0), {w: (None, (term,), scalar(2.0))})
    text = render(ended(book), width=80, color=True)
    assert "x['[/red]']" in text
    assert "x['[bold]'] * w" in text


def test_names_that_are_not_ascii_are_escaped_where_the_terminal_cannot_print_them() -> None:
    book = started("import torch\n", "names.py")
    book.leaf("größe", scalar(1.0))
    ledger = ended(book)
    assert "größe" in render(ledger, width=80)
    assert "gr\\xf6\\xdfe" in render(ledger, width=80, unicode=False)


def test_a_program_that_never_met_torch_has_a_report() -> None:
    book = Book("print(1)\n", program="plain.py", engine="")
    book.add(events.Ended, how="returned", exit_code=0)
    text = render(book.ledger, width=80)
    assert "plain.py  returned, exit code 0" in text
    assert "no engine was imported" in text
    assert "no tensor requires grad, and no backward ran" in text


def test_a_ledger_that_breaks_off_says_so() -> None:
    whole = gradient_lab()
    assert "the ledger breaks off before the program ended" in render(Ledger(whole.header, list(whole)[:60]), width=120)


def test_arguments_are_shown_with_the_program() -> None:
    book = Book("", program="train.py", argv=("train.py", "--lr", "0.1"))
    assert render(book.ledger, width=80).startswith("train.py --lr 0.1  ")


def test_a_system_exit_is_an_ending_and_no_failure() -> None:
    book = started("import torch\nsys.exit(3)\n", "leaves.py")
    book.add(events.Raised, site=book.site(2, "sys.exit(3)"), kind="SystemExit", text="3")
    text = render(ended(book, "exit", 3), width=80)
    assert "Failed" not in text
    assert "exit code 3" in text


@settings(max_examples=30)
@given(st.integers(40, 160), st.text(max_size=60), st.text(min_size=1, max_size=30))
def test_any_name_and_any_message_can_be_laid_out(width: int, message: str, name: str) -> None:
    book = started("import torch\nf()\n", "any.py")
    book.leaf(name, scalar(1.0))
    book.add(events.Raised, site=book.site(2, "f()"), kind="ValueError", text=message)
    assert render(ended(book), width=width, unicode=False).isascii()


@pytest.mark.parametrize(
    ("module", "kept_out"),
    [("view", {"rich", "torch", "jinja2", "click"}), ("terminal", {"torch", "jinja2", "click"})],
)
def test_a_report_imports_only_what_it_needs(module: str, kept_out: set[str]) -> None:
    code = f"import sys, whygrad.report.{module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not kept_out & set(loaded)
