"""Why a gradient has its value: every write since the buffer was last empty, with lines and numbers."""

from __future__ import annotations

import pytest
from asking import ask, asked, recorded, text

from ledgers import folded_loop, gradient_lab


def test_one_backward_is_told_with_its_line_and_the_expression() -> None:
    answer = ask(gradient_lab(), "w.grad", 9)
    assert answer.headline.text == "w.grad is 20 at line 9: backward #1 (line 9) set it, through w * 2.0 (line 8)."
    (chain,) = answer.sentences
    assert chain.text == "By the chain rule d/dw (2*w - 1)^2 = 2*(2*w - 1) * 2 = 4*(2*w - 1) = 20 at w = 3."
    assert (answer.reason, answer.value) == ("written", "20")


def test_two_backwards_are_a_sum_without_a_reset_between() -> None:
    answer = ask(gradient_lab(), "w.grad", 13)
    assert answer.headline.text == (
        "w.grad is 40 at line 13: 20 (backward #1, line 9, through w * 2.0) + 20 (backward #2, line 13, through "
        "w * 2.0); nothing reset the buffer between."
    )
    assert answer.reason == "accumulated"
    assert len(answer.headline.events) == 2


def test_after_a_reset_only_what_came_since_counts() -> None:
    answer = ask(gradient_lab(), "w.grad")
    assert answer.headline.text == "w.grad is 20 at the end: backward #3 (line 23) set it, through w * 2.0 (line 23)."
    assert answer.sentences[0].text == ("Before that, `w.grad = None` (line 22) had emptied the buffer, which held 40.")


def test_terms_of_one_backward_are_told_apart() -> None:
    answer = asked(
        """
        w = torch.tensor(3.0, requires_grad=True)
        twenty = w * 20
        cube = w ** 3
        (cube + twenty).backward()
        """,
        "w.grad",
        4,
    )
    assert answer.headline.text.startswith("w.grad is 47 at line 4, from backward #1 (line 4): 47 = ")
    assert "27 through w ** 3 (line 3)" in answer.headline.text
    assert "20 through w * 20 (line 2)" in answer.headline.text


def test_one_expression_that_uses_the_leaf_twice() -> None:
    answer = asked("w = torch.tensor(3.0, requires_grad=True)\n(w * w).backward()", "w.grad")
    assert answer.headline.text.endswith("through w * w (line 2): 3 + 3, one for each use.")


def test_uses_in_a_loop_are_counted() -> None:
    source = """
    w = torch.tensor(2.0, requires_grad=True)
    h = torch.tensor(1.0)
    for _ in range(12):
        h = h * w
    h.backward()
    """
    assert "the sum of 12 terms, one for each use, the last of them" in asked(source, "w.grad").headline.text


def test_many_alike_backwards_are_told_once() -> None:
    answer = asked(
        """
        w = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], 0.1)
        for _ in range(5):
            (w * 2).backward()
            optimizer.step()
        """,
        "w.grad",
    )
    assert answer.headline.text == (
        "w.grad is 10 at the end: the sum of 5 backward passes (#1 to #5, line 4, through w * 2), 2 each; nothing "
        "reset the buffer between."
    )
    assert "An optimizer stepped 4 times between them (line 5)" in text(answer)


def test_backward_onto_zeros() -> None:
    source = """
    m = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(m.parameters(), 0.1)
    m(torch.ones(1, 2)).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    m(torch.ones(1, 2)).sum().backward()
    """
    ledger = recorded(source)
    assert "added it onto the zeros that were there" in ask(ledger, "m.weight.grad").headline.text
    zeroed = ask(ledger, "m.weight.grad", 4)
    assert zeroed.reason == "zeroed"
    assert (
        "`optimizer.zero_grad(set_to_none=False)` (line 4) set it to zeros (it held [[1, 1]])" in zeroed.headline.text
    )


def test_clipping_and_hand_written_scaling_are_told_in_order() -> None:
    ledger = recorded(
        """
        m = nn.Linear(2, 1)
        (m(torch.tensor([[3.0, 4.0]])) * 2).sum().backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        m.weight.grad.mul_(0.5)
        """
    )
    clipped = ask(ledger, "m.weight.grad", 3)
    assert clipped.reason == "changed"
    assert "`nn.utils.clip_grad_norm_(m.parameters(), 1.0)` (line 3) changed it from [[6, 8]]" in clipped.headline.text
    scaled = ask(ledger, "m.weight.grad")
    assert "`m.weight.grad.mul_(0.5)` (line 4) changed it" in scaled.headline.text
    assert [sentence.text.split(" (line")[0] for sentence in scaled.sentences] == [
        "Backward #1",
        "`nn.utils.clip_grad_norm_(m.parameters(), 1.0)`",
        "`m.weight.grad.mul_(0.5)`",
    ]


def test_a_hook_that_replaced_the_gradient_is_named() -> None:
    source = """
    w = torch.ones(1, requires_grad=True)
    w.register_hook(lambda gradient: gradient * 10)
    (w * 2).sum().backward()
    """
    assert "A hook on the tensor replaced the gradient of backward #1 (line 3): [2] arrived, [20] was written." in text(
        asked(source, "w.grad")
    )


def test_an_assigned_gradient() -> None:
    source = "p = nn.Parameter(torch.ones(2))\np.grad = torch.full((2,), 3.0)"
    answer = asked(source, "p.grad")
    assert answer.headline.text == "p.grad is [3, 3] at the end: `p.grad = torch.full((2,), 3.0)` (line 2) assigned it."
    assert answer.reason == "assigned"


