"""Why a gradient is None: each of the different reasons, with its line."""

from __future__ import annotations

import pytest
from asking import ask, asked, recorded, text

from ledgers import gradient_lab


def test_reset_names_who_and_what_was_held() -> None:
    answer = ask(gradient_lab(), "w.grad", 22)
    assert answer.headline.text == (
        "w.grad is None at line 22: `w.grad = None` (line 22) reset it; until then it held 40, and no backward has run "
        "since."
    )
    assert (answer.reason, answer.value) == ("reset", "None")


def test_reset_by_an_optimizer() -> None:
    source = """
    m = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(m.parameters(), 0.1)
    m(torch.ones(1, 2)).sum().backward()
    optimizer.zero_grad()
    """
    assert "`optimizer.zero_grad()` (line 4) reset it; until then it held [[1, 1]]" in text(
        asked(source, "m.weight.grad")
    )


def test_no_backward_yet_at_that_line() -> None:
    answer = ask(gradient_lab(), "w.grad", 8)
    assert answer.reason == "no backward yet"
    assert (
        answer.headline.text == "w.grad is None at line 8: no backward had run by then; the first one runs at line 9."
    )


def test_no_backward_at_all() -> None:
    assert asked("w = torch.ones(1, requires_grad=True)\ny = w * 2", "w.grad").reason == "no backward"


def test_no_backward_since_the_tensor_was_made() -> None:
    source = """
    w = torch.ones(1, requires_grad=True)
    (w * 2).sum().backward()
    v = torch.ones(1, requires_grad=True)
    """
    answer = asked(source, "v.grad")
    assert answer.reason == "no backward since"
    assert "no backward has run since v was made at line 3; the last was backward #1 (line 2)" in answer.headline.text


def test_made_without_requires_grad() -> None:
    answer = asked("x = torch.tensor(4.0)\nw = torch.tensor(1.0, requires_grad=True)\n(x * w).backward()", "x.grad")
    assert answer.reason == "created without requires_grad"
    assert (
        "x does not require grad; `torch.tensor(4.0)` (line 1) made it without requires_grad=True."
        in answer.headline.text
    )


def test_integer_dtype() -> None:
    answer = asked(
        "w = torch.tensor([1, 2])\nv = torch.tensor(2.0, requires_grad=True)\n(w * v).sum().backward()", "w.grad"
    )
    assert answer.reason == "integer dtype"
    assert "its dtype is int64" in answer.headline.text


def test_frozen_by_a_line() -> None:
    source = "m = nn.Linear(2, 1)\nm.weight.requires_grad_(False)\nm(torch.ones(1, 2)).sum().backward()"
    answer = asked(source, "m.weight.grad")
    assert answer.reason == "switched off"
    assert "`m.weight.requires_grad_(False)` (line 2) switched its requires_grad off" in answer.headline.text


def test_required_only_after_it_was_used() -> None:
    source = """
    x = torch.tensor(2.0)
    w = torch.tensor(1.0, requires_grad=True)
    y = x * w
    x.requires_grad_()
    y.backward()
    """
    answer = asked(source, "x.grad")
    assert answer.reason == "required too late"
    assert "`x * w` (line 3) used it before `x.requires_grad_()` (line 4)" in answer.headline.text


def test_not_a_leaf() -> None:
    answer = asked("w = torch.ones(2, requires_grad=True)\nh = w * 2\nh.sum().backward()", "h.grad")
    assert answer.reason == "not a leaf"
    assert "h is not a leaf but the result of `w * 2` (line 2)" in answer.headline.text
    assert "h.retain_grad() before the backward keeps its gradient too." in text(answer)


def test_a_cast_makes_a_result() -> None:
    answer = asked("w = torch.ones(2, requires_grad=True).double()\nw.sum().backward()", "w.grad")
    assert answer.reason == "not a leaf"


