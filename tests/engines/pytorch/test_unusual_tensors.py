"""Tensors of every dtype, layout and kind are recorded, and what cannot be read is outlined."""

import pytest
from recording import plain, record

from whygrad.ledger.events import GradWritten, Operation, OptimizerStepped, Tensor


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_floating_dtypes(dtype: str) -> None:
    run = record(f"""
        w = torch.ones(2, dtype=torch.{dtype}, requires_grad=True)
        (w * 2).sum().backward()
    """)
    written = run.one(GradWritten)
    assert (written.after.dtype, written.after.items) == (dtype, (2.0, 2.0))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "float32"])
def test_statistics_of_large_tensors_of_floating_dtypes(dtype: str) -> None:
    run = record(f"""
        w = torch.ones(100, dtype=torch.{dtype}, requires_grad=True)
        (w * 2).sum().backward()
    """)
    after = run.one(GradWritten).after
    assert (after.items, after.norm, after.low, after.high) == (None, pytest.approx(20.0), 2.0, 2.0)


def test_complex_gradient() -> None:
    run = record("""
        w = torch.tensor([1 + 2j], requires_grad=True)
        (w * w.conj()).real.sum().backward()
    """)
    assert run.one(GradWritten).after.items == ("(2+4j)",)


def test_large_complex_gradient_is_outlined() -> None:
    run = record("""
        w = torch.ones(100, dtype=torch.complex64, requires_grad=True)
        (w * w.conj()).real.sum().backward()
    """)
    after = run.one(GradWritten).after
    assert (after.shape, after.dtype, after.items, after.norm) == ((100,), "complex64", None, None)


def test_integers_and_booleans_have_values() -> None:
    run = record("""
        i = torch.arange(3)
        b = i > 0
        u = i.to(torch.uint8)
    """)
    assert [plain(run.tensor(run.id("i")).value), plain(run.operation("i > 0").value)] == [
        [0, 1, 2],
        [False, True, True],
    ]
    assert run.tensor(run.id("u")).dtype == "uint8"


def test_meta_tensors_have_shapes_alone() -> None:
    run = record("""
        w = torch.ones(2, device="meta", requires_grad=True)
        (w * 2).sum().backward()
    """)
    after = run.one(GradWritten).after
    assert (after.shape, after.items, after.norm) == ((2,), None, None)


def test_sparse_gradient() -> None:
    run = record("""
        model = nn.Embedding(4, 2, sparse=True)
        model(torch.tensor([1, 1])).sum().backward()
        layout = str(model.weight.grad.layout)
    """)
    assert run.program["layout"] == "torch.sparse_coo"
    assert run.one(GradWritten).after.shape == (4, 2)


def test_sparse_gradient_that_accumulates_and_is_reset() -> None:
    run = record("""
        model = nn.Embedding(4, 2, sparse=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model(torch.tensor([1, 1])).sum().backward()
            model(torch.tensor([0, 1])).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    """)
    kinds = [type(event).__name__ for event in run.history(run.id("model.weight"))]
    assert kinds == ["GradWritten", "GradWritten", "GradReset"] * 2


def test_sparse_input() -> None:
    run = record("""
        a = torch.eye(2).to_sparse()
        w = torch.ones(2, 1, requires_grad=True)
        torch.sparse.mm(a, w).sum().backward()
    """)
    assert run.story("w") == ["line 4: None -> [1, 1] = [1, 1] through torch.sparse.mm(a, w)"]


@pytest.mark.filterwarnings("ignore:.*[qQ]uantiz.*")
def test_quantized_tensor() -> None:
    run = record("q = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)")
    assert run.tensor(run.id("q")).dtype == "qint8"


@pytest.mark.filterwarnings("ignore")
def test_nested_tensor() -> None:
    run = record("""
        a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
        n = torch.nested.as_nested_tensor([a, b])
        (n * 2).to_padded_tensor(0.0).sum().backward()
    """)
    assert run.program["a"].grad.tolist() == [2.0, 2.0]


def test_empty_tensor() -> None:
    run = record("""
        w = torch.ones(0, requires_grad=True)
        (w * 2).sum().backward()
    """)
    assert run.one(GradWritten).after.items == ()


def test_infinite_and_undefined_scalars() -> None:
    run = record("""
        w = torch.tensor([0.0, 1.0], requires_grad=True)
        (w / torch.tensor([0.0, 0.0])).sum().backward()
    """)
    assert run.one(GradWritten).after.items == ("inf", "inf")


def test_subclass_of_tensor() -> None:
    run = record("""
        class Named(torch.Tensor):
            pass
        w = torch.ones(2).as_subclass(Named).requires_grad_()
        y = (w * 2).sum()
        y.backward()
        kind = type(w.grad).__name__
    """)
    assert run.story("w") == ["line 6: None -> [2, 2] = [2, 2] through w * 2"]


def test_subclass_that_logs_what_it_is_asked_is_asked_no_more_than_bare() -> None:
    source = """
        asked = []
        class Logged(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                asked.append(getattr(function, "__name__", str(function)))
                return super().__torch_function__(function, types, args, kwargs or {})
        w = torch.ones(2).as_subclass(Logged)
        y = (w * 2).sum()
        n = y.item()
    """
    run = record(source)
    import textwrap

    bare: dict[str, object] = {}
    exec("import torch\n" + textwrap.dedent(source), bare)
    assert run.program["asked"] == bare["asked"]


