"""Why a line failed: who freed, wrote, cut or misshaped, and what to do."""

from __future__ import annotations

import pytest
from asking import ask, asked, recorded, text

from ledgers import freed_graph, gradient_lab
from whygrad.errors import BadInput


def test_second_backward_from_the_same_loss() -> None:
    answer = ask(freed_graph(), "error")
    assert answer.reason == "second backward"
    assert answer.headline.text == (
        "Line 4 raised RuntimeError: this is the second backward from loss, which `w * w` (line 2) computed once; "
        "backward #1 (line 3) had freed its graph."
    )
    assert "or call the first one (line 3) with retain_graph=True" in text(answer)


def test_second_backward_calls_the_loss_as_the_line_does() -> None:
    source = "x = torch.tensor(3.0, requires_grad=True)\ny = x ** 2\nloss = y\nloss.backward()\nloss.backward()"
    answer = asked(source, "error")
    assert "this is the second backward from loss" in answer.headline.text
    assert "It stopped at PowBackward0, made by `x ** 2` (line 2), whose saved values are gone." in text(answer)


def test_state_that_carries_a_freed_graph_over() -> None:
    source = """
    r = nn.RNN(4, 3)
    h = None
    for _ in range(3):
        out, h = r(torch.ones(2, 1, 4), h)
        out.sum().backward()
    """
    answer = asked(source, "error")
    assert "goes back through h into the graph that backward #1 (line 5) had freed" in answer.headline.text
    assert "`h = h.detach()` after the backward" in text(answer)


def test_state_of_a_module_is_called_as_its_code_does() -> None:
    source = """
    class Centre(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("centre", torch.zeros(2))
        def forward(self, x):
            centre = 0.9 * self.centre + 0.1 * x.mean(0)
            self.centre = centre
            return (x - centre).pow(2).mean()
    net, criterion = nn.Linear(2, 2), Centre()
    for _ in range(2):
        criterion(net(torch.ones(3, 2))).backward()
    """
    assert "`self.centre = self.centre.detach()`" in text(asked(source, "error"))


def test_two_losses_with_a_common_part() -> None:
    source = """
    w = torch.ones(1, requires_grad=True)
    s = w.exp()
    a, b = s.sum(), (s * 2).sum()
    a.backward()
    b.backward()
    """
    answer = asked(source, "error")
    assert "were both computed from s, whose graph backward #1 (line 4) had freed" in answer.headline.text
    assert "The shared node is ExpBackward0, made by `w.exp()` (line 2)." in text(answer)
    assert "Sum the two losses and call backward once" in text(answer)


def test_written_in_place_after_it_was_saved() -> None:
    source = """
    w = torch.ones(2, requires_grad=True)
    s = w.sigmoid()
    q = s * 2
    s.add_(1)
    q.sum().backward()
    """
    answer = asked(source, "error")
    assert answer.reason == "written in place"
    assert answer.headline.text == (
        "Line 5 raised RuntimeError: `s.add_(1)` (line 4) wrote into s in place after `w.sigmoid()` (line 2) had saved "
        "it for its backward."
    )
    assert "It was saved at version 0; this backward found it at version 1." in text(answer)


def test_a_step_between_forward_and_backward() -> None:
    source = """
    m = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(m.parameters(), 0.1)
    a, b = m(torch.ones(3, 4)).sum(), m(torch.ones(3, 4)).pow(2).sum()
    a.backward()
    optimizer.step()
    b.backward()
    """
    answer = asked(source, "error")
    assert "`optimizer.step()` (line 5) wrote into m.1.weight in place" in answer.headline.text
    assert "run every backward before the step" in text(answer)


def test_an_embedding_that_renormalises_its_weight() -> None:
    source = """
    embedding = nn.Embedding(3, 5, max_norm=1.0)
    scores = embedding.weight @ torch.ones(5, 2, requires_grad=True)
    rows = embedding(torch.tensor([1, 2]))
    (scores.sum() + rows.sum()).backward()
    """
    assert "wrote into embedding.weight in place after `embedding.weight @ torch.ones(5, 2" in text(
        asked(source, "error")
    )


def test_no_history_names_the_cut() -> None:
    source = """
    w = torch.randn(3, 4, requires_grad=True)
    score = (w * 2).argmax(1)
    loss = (score.float() ** 2).mean()
    loss.backward()
    """
    answer = asked(source, "error")
    assert answer.reason == "no history (cut: argmax)"
    assert "`(w * 2).argmax(1)` (line 2) gives positions (integers)" in answer.headline.text


def test_no_history_since_nothing_required_grad() -> None:
    answer = asked("x = torch.tensor(4.0)\ny = x ** 2\ny.backward()", "error")
    assert answer.headline.text == (
        "Line 3 raised RuntimeError: y, computed by `x ** 2` (line 2), has no history: nothing that it was computed "
        "from requires grad."
    )
    assert "`torch.tensor(4.0)` (line 1) made x without requires_grad=True." in text(answer)


def test_no_history_since_recording_was_off() -> None:
    source = "torch.set_grad_enabled(False)\nw = torch.ones(2, requires_grad=True)\n(w * 2).sum().backward()"
    assert "ran with grad mode off, set by `torch.set_grad_enabled(False)` (line 1)" in text(asked(source, "error"))


def test_no_history_under_a_decorator() -> None:
    source = """
    @torch.no_grad()
    def predict(m):
        return m(torch.ones(1, 2))
    predict(nn.Linear(2, 1)).sum().backward()
    """
    assert "take @torch.no_grad() off the function" in text(asked(source, "error"))


