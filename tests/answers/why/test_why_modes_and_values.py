"""Why a mode, a flag or a plain value is what it is, and what a line did."""

from __future__ import annotations

import pytest
from asking import ask, asked, recorded, text

from ledgers import gradient_lab

# --- modes ----------------------------------------------------------------------------------------------


def test_the_last_switch_decides_and_says_what_it_changed() -> None:
    answer = ask(gradient_lab(), "model.training")
    assert answer.headline.text == (
        "model.training is True at the end: `model.train()` (line 42) was the last to set it, which changed it from "
        "False."
    )
    assert answer.sentences[0].text == "It changed model, model.0 and model.1 from False to True."
    assert "model.1 (Dropout(p=1.0, inplace=False)) drops values in training mode" in text(answer)
    assert "Grad recording is another switch" in text(answer)


def test_a_switch_that_changed_nothing() -> None:
    answer = ask(gradient_lab(), "model.1.training", 31)
    assert "which left it as it was (True already)" in answer.headline.text
    assert "It changed nothing" in text(answer)


def test_evaluation_mode_at_a_line() -> None:
    answer = ask(gradient_lab(), "model.training", 36)
    assert (answer.reason, answer.value) == ("eval()", "False")
    assert "Since then it was called at line 35." in text(answer)


def test_a_module_starts_in_training_mode() -> None:
    answer = asked("m = nn.Linear(2, 1)\nm(torch.ones(1, 2))", "m.training")
    assert (answer.reason, answer.value) == ("never changed", "True")


def test_a_flag_that_was_assigned() -> None:
    source = "m = nn.Dropout(0.5)\nm.eval()\nm.training = True\nm(torch.ones(2))"
    answer = asked(source, "m.training")
    assert (answer.reason, answer.value) == ("assigned", "True")
    assert "`m.training = True` (line 3) was the last to set it, which changed it from False" in answer.headline.text


def test_a_module_by_itself() -> None:
    answer = ask(gradient_lab(), "model", 38)
    assert answer.headline.text == "model is a Sequential, called 3 times by line 38."
    assert "Its last call (line 38) took (1, 2) in evaluation mode with grad recording off (no_grad)" in text(answer)
    assert "It holds 1 parameter; none of them has had a gradient." in text(answer)


# --- requires_grad, grad_fn, is_leaf ----------------------------------------------------------------------


def test_requires_grad_by_an_operand() -> None:
    answer = ask(gradient_lab(), "y.requires_grad")
    assert "`model(x)` (line 35) computed it from model.0.weight, which requires grad, with grad mode on" in text(
        answer
    )


def test_requires_grad_denied_by_the_grad_mode() -> None:
    answer = ask(gradient_lab(), "y_without_graph.requires_grad")
    assert (answer.reason, answer.value) == ("cut: no_grad", "False")
    assert "(line 38) ran under no_grad, entered by `torch.no_grad()` (line 37)" in answer.headline.text


def test_requires_grad_of_leaves() -> None:
    lab = gradient_lab()
    assert ask(lab, "w.requires_grad").reason == "asked for"
    assert ask(lab, "model.0.weight.requires_grad").reason == "parameter"
    assert ask(lab, "x.requires_grad").reason == "created without requires_grad"


def test_requires_grad_gained_by_an_in_place_write() -> None:
    source = "o = torch.zeros(3)\nw = torch.ones(3, requires_grad=True)\no[0] = w[0]"
    ledger = recorded(source)
    assert ask(ledger, "o.requires_grad").reason == "written"
    assert ask(ledger, "o.is_leaf").value == "False"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("m.weight.require_grad = False", "Line 2 sets .require_grad, which is no attribute of tensors"),
        ("m.requires_grad = False", "m.requires_grad_(...) does."),
    ],
)
def test_a_switch_that_was_none(line: str, says: str) -> None:
    answer = asked(f"m = nn.Linear(2, 1)\n{line}\nm(torch.ones(1, 2)).sum().backward()", "m.weight.requires_grad")
    assert answer.value == "True"
    assert says in text(answer)


