"""Every write to every grad buffer: by which backward, set or accumulated, and through what it came."""

import pytest
from recording import record

from whygrad.ledger.events import BackwardBegan


def test_first_backward_sets_the_buffer() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2.0).backward()
    """)
    assert run.story("w") == ["line 3: None -> 2 = 2 through w * 2.0"]


def test_second_backward_adds_into_the_buffer() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2.0).backward()
        (w * 5.0).backward()
    """)
    assert run.story("w")[1:] == ["line 4: 2 -> 7 = 5 through w * 5.0"]


def test_each_use_is_a_contribution_with_its_operation_and_expression() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w**3 + w*2 + w*9
        y.backward()
    """)
    assert sorted(run.terms("w")) == [(2, "mul", "w*2"), (9, "mul", "w*9"), (27, "pow", "w**3")]


def test_leaf_used_twice_in_one_operation_contributes_twice() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * w).backward()
    """)
    assert run.terms("w") == [(3, "mul", "w * w"), (3, "mul", "w * w")]


def test_same_expression_in_a_loop_contributes_once_for_each_pass() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = 0.0
        for factor in (1.0, 10.0, 100.0):
            y = y + w * factor
        y.backward()
    """)
    assert sorted(run.terms("w")) == [(1, "mul", "w * factor"), (10, "mul", "w * factor"), (100, "mul", "w * factor")]


def test_contribution_is_what_arrived_and_not_the_factor_alone() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2.0
        z = y.exp() * 0.0 + y * y
        z.backward()
    """)
    assert run.story("w") == ["line 5: None -> 24 = 24 through w * 2.0"]


def test_weights_shared_by_two_modules_get_a_contribution_from_each() -> None:
    run = record("""
        first, second = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        second.weight = first.weight
        with torch.no_grad():
            first.weight.fill_(2.0)
        y = second(first(torch.tensor([[5.0]])))
        y.sum().backward()
    """)
    assert sorted(run.terms("first.weight")) == [
        ([10], "t", "first(torch.tensor([[5.0]]))"),
        ([10], "t", "second(first(torch.tensor([[5.0]])))"),
    ]


def test_contribution_through_a_library_module_has_the_expression_that_called_it() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        x = torch.ones(1, 2)
        loss = F.mse_loss(model(x), torch.zeros(1, 1))
        loss.backward()
    """)
    for name in ("model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"):
        assert [code for _, _, code in run.terms(name)] == ["model(x)"]


def test_every_parameter_gets_what_pytorch_gives_it() -> None:
    run = record("""
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        model(torch.ones(1, 2)).sum().backward()
        truth = {f"model.{name}": parameter.grad.clone() for name, parameter in model.named_parameters()}
    """)
    for name, grad in run.program["truth"].items():
        *_, written = run.history(run.id(name))
        assert written.after.items == tuple(grad.reshape(-1).tolist())
        assert written.after.shape == tuple(grad.shape)


def test_large_gradients_are_kept_as_statistics() -> None:
    run = record("""
        w = torch.ones(100, requires_grad=True)
        (w * torch.arange(100.0)).sum().backward()
        norm = w.grad.norm().item()
    """)
    [written] = run.history(run.id("w"))
    assert written.after.items is None
    assert abs(written.after.norm - run.program["norm"]) < 1e-3
    assert (written.after.low, written.after.high) == (0.0, 99.0)


def test_not_a_number_and_infinity_are_counted() -> None:
    run = record("""
        w = torch.zeros(100, requires_grad=True)
        factor = torch.ones(100)
        factor[:3], factor[3:5] = float("nan"), float("inf")
        (w * factor).sum().backward()
    """)
    [written] = run.history(run.id("w"))
    assert (written.after.nan, written.after.inf) == (3, 2)


def test_loss_that_is_a_leaf_gets_one() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        w.backward()
    """)
    assert run.story("w") == ["line 3: None -> 1 = 1 through ?"]


def test_root_that_is_no_scalar_is_weighted_by_the_gradient_given() -> None:
    run = record("""
        w = torch.ones(2, requires_grad=True)
        y = w * torch.tensor([2.0, 3.0])
        y.backward(torch.tensor([10.0, 100.0]))
    """)
    assert run.story("w") == ["line 4: None -> [20, 300] = [20, 300] through w * torch.tensor([2.0, 3.0])"]
    assert run.one(BackwardBegan).gradient.items == (10.0, 100.0)


def test_gradient_given_as_one_is_not_worth_a_word() -> None:
    run = record("""
        w = torch.tensor(1.0, requires_grad=True)
        (w * 2).backward(torch.tensor(1.0))
    """)
    assert run.one(BackwardBegan).gradient is None