@pytest.mark.parametrize("write", ["w.add_(1)", "w += 1"])
def test_a_leaf_written_in_place(write: str) -> None:
    answer = asked(f"w = torch.ones(2, requires_grad=True)\n{write}", "error")
    assert answer.reason == "leaf written in place"
    assert f"`{write}` (line 2) writes in place into w, a leaf that requires grad." in answer.headline.text


def test_a_view_of_a_leaf_written_in_place() -> None:
    answer = asked("w = torch.ones(2, requires_grad=True)\nv = w.view(2)\nv += 1", "error")
    assert "writes in place into v, a view of a leaf" in answer.headline.text


def test_a_loss_that_is_no_scalar() -> None:
    answer = asked("w = torch.ones(3, requires_grad=True)\n(w * 2).backward()", "error")
    assert answer.reason == "not a scalar"
    assert "`w * 2` has shape (3,), and backward() starts from one number." in answer.headline.text


def test_a_broken_contract_names_the_module_and_who_made_the_input() -> None:
    answer = ask(gradient_lab(), "error")
    assert answer.reason == "broken contract"
    assert (
        "Line 47 raised RuntimeError (caught at line 48): model.0 got an input that does not fit."
        in answer.headline.text
    )
    assert "`torch.tensor([[3.0, 4.0, 5.0]])` (line 47) made its input of shape (1, 3)." in text(answer)


def test_a_shape_that_came_from_inside_the_model() -> None:
    source = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.fc = nn.Conv2d(1, 4, 3), nn.Linear(100, 2)
        def forward(self, x):
            h = F.relu(self.conv(x))
            h = h.flatten(1)
            return self.fc(h)
    net = Net()
    net(torch.ones(2, 1, 8, 8))
    """
    told = text(asked(source, "error"))
    assert "net.fc got an input that does not fit." in told
    assert "`h.flatten(1)` (line 7) made h of shape (2, 144)." in told
    assert "`F.relu(self.conv(x))` (line 6) made h of shape (2, 4, 6, 6)." in told


def test_a_dtype_that_does_not_fit() -> None:
    source = "net = nn.Linear(4, 8)\nx = torch.ones(3, 4, dtype=torch.float64)\nnet(x)"
    told = text(asked(source, "error"))
    assert "has float32 weights, got a float64 input" in told
    assert "`torch.ones(3, 4, dtype=torch.float64)` (line 2) made x of shape (3, 4)." in told


def test_an_operation_whose_operands_do_not_fit() -> None:
    answer = asked("a = torch.ones(3, 4)\nb = torch.ones(2, 4)\nc = a + b", "error")
    assert "a has shape (3, 4) and dtype float32; `torch.ones(3, 4)` (line 1) made it." in text(answer)
    assert "b has shape (2, 4) and dtype float32; `torch.ones(2, 4)` (line 2) made it." in text(answer)


def test_operands_without_names_are_told_by_their_text() -> None:
    answer = asked("F.cross_entropy(torch.ones(1, 2), torch.tensor([2]))", "error")
    assert "`torch.tensor([2])` has shape (1,) and dtype int64, value [2]." in text(answer)


def test_an_error_that_has_nothing_to_do_with_tensors() -> None:
    answer = asked("print({'a': 1}['b'])", "error")
    assert answer.headline.text == "Line 1 raised KeyError: 'b'"


def test_a_gradient_that_was_taken_for_granted() -> None:
    source = """
    m = nn.Linear(4, 2)
    m(torch.ones(8, 4)).sum().backward()
    m.zero_grad()
    print(m.weight.grad.norm())
    """
    answer = asked(source, "error")
    assert answer.reason == "gradient is None"
    assert "m.weight.grad is None there" in answer.headline.text
    assert "`m.zero_grad()` (line 3) reset it" in text(answer)


def test_a_failed_assert_tells_the_story_of_its_gradient() -> None:
    source = "w = torch.tensor(3.0, requires_grad=True)\n(w * w).backward()\nassert w.grad.item() == 3.0, 'three?'"
    told = text(asked(source, "error"))
    assert "`assert w.grad.item() == 3.0` does not hold: w.grad.item() is 6.0." in told
    assert "through w * w (line 2): 3 + 3, one for each use." in told


def test_further_refusals() -> None:
    optimizer = "w = torch.ones(2, requires_grad=True).double()\no = torch.optim.SGD([w], 0.1)"
    assert "w is not a leaf but the result of" in asked(optimizer, "error").headline.text
    array = "w = torch.ones(2, requires_grad=True)\nh = w * 2\nh.numpy()"
    assert "h requires grad, and an array could not carry its history" in asked(array, "error").headline.text
    unused = "a = torch.ones(2, requires_grad=True)\nb = torch.ones(2, requires_grad=True)\n"
    unused += "torch.autograd.grad((a * 2).sum(), [a, b])"
    assert "a gradient was asked for b" in asked(unused, "error").headline.text
    inference = "m = nn.Linear(2, 2)\nv = torch.ones(2, requires_grad=True)\nwith torch.inference_mode():\n"
    inference += "    f = m(torch.ones(1, 2))\nf * v"
    assert "made f in inference mode" in asked(inference, "error").headline.text
    assert asked("torch.tensor([1, 2], requires_grad=True)", "error").reason == "integer dtype"


def test_the_error_at_a_line_and_the_lines_that_failed() -> None:
    ledger = gradient_lab()
    assert ask(ledger, "error", 16).reason == "assertion"
    with pytest.raises(BadInput, match=r"nothing failed at line 9\. Errors were recorded at lines 16 and 47\."):
        ask(ledger, "error", 9)
    with pytest.raises(BadInput, match="no error was recorded"):
        ask(recorded("x = torch.ones(1)"), "error")