def test_grad_fn_and_leaves() -> None:
    lab = gradient_lab()
    assert ask(lab, "loss.grad_fn").value == "PowBackward0"
    assert ask(lab, "w.grad_fn").reason == "leaf"
    assert ask(lab, "y_without_graph.grad_fn").value == "None"
    assert ask(lab, "loss.is_leaf").value == "False"
    assert "a tensor that does not require grad counts as a leaf" in text(ask(lab, "x.is_leaf"))


# --- values -----------------------------------------------------------------------------------------------


def test_a_value_goes_back_to_its_leaves() -> None:
    answer = ask(gradient_lab(), "loss", 8)
    assert [sentence.text for sentence in (answer.headline, *answer.sentences)] == [
        "loss is 25 at line 8: `(w * 2.0 - 1.0).square()` (line 8), with w * 2.0 - 1.0 = 5.",
        "`w * 2.0 - 1.0` (line 8) is 5, with w * 2.0 = 6.",
        "`w * 2.0` (line 8) is 6, with w = 3.",
        "w is 3: `torch.tensor(3.0, requires_grad=True)` (line 7) made it.",
    ]


def test_a_loop_is_told_once() -> None:
    source = "h, w = torch.tensor(1.0), torch.tensor(2.0)\nfor _ in range(12):\n    h = h * w"
    answer = asked(source, "h")
    assert answer.headline.text == "h is 4096 at the end: `h * w` (line 3), with h = 2048 and w = 2."
    assert "`h * w` (line 3) ran 12 times on the way to it." in text(answer)


def test_a_value_that_a_step_wrote() -> None:
    source = "w = torch.ones(1, requires_grad=True)\no = torch.optim.SGD([w], 0.5)\n(w * 2).sum().backward()\no.step()"
    answer = asked(source, "w")
    assert answer.headline.text == "w is [0] at the end: `o.step()` (line 4) wrote it in place last (SGD.step)."


def test_a_value_that_was_written_by_hand() -> None:
    source = "w = torch.ones(2, requires_grad=True)\nwith torch.no_grad():\n    w -= 0.5"
    assert "`w -= 0.5` (line 3) wrote it in place last" in asked(source, "w").headline.text


def test_modules_show_their_parameters() -> None:
    source = """
    m = nn.Linear(1, 1)
    with torch.no_grad():
        m.weight.fill_(2.0)
        m.bias.fill_(1.0)
    y = m(torch.ones(1, 1))
    """
    answer = asked(source, "y")
    assert "m.weight = [[2]] and m.bias = [1]" in answer.headline.text


# --- what a line did --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (8, "loss is 25 at line 8"),
        (9, "`loss.backward()` (line 9) ran backward #1: it went back from loss = 25"),
        (14, "`assert w.grad.item() == 40.0` (line 14) held: w.grad.item() is 40.0."),
        (16, "Line 16 raised AssertionError (caught at line 17)"),
        (22, "`w.grad = None` (line 22) set the grad of w to None. - w.grad had been 40."),
        (34, "model.training is False at line 34"),
        (37, "entered no_grad: from then on operations are not recorded. - At the end of the block operations are rec"),
        (47, "Line 47 raised RuntimeError (caught at line 48)"),
    ],
)
def test_a_line_tells_its_most_telling_event(line: int, says: str) -> None:
    assert says in text(ask(gradient_lab(), "", line))


def test_a_backward_line_tells_what_it_wrote() -> None:
    answer = ask(gradient_lab(), "", 13)
    assert "w.grad: 20 -> 40, 20 more through w * 2.0 (line 13)." in text(answer)
    assert "It freed what 2 nodes had saved." in text(answer)


def test_a_step_tells_what_moved_and_what_it_skipped() -> None:
    source = """
    w, v = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    o = torch.optim.SGD([w, v], 0.5)
    (w * 2).sum().backward()
    o.step()
    """
    told = text(asked(source, "", 4))
    assert "`o.step()` (line 4) made a step of SGD: it changed 1 of 2 parameters." in told
    assert "w, with grad [2], moved by 1 (norm)." in told
    assert "It skipped v: their grad was None." in told


def test_a_line_that_returned_gradients() -> None:
    source = "w = torch.tensor(3.0, requires_grad=True)\ng = torch.autograd.grad(w * 6, [w])"
    assert "For w it returned 6, through w * 6 (line 2)" in text(asked(source, "", 2))
