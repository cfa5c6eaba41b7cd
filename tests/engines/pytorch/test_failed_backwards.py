"""Backwards that PyTorch refuses: which node, who freed it, who wrote into what it had saved."""

import pytest
from recording import Recording, record

from whygrad.ledger.events import BackwardBegan, BackwardEnded, GradWritten


def failed(run: Recording) -> BackwardEnded:
    [ended] = [ended for ended in run.of(BackwardEnded) if ended.error]
    return ended


def test_second_backward_names_the_node_and_the_pass_that_freed_it() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 2
        y.backward()
        y.backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert "second time" in ended.error
    assert run.code(run.node(ended.blamed).site) == "w ** 2"
    assert ended.freed_by == run.all(BackwardBegan)[0].id
    assert run.line(ended.site) == 5


def test_graph_shared_by_two_losses() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        h = w ** 2
        a, b = h * 2, h.exp()
        a.backward()
        b.backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.code(run.node(ended.blamed).site) == "w ** 2"
    assert ended.freed_by == run.all(BackwardBegan)[0].id


def test_graph_carried_from_one_step_to_the_next() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        h = torch.tensor(1.0)
        for _ in range(2):
            h = torch.tanh(h * w)
            h.backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.node(ended.blamed).name == "TanhBackward0"
    assert ended.freed_by == run.all(BackwardBegan)[0].id
    first, _second = [node for node in run.of(type(run.node(ended.blamed))) if node.name == "TanhBackward0"]
    assert ended.blamed == first.id


def test_graph_freed_by_autograd_grad() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 2
        torch.autograd.grad(y, w)
        y.backward()
        """,
        raises=RuntimeError,
    )
    assert run.code(run.node(failed(run).blamed).site) == "w ** 2"


def test_write_into_a_saved_result_names_writer_and_node() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        y = w.exp()
        y += 1
        y.backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.code(run.node(ended.blamed).site) == "w.exp()"
    assert run.name(ended.written) == "y"
    assert run.line(ended.written_by) == 4


def test_write_into_a_saved_operand_names_writer_and_node() -> None:
    run = record(
        """
        x = torch.ones(2)
        w = torch.ones(2, requires_grad=True)
        y = (w * x).sum()
        x[0] = 5.0
        y.backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.code(run.node(ended.blamed).site) == "w * x"
    assert run.name(ended.written) == "x"
    assert run.line(ended.written_by) == 5


def test_first_of_several_writes_is_the_writer() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        y = w.exp()
        y.mul_(2)
        y.add_(1)
        y.backward()
        """,
        raises=RuntimeError,
    )
    assert run.line(failed(run).written_by) == 4


def test_optimizer_step_between_forward_and_backward_is_the_writer() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w, v], lr=0.1)
        loss = w * v
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.code(run.node(ended.blamed).site) == "w * v"
    assert run.line(ended.written_by) == 7
    assert run.name(ended.written) in ("w", "v")


def test_write_through_a_view_of_a_saved_tensor() -> None:
    run = record(
        """
        w = torch.ones(2, requires_grad=True)
        y = w.exp()
        v = y.detach()[0]
        v.zero_()
        y.sum().backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.code(run.node(ended.blamed).site) == "w.exp()"
    assert run.line(ended.written_by) == 5


def test_write_inside_a_library_module() -> None:
    run = record(
        """
        model = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.ReLU(inplace=True))
        y = model(torch.ones(1, 2))
        y.sum().backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.node(ended.blamed).name == "SigmoidBackward0"
    assert run.line(run.node(ended.blamed).site) == 3
    assert run.line(ended.written_by) == 3


def test_write_into_a_weight_that_a_library_module_saved() -> None:
    run = record(
        """
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        loss = model(torch.ones(1, 2)).sum()
        with torch.no_grad():
            model[1].weight.zero_()
        loss.backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.name(ended.written) == "model.1.weight"
    assert run.line(ended.written_by) == 5
    assert run.line(run.node(ended.blamed).site) == 3


def test_buffers_written_before_the_failure_are_told() -> None:
    run = record(
        """
        class Broken(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()
            @staticmethod
            def backward(ctx, grad):
                raise ValueError("broken")
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(5.0, requires_grad=True)
        y = Broken.apply(w) + v * 2
        y.backward()
        held = v.grad
        """,
        raises=ValueError,
    )
    ended = failed(run)
    assert ended.error == "ValueError: broken"
    assert run.line(ended.site) == 12
    written = {run.name(event.tensor) for event in run.of(GradWritten)}
    assert written <= {"v"}
    assert (run.program["v"].grad is not None) == (written == {"v"})


def test_node_that_raised_is_blamed() -> None:
    run = record(
        """
        class Broken(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()
            @staticmethod
            def backward(ctx, grad):
                raise ValueError("broken")
        w = torch.tensor(3.0, requires_grad=True)
        y = Broken.apply(w) * 2
        y.backward()
        """,
        raises=ValueError,
    )
    assert run.node(failed(run).blamed).name == "BrokenBackward"


def test_caught_failure_lets_the_next_backward_count() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 2
        y.backward()
        try:
            y.backward()
        except RuntimeError:
            pass
        (w * 2).backward()
    """)
    assert run.story("w")[-1] == "line 9: 6 -> 8 = 2 through w * 2"


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("(x * 2).backward()", "does not require grad"),
        ("y.backward()", "only for scalar outputs"),
        ("y.backward(torch.ones(3))", "shape"),
        ("torch.autograd.grad(y.sum(), x)", "require"),
        ("torch.autograd.grad(y.sum(), v)", "not have been used"),
    ],
)
def test_refused_before_anything_ran(statement: str, text: str) -> None:
    run = record(
        f"""
        x = torch.ones(2)
        v = torch.ones(2, requires_grad=True)
        w = torch.ones(2, requires_grad=True)
        y = w * x
        {statement}
        """,
        raises=RuntimeError,
    )
    assert text in str(run.error)
    assert run.all(GradWritten) == []


def test_retain_graph_repairs_it() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 2
        y.backward(retain_graph=True)
        y.backward()
    """)
    assert [ended.error for ended in run.of(BackwardEnded)] == ["", ""]
    assert run.story("w")[-1] == "line 5: 6 -> 12 = 6 through w ** 2"


def test_version_error_in_anomaly_mode_is_told_as_well() -> None:
    run = record(
        """
        w = torch.tensor(3.0, requires_grad=True)
        with torch.autograd.detect_anomaly(check_nan=False):
            y = w.exp()
            y += 1
            y.backward()
        """,
        raises=RuntimeError,
    )
    assert run.line(failed(run).written_by) == 5


test_version_error_in_anomaly_mode_is_told_as_well = pytest.mark.filterwarnings("ignore")(
    test_version_error_in_anomaly_mode_is_told_as_well
)


def test_embedding_that_renormalises_its_weight_is_the_writer() -> None:
    run = record(
        """
        model = nn.Embedding(3, 2, max_norm=0.1)
        y = model.weight ** 2
        z = model(torch.tensor([0, 1]))
        (y.sum() * z.sum()).backward()
        """,
        raises=RuntimeError,
    )
    ended = failed(run)
    assert run.name(ended.written) == "model.weight"
    assert run.line(ended.written_by) == 4
