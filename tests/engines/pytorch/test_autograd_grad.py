"""`torch.autograd.grad`: what it returned, through what it came; the buffers stay as they are."""

import pytest
from recording import Recording, plain, record

from whygrad.ledger.events import BackwardBegan, GradChanged, GradReturned, GradWritten


def returned(run: Recording) -> list[tuple[str, object, list[tuple[object, str]]]]:
    return [
        (
            run.name(event.tensor),
            plain(event.value),
            sorted((plain(term.value), run.code(term.site)) for term in event.contributions),
        )
        for event in run.of(GradReturned)
    ]


def test_gradient_is_returned_and_no_buffer_written() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        torch.autograd.grad(y, w)
    """)
    assert returned(run) == [("w", 2, [(2, "w * 2")])]
    assert run.all(GradWritten) == []
    assert run.one(BackwardBegan).call == "autograd.grad"


def test_each_use_is_a_contribution() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 3 + w * 2
        torch.autograd.grad(y, w)
    """)
    assert returned(run) == [("w", 29, [(2, "w * 2"), (27, "w ** 3")])]


def test_with_respect_to_an_intermediate_tensor() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = w * 2
        y = h ** 2 + h * 5
        torch.autograd.grad(y, h)
    """)
    assert returned(run) == [("h", 17, [(5, "h * 5"), (12, "h ** 2")])]


def test_several_inputs() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(5.0, requires_grad=True)
        y = w * v
        torch.autograd.grad(y, [w, v])
    """)
    assert returned(run) == [("w", 5, [(5, "w * v")]), ("v", 3, [(3, "w * v")])]


def test_unused_input_gets_none() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(5.0, requires_grad=True)
        torch.autograd.grad(w * 2, [w, v], allow_unused=True)
    """)
    assert returned(run) == [("w", 2, [(2, "w * 2")]), ("v", None, [])]


def test_with_respect_to_the_root_itself() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        torch.autograd.grad(y, y)
    """)
    assert [(name, value) for name, value, _ in returned(run)] == [("y", 1)]


def test_weighted_outputs() -> None:
    run = record("""
        w = torch.ones(2, requires_grad=True)
        y = w * 3
        torch.autograd.grad(y, w, grad_outputs=torch.tensor([10.0, 100.0]))
    """)
    assert returned(run) == [("w", [30, 300], [([30, 300], "w * 3")])]
    assert run.one(BackwardBegan).gradient.items == (10.0, 100.0)


def test_second_derivative() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 3
        (first,) = torch.autograd.grad(y, w, create_graph=True)
        (second,) = torch.autograd.grad(first, w)
    """)
    assert [(name, value) for name, value, _ in returned(run)] == [("w", 27), ("w", 18)]
    assert all(
        code in ("w ** 3", "torch.autograd.grad(y, w, create_graph=True)")
        for _, _, terms in returned(run)
        for _, code in terms
    )


def test_buffer_beside_it_is_left_alone() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 5).backward()
        torch.autograd.grad(w * 2, w)
        (w * 7).backward()
    """)
    assert run.story("w") == ["line 3: None -> 5 = 5 through w * 5", "line 5: 5 -> 12 = 7 through w * 7"]


def test_gradient_penalty() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        x = torch.tensor(2.0, requires_grad=True)
        y = w * x ** 2
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        penalty = (g - 1) ** 2
        penalty.backward()
    """)
    # g = 2wx = 12, penalty = (2wx - 1)^2, d/dw = 2(2wx - 1) 2x = 88, d/dx = 2(2wx - 1) 2w = 132
    assert run.story("w")[-1].startswith("line 7: None -> 88 = ")
    assert run.story("x")[-1].startswith("line 7: None -> 132 = ")


def test_jacobian_and_hessian_are_calls_of_grad() -> None:
    run = record("""
        x = torch.tensor([1.0, 2.0])
        jacobian = torch.autograd.functional.jacobian(lambda x: x ** 2, x)
        hessian = torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), x)
    """)
    assert run.program["jacobian"].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert run.program["hessian"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert {began.call for began in run.of(BackwardBegan)} == {"autograd.grad"}
    assert {run.line(began.site) for began in run.of(BackwardBegan)} == {3, 4}


def test_gradient_stored_by_hand_is_an_assignment() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        w.grad, = torch.autograd.grad(w * 2, w)
        (w * 5).backward()
    """)
    assert [(event.by, plain(event.after)) for event in run.of(GradChanged)] == [("assignment", 2)]
    assert run.line(run.one(GradChanged).site) == 3
    assert run.story("w")[-1] == "line 4: 2 -> 7 = 5 through w * 5"


@pytest.mark.filterwarnings("ignore")
def test_gradcheck_gives_its_answer() -> None:
    run = record("""
        w = torch.ones(2, dtype=torch.float64, requires_grad=True)
        good = torch.autograd.gradcheck(lambda w: (w ** 2).sum(), (w,))
    """)
    assert run.program["good"]