def test_a_result_that_retains_its_gradient() -> None:
    source = "w = torch.ones(2, requires_grad=True)\nh = w * 2\nh.retain_grad()\nh.sum().backward()"
    answer = asked(source, "h.grad")
    assert (answer.reason, answer.value) == ("written", "[1, 1]")
    assert "through h.sum() (line 4)" in answer.headline.text


def test_module_parameters_say_through_which_module() -> None:
    source = """
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    net(torch.ones(1, 2)).sum().backward()
    """
    assert "through net.2 in net(torch.ones(1, 2)) (line 2)" in asked(source, "net.2.weight.grad").headline.text


def test_large_gradients_are_told_by_shape_and_norm() -> None:
    answer = asked("m = nn.Linear(10, 7)\nm(torch.ones(1, 10)).sum().backward()", "m.weight.grad")
    assert answer.headline.text.startswith(
        "m.weight.grad is a tensor of shape (7, 10), norm 8.367, elements from 1 to 1"
    )


def test_folded_steps_are_counted_and_not_invented() -> None:
    answer = ask(folded_loop(), "model.weight.grad")
    assert answer.reason == "recorded lightly"
    assert "in steps 4 to 303 it was written 300 times and reset 300 times" in answer.headline.text
    assert "The last write recorded in full was backward #3 (line 8): [[0.1667, 0.08333]]" in text(answer)


def test_steps_that_were_recorded_lightly_are_looked_through() -> None:
    source = """
    enc, head = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*enc.parameters(), *head.parameters()], 0.1)
    for _ in range(50):
        loss = head(enc(torch.ones(2, 4)).detach()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    ledger = recorded(source, depth="auto")
    cut = ask(ledger, "enc.weight.grad")
    assert cut.reason == "cut: detach"
    assert "were recorded lightly; nothing wrote it there either." in text(cut)
    assert ask(ledger, "head.weight.grad").reason == "recorded lightly"
    assert ask(ledger, "loss").headline.text.startswith("loss was ")
    assert "when last recorded in full (step " in ask(ledger, "loss").headline.text


def test_a_pass_that_failed_adds_nothing() -> None:
    source = "x = torch.tensor(3.0, requires_grad=True)\ny = x ** 2\ny.backward()\ny.backward()"
    assert "Backward #2 (line 4) would have added to it, but failed (RuntimeError)." in text(asked(source, "x.grad"))


# --- zero, NaN, infinity --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "because"),
    [
        ("torch.round(w * 2)", "round is flat between its jumps"),
        ("F.relu(w - 100)", "it gave 0 for every element, and relu has slope 0 there"),
        ("w.clamp(5, 6)", "every element lay outside the bounds"),
        ("w * torch.zeros(2)", "it multiplies by 0"),
        ("F.softmax(w[:, None], 1)", "a softmax over a single element is always 1"),
    ],
)
def test_a_gradient_of_zero_names_the_flat_operation(expression: str, because: str) -> None:
    source = f"w = torch.tensor([1.0, 2.0], requires_grad=True)\nh = {expression}\nh.sum().backward()"
    answer = asked(source, "w.grad")
    assert answer.value == "[0, 0]"
    assert f"Every way back passes `{expression}` (line 2): " in text(answer)
    assert because in text(answer)


def test_a_flat_operation_on_one_of_several_ways_is_not_blamed() -> None:
    source = "w = torch.tensor([1.0, 2.0], requires_grad=True)\n(torch.round(w) + w).sum().backward()"
    assert "Every way back" not in text(asked(source, "w.grad"))


def test_ways_that_cancel_are_named() -> None:
    source = """
    w = torch.tensor([1.2, 2.3], requires_grad=True)
    z = 4 * w
    q = z + (torch.round(z) - z)
    q.sum().backward()
    """
    assert "Several ways back meet at `4 * w` (line 2)" in text(asked(source, "w.grad"))


def test_nan_from_sqrt_at_zero() -> None:
    source = "w = torch.zeros(3, requires_grad=True)\nr = torch.sqrt((w * w).sum())\nr.backward()"
    assert "`torch.sqrt((w * w).sum())` (line 2): the slope of sqrt is infinite at 0" in text(asked(source, "w.grad"))


def test_nan_through_a_branch_that_is_not_used() -> None:
    source = """
    v = torch.tensor([-1.0, 200.0], requires_grad=True)
    e = torch.exp(v)
    torch.where(v > 0, v, e).sum().backward()
    """
    assert "even where that element is not used, 0 times infinity is NaN" in text(asked(source, "v.grad"))


def test_a_loss_that_is_not_finite_is_blamed_first() -> None:
    source = "w = torch.zeros(2, requires_grad=True)\nl = torch.log(w).sum()\nl.backward()"
    assert "`torch.log(w)` (line 2) was the first to give NaN or infinity" in text(asked(source, "w.grad"))


def test_a_write_through_data_is_shown_where_the_version_counter_is_silent() -> None:
    source = """
    w = torch.tensor(2.0, requires_grad=True)
    u = w * 1
    l = u * u
    u.data.fill_(100.0)
    l.backward()
    """
    assert (
        "`u.data.fill_(100.0)` (line 4) wrote into u unseen by autograd, after `u * u` (line 3) had saved it"
        in text(asked(source, "w.grad"))
    )
