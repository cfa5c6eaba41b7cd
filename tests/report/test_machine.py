"""The JSON summary: what it says of known ledgers, that its size is bounded, and that its schemas are published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledgers import Book, folded_loop, freed_graph, gradient_lab, scalar, term, value
from whygrad.answers.derive import derivations
from whygrad.ledger import Ledger, events
from whygrad.report import machine, schemas
from whygrad.report.summary import Summary

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "schema"


def _said(ledger: Ledger) -> dict[str, Any]:
    said = json.loads(machine.render(ledger))
    assert isinstance(said, dict)
    return said


def test_the_parts_are_those_that_are_published() -> None:
    assert set(_said(gradient_lab())) == {
        "schema", "program", "engine", "environment", "buffers", "modules", "modes", "checks", "raised", "findings",
        "lost",
    }  # fmt: skip


def test_the_object_is_one_line() -> None:
    text = machine.render(gradient_lab())
    assert text.endswith("}\n")
    assert text.count("\n") == 1


def test_the_program_the_engine_and_the_environment() -> None:
    said = _said(gradient_lab())
    assert said["program"] == {
        "path": "gradient_lab.py", "kind": "script", "argv": ["gradient_lab.py"], "ended": "returned", "exit_code": 0,
    }  # fmt: skip
    assert said["engine"] == {"name": "pytorch", "version": "2.13.0+cpu"}
    assert said["environment"]["threads"] == 2


def test_the_history_of_a_buffer_with_lines_values_and_contributions() -> None:
    buffer = _said(gradient_lab())["buffers"][0]
    assert (buffer["name"], buffer["line"]) == ("w", 7)
    story = [(change["event"], change["line"], change["before"], change["value"]) for change in buffer["history"]]
    assert story == [
        ("set", 9, None, 20.0),
        ("added", 13, 20.0, 40.0),
        ("reset", 22, 40.0, None),
        ("set", 23, None, 20.0),
    ]
    (contribution,) = buffer["history"][1]["contributions"]
    assert (contribution["value"], contribution["line"], contribution["operation"]) == (20.0, 13, "mul")
    assert buffer["history"][2]["by"] == "= None"


def test_a_buffer_that_stayed_none_says_why() -> None:
    silent = _said(gradient_lab())["buffers"][1]
    assert silent["name"] == "model.0.weight"
    assert silent["history"] == []
    assert "no backward reached it" in silent["silent"]


def test_checks_say_which_failures_the_program_expected() -> None:
    checks = {check["line"]: check for check in _said(gradient_lab())["checks"]}
    assert (checks[10]["held"], checks[10]["failed"]) == (1, 0)
    assert (checks[16]["held"], checks[16]["failed"], checks[16]["caught"]) == (0, 1, 1)
    assert checks[16]["sides"][0] == {"expression": "w.grad.item()", "value": "40.0"}


def test_exceptions_carry_the_cause_that_the_ledger_knows() -> None:
    raised = _said(gradient_lab())["raised"]
    broken = next(one for one in raised if one["kind"] == "RuntimeError")
    assert broken["broken"] == "Linear(2, 1) expected 2 features in the last dimension, got 3"
    assert (broken["module"], broken["line"], broken["caught"]) == ("model.0", 47, 48)
    (freed,) = _said(freed_graph())["raised"]
    assert (freed["freed_by"], freed["caught"], freed["line"]) == (1, None, 4)


def test_modes_are_in_the_order_in_which_they_first_happened() -> None:
    modes = [(mode["call"], mode["mode"], mode["line"]) for mode in _said(gradient_lab())["modes"]]
    assert modes == [
        ("no_grad", "off", 27), ("train", "train", 31), ("eval", "eval", 34), ("no_grad", "off", 37),
        ("train", "train", 42), ("no_grad", "off", 43),
    ]  # fmt: skip


def test_module_calls_say_mode_shapes_and_value() -> None:
    calls = [call for call in _said(gradient_lab())["modules"] if call["module"] == "model"]
    assert [(call["line"], call["training"], call["grad_mode"], call["value"]) for call in calls[:3]] == [
        (32, True, "on", [[0.0]]), (35, False, "on", [[2.0]]), (38, False, "off", [[2.0]]),
    ]  # fmt: skip
    assert calls[0]["inputs"] == [{"least": [1, 2], "most": [1, 2], "dtype": "float32"}]


def test_derivations_stand_with_their_buffer() -> None:
    ledger = gradient_lab()
    said = machine.summary(ledger, derivations=derivations(ledger))
    (derived,) = said.buffers[0].derivations
    assert (derived.status, derived.expected, derived.observed) == ("agrees", (20.0,), (20.0,))


def test_lightly_recorded_steps_are_folded() -> None:
    buffer = _said(folded_loop())["buffers"][0]
    assert [change["event"] for change in buffer["history"]] == ["set", "reset", "set", "reset", "set"]
    (folded,) = buffer["folded"]
    assert (folded["first_step"], folded["last_step"], folded["writes"]) == (4, 303, 300)


def test_values_are_nested_as_their_shape_and_large_ones_have_a_norm_only() -> None:
    book = Book("loss.backward()\n")
    site = book.site(1, "loss.backward()")
    large = events.Value(shape=(300, 10), dtype="float32", norm=1.5, low=-1.0, high="nan", nan=2)
    for name, after in (("small", value((2, 1, 2), 3.0, 4.0, 0.0, float("nan"))), ("large", large)):
        leaf = book.tensor(after.shape, leaf=True, requires_grad=True, origin="created")
        book.named(leaf, name)
        book.add(
            events.GradWritten, site=site, tensor=leaf, backward=1, before=None, contributions=(term(after),),
            after=after,
        )  # fmt: skip
    small, big = (buffer["history"][0] for buffer in _said(book.ledger)["buffers"])
    assert (small["value"], small["norm"], small["nan"]) == ([[[3.0, 4.0]], [[0.0, "nan"]]], "nan", 1)
    assert (big["value"], big["norm"], big["nan"]) == (None, 1.5, 2)


def test_an_empty_tensor_has_an_empty_list() -> None:
    book = Book()
    empty = value((0, 3))
    leaf = book.leaf("w", empty)
    book.add(events.GradReset, tensor=leaf, to="zero", by="zero_", before=empty)
    (change,) = _said(book.ledger)["buffers"][0]["history"]
    assert change["value"] == []


def test_a_gradient_that_was_only_returned_leaves_the_buffer_as_it_was() -> None:
    book = Book()
    leaf = book.leaf("w", scalar(3.0))
    book.add(events.GradReturned, tensor=leaf, backward=1, contributions=(term(6.0),), value=scalar(6.0))
    (change,) = _said(book.ledger)["buffers"][0]["history"]
    assert (change["event"], change["before"], change["value"]) == ("returned", None, 6.0)


def test_the_middle_of_a_long_life_is_counted_not_listed() -> None:
    book = Book()
    leaf = book.leaf("w", scalar(3.0))
    for _ in range(250):
        for after in (scalar(1.0), scalar(2.0)):
            book.add(events.GradChanged, tensor=leaf, by="mul_", before=None, after=after)
    buffer = _said(book.ledger)["buffers"][0]
    assert len(buffer["history"]) == 2 * machine.HISTORY_ENDS
    assert buffer["omitted"] == 500 - 2 * machine.HISTORY_ENDS


def test_what_was_not_recorded_is_said() -> None:
    book = Book()
    book.add(events.Lost, what="values of a sparse tensor", why="no layout")
    (lost,) = _said(book.ledger)["lost"]
    assert lost["kind"] == "lost"
    assert "sparse tensor" in lost["text"]


@pytest.mark.parametrize("make", [gradient_lab, folded_loop, freed_graph, lambda: Book().ledger])
def test_the_text_is_of_the_published_types(make: Any) -> None:
    ledger = make()
    assert msgspec.json.decode(machine.render(ledger), type=Summary, strict=True) == machine.summary(ledger)


@pytest.mark.parametrize("name", ["run.json", "ledger.json"])
def test_the_published_schema_is_that_of_the_types(name: str, request: pytest.FixtureRequest) -> None:
    made = schemas.documents()[name]
    if request.config.getoption("--update-golden"):
        (PUBLISHED / name).write_text(made, encoding="utf-8")
    published = (PUBLISHED / name).read_text(encoding="utf-8")
    assert made == published, f"docs/schema/{name} is not up to date; run pytest --update-golden"


def test_every_event_has_a_published_schema() -> None:
    definitions = json.loads((PUBLISHED / "ledger.json").read_text(encoding="utf-8"))["$defs"]
    assert {kind.__name__ for kind in events.Event.__subclasses__()} <= set(definitions)