def test_backward_with_inputs_writes_their_buffers_alone() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(5.0, requires_grad=True)
        (w * v).backward(inputs=[w])
    """)
    assert run.story("w") == ["line 4: None -> 5 = 5 through w * v"]
    assert run.story("v") == []
    assert run.one(BackwardBegan).inputs == (run.id("w"),)


def test_backward_into_an_intermediate_input_writes_its_buffer() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = w * 2
        loss = h * 7
        loss.backward(inputs=[h])
        held = h.grad.item()
    """)
    assert run.program["held"] == 7.0
    assert run.story("h") == ["line 5: None -> 7 = 7 through h * 7"]
    assert run.story("w") == []


def test_several_roots_add_up() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        a, b = w * 2, w * 5
        torch.autograd.backward([a, b])
    """)
    assert sorted(run.terms("w")) == [(2, "mul", "w * 2"), (5, "mul", "w * 5")]
    assert run.one(BackwardBegan).roots == (run.id("a"), run.id("b"))


def test_retained_gradient_of_an_intermediate_tensor_is_written() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = w * 2
        h.retain_grad()
        (h * 7).backward()
    """)
    assert run.story("h") == ["line 5: None -> 7 = 7 through h * 7"]
    assert run.story("w") == ["line 5: None -> 14 = 14 through w * 2"]


def test_retained_gradient_of_the_root_is_written() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        loss = w * 2
        loss.retain_grad()
        loss.backward()
    """)
    assert run.story("loss") == ["line 5: None -> 1 = 1 through ?"]


def test_retained_gradient_accumulates() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = w * 2
        h.retain_grad()
        (h * 7).backward(retain_graph=True)
        (h * 5).backward()
    """)
    assert run.story("h")[1:] == ["line 6: 7 -> 12 = 5 through h * 5"]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_double_backward_adds_the_second_derivative() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 3
        y.backward(create_graph=True)
        first = w.grad
        w.grad = None
        first.backward()
    """)
    assert run.story("w")[0] == "line 4: None -> 27 = 27 through w ** 3"
    assert run.story("w")[-1].startswith("line 7: None -> 18 = 18 through")
    assert [began.create_graph for began in run.all(BackwardBegan)] == [True, False]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_create_graph_twice_accumulates_out_of_place() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w ** 2).backward(create_graph=True)
        (w ** 2).backward(create_graph=True)
    """)
    assert run.story("w")[1:] == ["line 4: 6 -> 12 = 6 through w ** 2"]


def test_broadcast_leaf_gets_the_sum() -> None:
    run = record("""
        w = torch.tensor(2.0, requires_grad=True)
        (w * torch.ones(4)).sum().backward()
    """)
    assert run.story("w") == ["line 3: None -> 4 = 4 through w * torch.ones(4)"]


def test_leaf_that_no_path_reaches_is_not_written() -> None:
    run = record("""
        w = torch.tensor(2.0, requires_grad=True)
        v = torch.tensor(2.0, requires_grad=True)
        (w * 1).backward()
    """)
    assert run.story("v") == []


def test_branch_that_adds_nothing_contributes_zero() -> None:
    run = record("""
        w = torch.tensor(2.0, requires_grad=True)
        y = w * 0 + w * 3
        y.backward()
    """)
    assert sorted(run.terms("w")) == [(0, "mul", "w * 0"), (3, "mul", "w * 3")]


def test_frozen_parameter_gets_nothing() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model.weight.requires_grad_(False)
        model(torch.ones(1, 1)).sum().backward()
    """)
    assert run.story("model.weight") == []
    assert run.story("model.bias") == ["line 4: None -> [1] = [1] through model(torch.ones(1, 1))"]


def test_expanded_leaf_keeps_its_own_shape() -> None:
    run = record("""
        w = torch.ones(1, 3, requires_grad=True)
        w.expand(4, 3).sum().backward()
    """)
    assert run.story("w") == ["line 3: None -> [4, 4, 4] = [4, 4, 4] through w.expand(4, 3)"]


def test_contributions_add_up_to_what_was_written_whatever_their_order() -> None:
    run = record("""
        torch.manual_seed(0)
        w = torch.randn(5, requires_grad=True)
        y = (w.sin() * w.cos() + w.pow(3) * w.exp()).sum() + w.norm()
        y.backward()
        (w.tanh() * 2).sum().backward()
    """)
    for written in run.history(run.id("w")):
        before = written.before.items if written.before else (0.0,) * 5
        for position in range(5):
            terms = [term.value.items[position] for term in written.contributions]
            assert abs(before[position] + sum(terms) - written.after.items[position]) < 1e-4