def test_retain_grad_after_the_backward_is_too_late() -> None:
    source = "w = torch.ones(2, requires_grad=True)\nh = w * 2\nh.sum().backward()\nh.retain_grad()"
    assert "h.retain_grad() stands at line 4; only a backward that runs after it" in text(asked(source, "h.grad"))


def test_a_name_that_passed_from_a_leaf_to_a_result() -> None:
    source = """
    w = torch.ones(1, requires_grad=True)
    (w * 2).sum().backward()
    w = w - 0.1 * w.grad
    """
    answer = asked(source, "w.grad")
    assert answer.reason == "not a leaf"
    assert "The leaf that was called w before is another tensor: `torch.ones(1, requires_grad=True)` (line 1)" in text(
        answer
    )


def test_a_recorded_in_place_write_makes_a_result() -> None:
    source = "o = torch.zeros(3)\nw = torch.ones(3, requires_grad=True)\no[0] = w[0]\no.sum().backward()"
    assert "o is not a leaf but the result of `o[0] = w[0]` (line 3)" in asked(source, "o.grad").headline.text


CUT = """
w = torch.tensor([3.0, 1.0], requires_grad=True)
v = torch.tensor([1.0, 2.0], requires_grad=True)
h = w * 2
{cut}
loss = (d * v).sum()
loss.backward()
"""


@pytest.mark.parametrize(
    ("cut", "reason", "by"),
    [
        ("d = h.detach()", "cut: detach", "detach() at line 4"),
        ("d = h.data", "cut: data", ".data at line 4"),
        ("d = torch.tensor(h.tolist())", "cut: tolist", ".tolist() at line 4"),
        ("d = torch.tensor((w * 2)[0].item())", "cut: item", ".item() at line 4"),
        ("d = torch.tensor([h[0], h[1]])", "cut: torch.tensor", "a copy with torch.tensor(...) at line 4"),
        ("d = torch.from_numpy(h.detach().numpy())", "cut: detach", "detach() at line 4"),
        ("d = (h > 1).float()", "cut: comparison", "a comparison at line 4"),
        ("d = h.argmax().float()", "cut: argmax", "argmax at line 4"),
        ("d = h.long().float()", "cut: integer dtype", "a conversion to integers at line 4"),
    ],
)
def test_the_way_back_was_cut(cut: str, reason: str, by: str) -> None:
    ledger = recorded(CUT.format(cut=cut))
    answer = ask(ledger, "w.grad")
    assert answer.reason == reason
    assert answer.headline.text == (
        f"w.grad is None at the end: backward #1 (line 6) did not reach w; the way back from loss was cut by {by}."
    )
    assert ask(ledger, "v.grad").value != "None"


def test_a_number_that_went_through_names() -> None:
    source = """
    w = torch.tensor(3.0, requires_grad=True)
    v = torch.tensor(1.0, requires_grad=True)
    h = w * 2
    n = h.item()
    m = n + 1
    loss = v * m
    loss.backward()
    """
    answer = asked(source, "w.grad")
    assert answer.reason == "cut: item"
    assert "`h.item()` (line 4) took a Python number out" in text(answer)


def test_an_array_that_went_through_names() -> None:
    source = """
    w = torch.ones(3, requires_grad=True)
    v = torch.ones(3, requires_grad=True)
    h = w * 2
    array = h.detach().numpy()
    again = torch.from_numpy(array)
    (again * v).sum().backward()
    """
    assert asked(source, "w.grad").reason == "cut: detach"


def test_under_no_grad_with_the_line_that_entered_it() -> None:
    source = """
    first, second = nn.Linear(4, 4), nn.Linear(4, 2)
    with torch.no_grad():
        h = first(torch.ones(8, 4))
    second(h).sum().backward()
    """
    answer = asked(source, "first.weight.grad")
    assert answer.reason == "cut: no_grad"
    assert "`first(torch.ones(8, 4))` (line 3) ran under no_grad, entered by `with torch.no_grad():` (line 2)" in text(
        answer
    )