def test_dispatch_mode_of_the_program_counts_what_it_counted_bare() -> None:
    source = """
        from torch.utils._python_dispatch import TorchDispatchMode
        counted = []
        class Counting(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                counted.append(str(function))
                return function(*args, **(kwargs or {}))
        w = torch.ones(2, requires_grad=True)
        with Counting():
            y = (w * 2).sum()
            y.backward()
    """
    run = record(source)
    import textwrap

    bare: dict[str, object] = {}
    exec("import torch\n" + textwrap.dedent(source), bare)
    assert run.program["counted"] == bare["counted"]
    assert len(run.all(GradWritten)) == 1


def test_function_mode_of_the_program_counts_what_it_counted_bare() -> None:
    source = """
        from torch.overrides import TorchFunctionMode
        counted = []
        class Counting(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                counted.append(getattr(function, "__name__", str(function)))
                return function(*args, **(kwargs or {}))
        w = torch.ones(2, requires_grad=True)
        with Counting():
            y = (w * 2).sum()
            y.backward()
    """
    run = record(source)
    import textwrap

    bare: dict[str, object] = {}
    exec("import torch\n" + textwrap.dedent(source), bare)
    assert run.program["counted"] == bare["counted"]
    assert run.program["w"].grad.tolist() == [2.0, 2.0]


def test_fake_tensors_are_not_harmed() -> None:
    run = record("""
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            x = torch.ones(2, 3)
            y = (x @ x.T).sum()
        shape = tuple(y.shape)
    """)
    assert run.program["shape"] == ()


def test_in_place_operation_on_an_intermediate() -> None:
    run = record("""
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        h = w * 2
        h.mul_(3)
        h[0] = 0.0
        h.sum().backward()
    """)
    assert run.story("w") == ["line 6: None -> [0, 6] = [0, 6] through w * 2"]
    assert [event.function for event in run.of(Operation) if event.in_place] == ["mul_", "setitem"]


def test_result_named_after_an_in_place_operation_is_the_same_tensor() -> None:
    run = record("""
        x = torch.ones(2)
        y = x.add_(1)
    """)
    assert run.id("x") == run.id("y")
    assert run.operation("x.add_(1)").in_place


def test_augmented_assignment_writes_in_place() -> None:
    run = record("""
        x = torch.ones(2)
        x += 1
        x *= x
    """)
    writes = [event for event in run.of(Operation) if event.in_place]
    assert [(event.function, event.value.items) for event in writes] == [("add_", (2.0, 2.0)), ("mul_", (4.0, 4.0))]


def test_augmented_assignment_of_a_number_makes_a_new_tensor() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        total = 0
        total += w
        total.backward()
    """)
    assert run.story("w") == ["line 5: None -> 1 = 1 through total += w"]


def test_running_total_of_losses_keeps_the_graph() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        total = torch.zeros(())
        for _ in range(3):
            total += w * 2
        total.backward()
    """)
    assert run.terms("w") == [(2, "mul", "w * 2")] * 3


def test_tensor_with_an_odd_stride_is_read_in_its_own_order() -> None:
    run = record("x = torch.arange(6.0).reshape(2, 3).T")
    assert run.operation("torch.arange(6.0).reshape(2, 3).T").value.items == (0.0, 3.0, 1.0, 4.0, 2.0, 5.0)


def test_conjugate_and_negative_views_are_read_as_they_count() -> None:
    run = record("""
        z = torch.tensor([1 + 2j, 3 - 4j])
        c = z.conj()
        i = c.imag
    """)
    assert run.operation("z.conj()").value.items == ("(1-2j)", "(3+4j)")
    assert run.operation("c.imag").value.items == (-2.0, 4.0)


def test_tensor_met_in_inference_mode_has_no_version() -> None:
    run = record("""
        with torch.inference_mode():
            x = torch.ones(2)
            x.mul_(2)
            y = x * 3
        z = x + 1
    """)
    assert run.operation("y = x * 3"[4:]).value.items == (6.0, 6.0)
    assert all(isinstance(event, Tensor) for event in run.of(Tensor))


@pytest.mark.parametrize("dtype", ["complex64", "float16", "bfloat16", "float64"])
def test_steps_of_parameters_of_other_dtypes_warn_of_nothing(dtype: str) -> None:
    run = record(f"""
        w = torch.ones(100, dtype=torch.{dtype}, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)
        (w * w.conj()).real.sum().backward()
        optimizer.step()
    """)
    [update] = run.one(OptimizerStepped).updates
    assert update.changed
    assert update.change == pytest.approx(10.0, rel=1e-2)


def test_square_of_a_tensor_that_overflows_has_a_norm() -> None:
    run = record("""
        w = torch.ones(100, requires_grad=True)
        (w * 1e30).sum().backward()
    """)
    assert run.one(GradWritten).after.norm == pytest.approx(1e31)


def test_a_storage_can_still_be_resized_after_its_values_were_read() -> None:
    recording = record("""
        w = torch.randn(200, requires_grad=True)
        (w * 2).sum().backward()
        size = w.grad.untyped_storage().resize_(0).nbytes()
        """)
    assert recording.program["size"] == 0
