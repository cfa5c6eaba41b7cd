"""Module calls: paths, shapes, depth, and the contract that a call broke."""

import pytest
from recording import Recording, record

from whygrad.ledger.events import Module, ModuleCalled


def paths(run: Recording) -> list[tuple[str, int]]:
    return [(run.module(call.module).path, call.depth) for call in run.of(ModuleCalled)]


def test_calls_inside_come_before_the_call_around_them() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
        model(torch.ones(3, 2))
    """)
    assert paths(run) == [("model.0", 1), ("model.1", 1), ("model", 0)]


def test_shapes_in_and_out() -> None:
    run = record("""
        model = nn.Linear(2, 1)
        x = torch.ones(3, 2)
        y = model(x)
    """)
    call = run.one(ModuleCalled)
    assert [(shape.tensor, shape.shape, shape.dtype) for shape in call.inputs] == [(run.id("x"), (3, 2), "float32")]
    assert [(shape.tensor, shape.shape) for shape in call.outputs] == [(run.id("y"), (3, 1))]
    assert call.value.items == tuple(run.program["y"].flatten().tolist())


def test_inputs_by_keyword_and_in_containers() -> None:
    run = record("""
        class Net(nn.Module):
            def forward(self, batch, *, scale):
                return {"y": batch["x"] * scale}
        net = Net()
        net({"x": torch.ones(2)}, scale=torch.ones(1))
    """)
    call = run.one(ModuleCalled)
    assert [shape.shape for shape in call.inputs] == [(2,), (1,)]
    assert [shape.shape for shape in call.outputs] == [(2,)]


def test_module_is_described_by_class_path_parameters_and_settings() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 1, bias=False))
        model(torch.ones(1, 2))
    """)
    outer, inner = sorted(run.of(Module), key=lambda module: module.path)
    assert (outer.path, outer.kind) == ("model", "Sequential")
    assert (inner.path, inner.kind, inner.config) == ("model.0", "Linear", "in_features=2, out_features=1, bias=False")
    assert inner.parameters == (("weight", run.id("model.0.weight")),)


def test_module_without_a_name_is_called_by_its_class() -> None:
    run = record("nn.Linear(2, 1)(torch.ones(1, 2))")
    assert (run.one(Module).path, run.one(Module).kind) == ("", "Linear")


def test_recurrent_module() -> None:
    run = record("""
        model = nn.LSTM(2, 3)
        y, (h, c) = model(torch.ones(4, 2))
        y.sum().backward()
    """)
    call = run.one(ModuleCalled)
    assert [shape.shape for shape in call.outputs] == [(4, 3), (1, 3), (1, 3)]
    assert len(run.story("model.weight_ih_l0")) == 1


