"""Values that are not finite: the operation that made the first of them, however closely anybody looked."""

import pytest
from recording import Recording, record

from whygrad.ledger.events import ModuleCalled, NotFinite, Operation


def first(run: Recording) -> tuple[str, str]:
    """(name, expression) of the node that made the first value that is not finite."""
    found = run.all(NotFinite)[0]
    node = run.node(found.node)
    assert node is not None
    return node.name, run.code(node.site)


def test_large_result_that_is_not_finite_shows_at_its_operation() -> None:
    run = record("""
        x = torch.zeros(100, 10, requires_grad=True)
        y = x + 1
        z = y - 1
        logs = z.log()
        loss = (logs * 2).mean()
    """)
    assert [run.operation(code).value for code in ("x + 1", "y - 1")] == [None, None]
    assert run.operation("z.log()").value.inf == 1000
    assert run.operation("logs * 2").value.inf == 1000


def test_finite_values_whose_sum_overflows_are_finite() -> None:
    run = record("y = torch.full((1000,), 3e38, requires_grad=True) * 1.0")
    assert run.operation("torch.full((1000,), 3e38, requires_grad=True) * 1.0").value is None


def test_module_whose_result_is_not_finite_shows_it() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 100), nn.ReLU())
        with torch.no_grad():
            model[0].weight[3, 0] = float("nan")
        model(torch.ones(1, 2))
    """)
    assert [(run.module(call.module).path, call.value.nan) for call in run.of(ModuleCalled)] == [
        ("model.0", 1),
        ("model.1", 1),
        ("model", 1),
    ]


LOOP = """
model = nn.Sequential(nn.Linear(2, 100), nn.Sigmoid())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.ones(4, 2)
for step in range(60):
    optimizer.zero_grad()
    p = model(x)
    shifted = p - p.detach() * (step == 50)
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("depth", ["auto", "full"])
def test_first_operation_that_made_it_is_found_in_the_graph(depth: str) -> None:
    run = record(LOOP.format(loss="-(shifted.log() * 0.5).mean()"), depth)
    name, code = first(run)
    assert name == "LogBackward0"
    assert code == ("shifted.log()" if depth == "full" else "")
    assert run.all(NotFinite)[0].certain


def test_division_by_zero_is_found_in_the_graph() -> None:
    run = record("""
        x = torch.ones(3, requires_grad=True)
        norm = (x - x).norm()
        y = x / norm
        y.sum().backward()
    """)
    assert first(run) == ("DivBackward0", "x / norm")
    assert run.all(NotFinite)[0].certain


def test_data_that_is_not_finite_is_told_as_such() -> None:
    run = record("""
        w = torch.ones(3, requires_grad=True)
        x = torch.tensor([1.0, float("nan"), 2.0])
        (w * x).sum().backward()
    """)
    found = run.one(NotFinite)
    assert (found.node, run.name(found.tensor), found.value.nan) == (None, "x", 1)


def test_parameter_that_is_not_finite_is_told_as_such() -> None:
    run = record("""
        w = torch.tensor([1.0, float("inf")], requires_grad=True)
        x = torch.tensor([1.0, 2.0])
        (w.sigmoid() + w * x).exp().sum().backward()
    """)
    found = run.one(NotFinite)
    assert run.node(found.node) is not None or run.name(found.tensor) == "w"


def test_sum_of_what_nobody_saved_is_not_certain() -> None:
    run = record("""
        a = torch.tensor(float("inf"), requires_grad=True)
        b = torch.tensor(1.0, requires_grad=True)
        (a + b).backward()
    """)
    found = run.one(NotFinite)
    assert first(run) == ("AddBackward0", "a + b")
    assert not found.certain


def test_looking_is_bounded() -> None:
    run = record(
        """
        w = torch.tensor(float("nan"), requires_grad=True)
        for _ in range(100):
            (w * 2).backward()
        """
    )
    assert len(run.all(NotFinite)) == 5


def test_large_operations_are_looked_through_once_a_loss_was_not_finite() -> None:
    run = record("""
        (torch.tensor(0.0, requires_grad=True) / 0).backward()
        big = torch.zeros(300_000)
        out = torch.log(big)
    """)
    assert run.operation("torch.log(big)").value.inf == 300_000


def test_finite_losses_are_not_looked_into() -> None:
    run = record("(torch.ones(3, requires_grad=True) * 2).sum().backward()")
    assert run.all(NotFinite) == []
    assert run.all(Operation)[-1].value.scalar == 6
