"""How a question is understood: expressions, names and lines; and one clear sentence for what is not known."""

from __future__ import annotations

import contextlib
import json
import textwrap

import pytest
from asking import ask, asked, recorded, text
from hypothesis import given
from hypothesis import strategies as st

from ledgers import Book, folded_loop, gradient_lab, scalar
from whygrad.answers.why import Aspect, Target, why
from whygrad.answers.why.expression import canonical, parse
from whygrad.answers.why.units import bodies_of, body_at
from whygrad.errors import BadInput
from whygrad.ledger import Ledger
from whygrad.ledger.events import TensorId

# --- expressions and names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "name", "aspect"),
    [
        ("w", "w", Aspect.VALUE),
        ("w.grad", "w", Aspect.GRAD),
        ("model.0.weight.grad", "model.0.weight", Aspect.GRAD),
        ('batch["x"].requires_grad', 'batch["x"]', Aspect.REQUIRES_GRAD),
        (" loss.grad_fn ", "loss", Aspect.GRAD_FN),
        ("x.is_leaf", "x", Aspect.IS_LEAF),
        ("model.training", "model", Aspect.TRAINING),
        ("w.gradient", "w.gradient", Aspect.VALUE),
        (".grad", ".grad", Aspect.VALUE),
    ],
)
def test_an_expression_is_a_name_and_an_aspect(expression: str, name: str, aspect: Aspect) -> None:
    wanted = parse(expression)
    assert (wanted.name, wanted.aspect, wanted.is_error) == (name, aspect, False)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_in_one_sentence(expression: str) -> None:
    parse(expression)
    with contextlib.suppress(BadInput):
        assert why(gradient_lab_once(), expression, ("", 24)).headline.text


_LAB: list[Ledger] = []


def gradient_lab_once() -> Ledger:
    if not _LAB:
        _LAB.append(gradient_lab())
    return _LAB[0]


def test_items_and_paths_are_spelled_alike() -> None:
    assert canonical("model[0].weight") == canonical("model.0.weight")
    assert canonical("batch['x']") == canonical('batch[ "x" ]')
    lab = gradient_lab()
    assert ask(lab, "model[0].weight.grad").reason == ask(lab, "model.0.weight.grad").reason


def test_a_target_by_the_tensors_id() -> None:
    lab = gradient_lab()
    [weight] = lab.find("w")
    assert why(lab, Target(weight)).about == "w.grad"
    assert why(lab, Target(weight, Aspect.IS_LEAF)).value == "True"
    with pytest.raises(BadInput, match="tensor 999 is not in the ledger"):
        why(lab, Target(TensorId(999)))


def test_an_expression_of_the_programs_text() -> None:
    assert ask(gradient_lab(), "w * 2.0", 8).value == "6"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"^los: nothing of this name took part .* Known names: loss\.$"):
        ask(gradient_lab(), "los")
    with pytest.raises(BadInput, match=r"Known names: model, w, loss and x\."):
        ask(gradient_lab(), "zzzzzz.grad")


def test_a_name_that_comes_later() -> None:
    with pytest.raises(BadInput, match=r"^y: no tensor has this name at line 8 \(it gets the name at line 35\)\.$"):
        ask(gradient_lab(), "y", 8)


def test_aspects_that_do_not_fit() -> None:
    with pytest.raises(BadInput, match="w is a tensor, and only modules have a training flag"):
        ask(gradient_lab(), "w.training")
    with pytest.raises(BadInput, match="model is a module; ask for one of its parameters"):
        ask(gradient_lab(), "model.grad")


def test_no_expression_and_no_line() -> None:
    with pytest.raises(BadInput, match="an expression is missing"):
        ask(folded_loop(), "")
    assert ask(gradient_lab(), "").reason == "broken contract"


# --- lines ----------------------------------------------------------------------------------------------


def test_a_line_beyond_the_file() -> None:
    with pytest.raises(BadInput, match=r"line 300: gradient_lab\.py has 54 lines"):
        ask(gradient_lab(), "w.grad", 300)


def test_a_line_that_never_ran() -> None:
    with pytest.raises(BadInput, match=r"line 3 never ran, .* The nearest recorded lines are 1, 2 and 4\."):
        ask(recorded("x = torch.ones(1)\nif x.sum() < 0:\n    y = x * 2\nz = x * 3"), "x", 3)
    with pytest.raises(BadInput, match="line 3 never ran: the RuntimeError at line 2 ended the program"):
        ask(recorded("w = torch.ones(2)\nw.sum().backward()\nprint(1)"), "w.grad", 3)


