"""Where a graph was cut, and by what."""

import pytest
from recording import record

from whygrad.ledger.events import ModuleCalled, Operation

TENSOR_CUTS = [
    ("w.detach()", "detach", "cut"),
    ("w.data", "data", "cut"),
    ("torch.tensor(w)", "torch.tensor", "cut"),
    ("w.new_tensor(w)", "new_tensor", "cut"),
    ("torch.as_tensor(w.tolist())", "tolist", "cut"),
    ("torch.from_numpy(w.detach().numpy())", "detach", "cut"),
    ("w > 0", "comparison", "integer dtype"),
    ("w == w", "comparison", "integer dtype"),
    ("torch.gt(w, 0)", "comparison", "integer dtype"),
    ("w.argmax()", "argmax", "integer dtype"),
    ("torch.argmin(w)", "argmin", "integer dtype"),
    ("w.argsort()", "argsort", "integer dtype"),
    ("w.long()", "integer dtype", "integer dtype"),
    ("w.int()", "integer dtype", "integer dtype"),
    ("w.to(torch.int64)", "integer dtype", "integer dtype"),
    ("w.bool()", "comparison", "integer dtype"),
]
VALUE_CUTS = [
    ("w[0].item()", "item"), ("float(w[0])", "float"), ("int(w[0])", "int"), ("bool(w[0])", "bool"),
    ("w.tolist()", "tolist"), ("w.detach().numpy()", "detach"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(("expression", "cut", "reason"), TENSOR_CUTS)
def test_tensor_without_history(expression: str, cut: str, reason: str) -> None:
    run = record(f"w = torch.ones(2, requires_grad=True)\ny = {expression}")
    assert (cut, reason) in [(event.cut, event.no_node) for event in run.of(Operation)]
    assert not run.program["y"].requires_grad


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(("expression", "cut"), VALUE_CUTS)
def test_value_taken_out(expression: str, cut: str) -> None:
    run = record(f"w = torch.ones(2, requires_grad=True)\ny = {expression}")
    assert cut in [event.cut for event in run.of(Operation)]


@pytest.mark.parametrize(
    "expression", ["w.round()", "w.clone()", "w.to(torch.float64)", "w.abs()", "w.sign()", "w * 0"]
)
def test_what_looks_like_a_cut_and_is_none(expression: str) -> None:
    run = record(f"w = torch.ones(2, requires_grad=True)\ny = {expression}")
    operation = run.operation(expression)
    assert (operation.cut, operation.no_node) == ("", "")
    assert run.program["y"].requires_grad


@pytest.mark.parametrize(
    ("mode", "reason", "cut"),
    [
        ("torch.no_grad()", "grad mode off", "no_grad"),
        ("torch.set_grad_enabled(False)", "grad mode off", "no_grad"),
        ("torch.inference_mode()", "inference mode", "inference_mode"),
    ],
)
def test_grad_mode_cuts(mode: str, reason: str, cut: str) -> None:
    run = record(f"w = torch.ones(2, requires_grad=True)\nwith {mode}:\n    y = w * 2")
    operation = run.operation("w * 2")
    assert (operation.no_node, operation.cut, operation.node) == (reason, cut, None)


def test_no_grad_around_a_module_cuts_at_its_call() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        with torch.no_grad():
            y = model(torch.ones(1, 1))
    """)
    assert run.one(ModuleCalled).grad_mode == "off"
    assert not run.tensor(run.id("y")).requires_grad


def test_operand_without_gradient_cuts_nothing() -> None:
    run = record("""
        x = torch.ones(2)
        y = x * 2
        z = y > 0
        n = y[0].item()
    """)
    assert [event.cut for event in run.of(Operation)] == [""] * len(run.all(Operation))
    assert run.operation("x * 2").no_node == "no input requires grad"


def test_detach_in_the_middle_of_an_expression() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * (w * 2).detach()
        y.backward()
    """)
    assert run.operation("(w * 2).detach()").cut == "detach"
    assert run.terms("w") == [(6, "mul", "w * (w * 2).detach()")]


def test_item_inside_an_expression_is_a_cut() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = torch.tensor(w.item(), requires_grad=True) * 2
        y.backward()
    """)
    assert run.operation("w.item()").cut == "item"
    assert run.story("w") == []


@pytest.mark.filterwarnings("ignore:Converting a tensor")  # said once in a process
def test_new_leaf_from_a_list_of_tensors_is_a_cut() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = torch.tensor([w, w * 2])
    """)
    assert run.operation("torch.tensor([w, w * 2])").cut == "torch.tensor"


def test_new_parameter_from_a_tensor_is_a_cut() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        p = nn.Parameter(w * 2)
        p.backward()
    """)
    assert run.operation("nn.Parameter(w * 2)").cut != ""
    assert run.story("w") == []


def test_numpy_function_of_a_detached_tensor_stays_a_cut_at_detach() -> None:
    run = record("""
        import numpy as np
        w = torch.ones(2, requires_grad=True)
        y = torch.from_numpy(np.exp(w.detach().numpy()))
    """)
    assert run.operation("w.detach()").cut == "detach"


def test_printing_takes_no_history_away() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        text = f"{w}" + str(w)
        y = w * 2
        y.backward()
    """)
    assert [event.cut for event in run.of(Operation) if event.cut] == []


def test_detach_in_place_cuts() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        y.detach_()
        z = y * 3
    """)
    assert run.operation("y.detach_()").cut == "detach_"
    assert not run.program["z"].requires_grad


def test_requires_grad_switched_on_again_is_a_new_leaf() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = (w * 2).detach().requires_grad_()
        h.backward()
    """)
    assert run.operation("(w * 2).detach()").cut == "detach"
    assert run.story("h") == ["line 4: None -> 1 = 1 through ?"]


def test_cut_inside_a_helper_is_at_the_helpers_line() -> None:
    run = record("""
        def stop(x):
            return x.detach()
        w = torch.tensor(3.0, requires_grad=True)
        y = stop(w)
    """)
    operation = run.operation("x.detach()")
    assert (operation.cut, run.line(operation.site)) == ("detach", 3)


def test_decorated_function_cuts() -> None:
    run = record("""
        @torch.no_grad()
        def double(x):
            return x * 2
        w = torch.tensor(3.0, requires_grad=True)
        y = double(w)
    """)
    assert run.operation("x * 2").cut == "no_grad"