def test_no_grad_inside_a_module() -> None:
    source = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.unused = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(1, 1)
        def forward(self, x):
            h = self.a(x)
            with torch.no_grad():
                h = F.relu(h)
            return self.b(h)
    net = Net()
    net(torch.ones(8, 4)).sum().backward()
    """
    ledger = recorded(source)
    assert ask(ledger, "net.a.weight.grad").headline.text.endswith("was cut by no_grad at line 8.")
    unused = ask(ledger, "net.unused.weight.grad")
    assert unused.reason == "never used"
    assert "(net.unused was never called)" in unused.headline.text
    assert ask(ledger, "net.b.weight.grad").reason == "written"


def test_used_only_under_no_grad() -> None:
    source = """
    w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with torch.no_grad():
        m = (w * 2).sum()
    (v * 2).sum().backward()
    """
    answer = asked(source, "w.grad")
    assert answer.reason == "used under no_grad"
    assert "w was only used with grad mode off: `w * 2` (line 3)" in answer.headline.text


def test_used_and_not_in_the_loss() -> None:
    source = """
    w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    metric = (w * 2).sum()
    print(metric.item())
    (v * 2).sum().backward()
    """
    answer = asked(source, "w.grad")
    assert answer.reason == "not in the loss"
    assert "Values that were computed from w left the graph at `metric.item()` (line 3)." in text(answer)


def test_the_nearest_cut_to_the_root_is_named_first() -> None:
    source = """
    w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    a = (w * 2).detach()
    a.requires_grad_()
    b = (a * 3).detach()
    (b * v).sum().backward()
    """
    assert "cut by detach() at line 4" in asked(source, "w.grad").headline.text


def test_autograd_grad_returns_and_does_not_write() -> None:
    source = "m = nn.Linear(2, 1)\ng = torch.autograd.grad(m(torch.ones(1, 2)).sum(), m.parameters())"
    answer = asked(source, "m.weight.grad")
    assert answer.reason == "returned, not written"
    assert "torch.autograd.grad (line 2) returned [[1, 1]] for m.weight." in text(answer)


def test_a_derivative_whose_graph_does_not_lead_back() -> None:
    source = """
    net = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
    x = torch.ones(3, 1, requires_grad=True)
    slope = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
    slope.pow(2).mean().backward()
    """
    assert asked(source, "net.2.bias.grad").reason == "not in the derivative"


def test_inputs_that_leave_it_out() -> None:
    source = """
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (a * b).sum().backward(inputs=[a])
    """
    answer = asked(source, "b.grad")
    assert answer.reason == "not among inputs"
    assert "was told to write only a (inputs=...)" in answer.headline.text


def test_the_backward_failed_and_why() -> None:
    source = "w = torch.ones(2, requires_grad=True)\ny = (w * 2).detach().sum()\ny.backward()"
    answer = asked(source, "w.grad")
    assert answer.reason == "backward failed"
    assert "backward #1 (line 3) stopped with RuntimeError before it wrote w.grad" in answer.headline.text
    assert "`(w * 2).detach()` (line 2) detached the value" in text(answer)


def test_a_backward_that_never_began() -> None:
    source = "w = torch.ones(2, requires_grad=True)\ny = w * 2\ny.backward()"
    answer = asked(source, "w.grad")
    assert answer.reason == "backward failed"
    assert "y has shape (2,), and backward() starts from one number." in text(answer)


def test_a_function_whose_backward_gave_none() -> None:
    source = """
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b
        @staticmethod
        def backward(ctx, gradient):
            return gradient, None
    w, v = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    Product.apply(w, v).sum().backward()
    """
    answer = asked(source, "v.grad")
    assert answer.reason == "no gradient arrived"
    assert "through Product.apply" in text(answer)
    assert "whose backward returned None for v" in text(answer)