def test_a_line_that_records_nothing_is_found_between_its_neighbours() -> None:
    ledger = recorded(
        """
        w = torch.ones(1, requires_grad=True)
        n = 3
        (w * n).sum().backward()
        print(w.grad)
        w.grad = None
        print(w.grad)
        """
    )
    assert ask(ledger, "w.grad", 2).headline.text.startswith("w.grad is None at line 2: no backward had run by then")
    assert ask(ledger, "w.grad", 4).value == "[3]"
    assert ask(ledger, "w.grad", 6).headline.text.startswith(
        "w.grad is None at line 6: `w.grad = None` (line 5) reset it"
    )


def test_a_line_of_a_loop_is_its_last_turn() -> None:
    source = """
    w = torch.ones(1, requires_grad=True)
    for factor in (1.0, 10.0, 100.0):
        h = w * factor
        h.sum().backward()
    """
    answer = asked(source, "h", 3)
    assert answer.headline.text.startswith("h is [100] at line 3 (the last of 3 runs): ")


def test_a_read_of_none_in_the_last_turn_of_a_loop() -> None:
    source = """
    w = torch.ones(1, requires_grad=True)
    for turn in range(2):
        (w * 2).sum().backward()
        print(w.grad)
        w = w - 0.1 * (w.grad if w.grad is not None else 0)
    """
    assert asked(source, "w.grad", 4).reason == "not a leaf"


def test_local_names_are_those_of_the_lines_function() -> None:
    source = """
    def double(x):
        y = x * 2
        return y
    y = torch.ones(1)
    z = double(y)
    """
    ledger = recorded(source)
    assert ask(ledger, "y", 2).value == "[2]"
    assert ask(ledger, "y").value == "[1]"


def test_the_moment_of_folded_steps_is_the_last_recorded_one() -> None:
    answer = ask(folded_loop(), "model.weight.grad", 8)
    assert "at line 8 (the last of 3 runs recorded in full): backward #3" in answer.headline.text


def test_lines_of_another_file() -> None:
    book = Book("import helpers\n", program="main.py")
    book.source("lib/helpers.py", "x = torch.ones(1)\n")
    book.leaf("x", scalar(1.0), book.site(1, "torch.ones(1)", path="lib/helpers.py"))
    answer = why(book.ledger, "x", ("helpers.py", 1))
    assert "at helpers.py:1" in answer.headline.text
    with pytest.raises(
        BadInput, match=r"other\.py: the ledger holds no such file; the recorded files are: main\.py and helpers\.py\."
    ):
        why(book.ledger, "x", ("other.py", 1))


def test_blocks_of_statements() -> None:
    source = textwrap.dedent(
        """
        a = 1
        for i in range(3):
            b = 2
            c = 3
        def f():
            return 4
        """
    ).lstrip()
    bodies = bodies_of(source)
    found = body_at(bodies, 4)
    assert found is not None
    body, unit = found
    assert (body.function, body.units[unit].start) == ("<module>", (4, 4))
    assert body.loop_around(unit, unit - 1) is not None
    assert body.loop_around(unit, 0) is None
    inner = body_at(bodies, 6)
    assert inner is not None
    assert inner[0].function == "f"
    assert bodies_of("not python (") == ()


# --- the answer's form ----------------------------------------------------------------------------------


@given(st.integers(30, 200))
def test_lines_keep_to_the_width_and_lose_no_word(width: int) -> None:
    answer = ask(gradient_lab_once(), "w.grad", 13)
    lines = answer.lines(width)
    longest = max(len(token) for token in ("(w * 2.0 - 1.0).square()", "(backward #1,"))
    assert all(len(line) <= max(width, longest) for line in lines)
    assert " ".join(" ".join(lines).split()).startswith(" ".join(answer.headline.text.split()))


def test_the_answer_is_json_with_its_evidence() -> None:
    answer = ask(gradient_lab(), "w.grad", 13)
    parsed = json.loads(answer.json())
    assert parsed["about"] == "w.grad"
    assert parsed["reason"] == "accumulated"
    assert parsed["value"] == "40"
    assert parsed["moment"]["line"] == 13
    assert len(parsed["headline"]["events"]) == 2
    assert all(sentence["text"] for sentence in parsed["sentences"])


def test_every_question_about_the_lab_has_an_answer_with_evidence() -> None:
    lab = gradient_lab()
    for name in ("w", "loss", "model.0.weight", "x", "y", "y_without_graph"):
        for aspect in ("", ".grad", ".requires_grad", ".grad_fn", ".is_leaf"):
            answer = ask(lab, name + aspect)
            assert answer.headline.events, answer
            assert text(answer)
    for line in (7, 8, 9, 10, 13, 16, 22, 28, 31, 34, 37, 38, 42, 44, 47):
        assert ask(lab, "", line).headline.events