def test_module_called_in_a_loop_is_one_module() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        for _ in range(3):
            model(torch.ones(1, 1))
    """)
    assert len(run.all(Module)) == 1
    assert len(run.all(ModuleCalled)) == 3


@pytest.mark.parametrize(
    ("module", "given", "broken"),
    [
        ("nn.Linear(2, 1)", "torch.ones(1, 3)", "expects 2 features in the last dimension, got 3"),
        ("nn.Linear(2, 1)", "torch.ones(2, 3, 5)", "expects 2 features in the last dimension, got 5"),
        ("nn.Bilinear(2, 3, 1)", "torch.ones(1, 5), torch.ones(1, 3)", "expects 2 features"),
        ("nn.Conv2d(3, 1, 1)", "torch.ones(1, 4, 5, 5)", "expects 3 channels in dimension 1, got 4"),
        ("nn.Conv2d(3, 1, 1)", "torch.ones(4, 5, 5)", "expects 3 channels in dimension 0, got 4"),
        ("nn.Conv2d(3, 1, 1)", "torch.ones(5, 5)", "expects 4 dimensions (or 3 without a batch), got 2"),
        ("nn.Conv1d(3, 1, 1)", "torch.ones(1, 4, 5)", "expects 3 channels in dimension 1, got 4"),
        ("nn.ConvTranspose2d(3, 1, 1)", "torch.ones(1, 4, 5, 5)", "expects 3 channels in dimension 1, got 4"),
        ("nn.BatchNorm1d(3)", "torch.ones(2, 4)", "expects 3 channels in dimension 1, got 4"),
        ("nn.BatchNorm2d(3)", "torch.ones(2, 3)", "expects 4 dimensions, got 2"),
        ("nn.BatchNorm1d(3)", "torch.ones(1, 3)", "more than 1 value per channel"),
        ("nn.GroupNorm(2, 4)", "torch.ones(1, 6, 2)", "expects 4 channels in dimension 1, got 6"),
        ("nn.LayerNorm(3)", "torch.ones(2, 4)", "expects the last dimensions (3,), got shape (2, 4)"),
        ("nn.Embedding(4, 2)", "torch.tensor([1, 4])", "expects indices from 0 to 3, got 1 to 4"),
        ("nn.Embedding(4, 2)", "torch.tensor([1.0])", "expects integer indices, got float32"),
        ("nn.LSTM(2, 3)", "torch.ones(1, 1, 4)", "expects 2 features in the last dimension, got 4"),
        ("nn.LSTM(2, 3)", "torch.ones(4)", "expects 2 or 3 dimensions, got 1"),
        ("nn.MultiheadAttention(4, 2)", "*3 * [torch.ones(1, 1, 6)]", "expects 4 features in the last dimension"),
        ("nn.Linear(2, 1).double()", "torch.ones(1, 2)", "has float64 weights, got a float32 input"),
        ("nn.Linear(2, 1)", "torch.ones(1, 2).long()", "has float32 weights, got an int64 input"),
        ("nn.Conv2d(1, 1, 5)", "torch.ones(1, 1, 3, 3)", "has a kernel of (5, 5) that does not fit"),
        ("nn.Flatten(start_dim=2)", "torch.ones(2)", ""),
    ],
)  # fmt: skip
def test_broken_contract(module: str, given: str, broken: str) -> None:
    run = record(f"model = {module}\nmodel({given})", raises=Exception)
    calls = run.all(ModuleCalled)
    assert calls[-1].error.startswith(type(run.error).__name__ + ": ")
    assert broken in calls[-1].broken
    assert bool(calls[-1].broken) == bool(broken)


def test_contract_of_a_part_names_the_part_and_its_callers_fail_too() -> None:
    run = record(
        """
        model = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1))
        model(torch.ones(1, 2))
        """,
        raises=RuntimeError,
    )
    first, second, outer = run.all(ModuleCalled)
    assert (first.error, run.module(second.module).path) == ("", "model.1")
    assert "expects 4 features in the last dimension, got 3" in second.broken
    assert outer.error == second.error
    assert outer.broken == ""


def test_module_with_a_first_layer_of_another_width_is_not_blamed() -> None:
    run = record(
        """
        class Net(nn.Module):
            in_features = 7
            def forward(self, x):
                raise ValueError("its own trouble")
        net = Net()
        net(torch.ones(1, 2))
        """,
        raises=ValueError,
    )
    assert run.one(ModuleCalled).broken == ""


def test_error_of_a_good_input_breaks_no_contract() -> None:
    run = record(
        """
        class Odd(nn.Linear):
            def forward(self, x):
                raise ValueError("its own trouble")
        odd = Odd(2, 1)
        odd(torch.ones(1, 2))
        """,
        raises=ValueError,
    )
    assert run.one(ModuleCalled).broken == ""


def test_call_after_a_failed_one_is_at_the_top_again() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1))
        try:
            model(torch.ones(1, 2))
        except RuntimeError:
            pass
        model[0](torch.ones(1, 2))
    """)
    assert paths(run)[-1] == ("model.0", 0)


def test_forward_hooks_see_the_call_and_may_replace_the_result() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model.register_forward_hook(lambda module, args, result: result * 2)
        y = model(torch.ones(1, 1))
        y.sum().backward()
    """)
    assert run.one(ModuleCalled).outputs[0].tensor == run.id("y")
    assert run.terms("model.bias") == [([2], "addmm", "model(torch.ones(1, 1))")]


def test_scripted_module_is_called_like_any_other() -> None:
    run = record("""
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = torch.jit.script(nn.Linear(1, 1))
        y = model(torch.ones(1, 1)).sum()
        y.backward()
    """)
    assert run.program["model"].weight.grad is not None


def test_module_that_calls_itself() -> None:
    run = record("""
        class Down(nn.Module):
            def forward(self, x, times):
                return x if times == 0 else self(x * 2, times - 1)
        down = Down()
        y = down(torch.ones(1), 3)
    """)
    assert [depth for _, depth in paths(run)] == [3, 2, 1, 0]


def test_functional_call_of_a_module() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
        y = torch.func.functional_call(model, weights, (torch.ones(1, 1),))
        y.sum().backward()
    """)
    assert run.program["weights"]["weight"].grad is not None
    assert len(run.all(ModuleCalled)) == 1
