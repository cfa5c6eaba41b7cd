# Assertions on tensors, how often their parts are evaluated, and the one that fails at the end.
# transparency:
# transparency: python="-O"
import traceback

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
calls = []


def note(value, name):
    calls.append(name)
    return value


def attempt(function):
    try:
        function()
    except (AssertionError, RuntimeError):
        traceback.print_exc()
    print(function.__name__, calls)
    calls.clear()


@attempt
def passing():
    assert torch.allclose(note(w, "a"), note(w, "b"))
    assert note(w.sum(), "sum") == 3, note("message", "message")
    assert note(1, "one") < note(2, "two") < note(3, "three")
    assert not note(False, "false") and (note([], "empty") or note(w, "w") is w)
    assert w[0] > 0 and w[1] > w[0], "order"
    assert (w > 0).all(), w
    assert isinstance(w, torch.Tensor), "type"
    assert w is w and w.grad is None
    assert note(w.requires_grad, "flag")


@attempt
def failing():
    assert note(w.sum(), "sum") > note(5, "five"), note(f"sum {w.sum().item()} is small", "message")


@attempt
def failing_plain():
    assert note(w.sum(), "sum").item() == note(
        4, "four"
    )


@attempt
def failing_or():
    assert note(False, "x") or note(0, "y"), note(w, "w")


@attempt
def ambiguous():
    assert note(w, "w") == w


@attempt
def tuple_message():
    assert not note(w, "w").requires_grad, ("tuple", w.tolist())


@attempt
def in_message():
    assert False, 1 / note(0, "zero") if calls else note(w, "w") @ torch.ones(3)


def check(value):
    assert value.shape == (3,), f"expected (3,), got {tuple(value.shape)}"
    return value


if __debug__:
    try:
        check(w)
    except AssertionError as error:
        print(error, error.args, error.__traceback__.tb_next.tb_lineno)
(w * w).sum().backward()
assert w.grad.tolist() == [2.0, 4.0]
assert torch.equal(
    w.grad,
    torch.tensor([2.0, 5.0]),
), "the gradient is not what was expected"
