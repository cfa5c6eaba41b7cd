"""Custom `autograd.Function`, hooks of every kind, checkpointing, saved-tensor hooks, `torch.func`."""

import pytest
from recording import Recording, record

from whygrad.ledger.events import BackwardBegan, Event, GradWritten, Node

SQUARE = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x
"""  # lines 2 to 10


def test_function_of_the_users_own_is_a_node_at_the_line_that_applied_it() -> None:
    run = record(SQUARE + "w = torch.tensor(3.0, requires_grad=True)\ny = Square.apply(w)\ny.backward()")
    assert run.story("w") == ["line 13: None -> 6 = 6 through Square.apply(w)"]
    node = run.one(Node)
    assert (node.name, run.line(node.site)) == ("SquareBackward", 12)


def test_it_saves_what_it_saved() -> None:
    run = record(SQUARE + "w = torch.tensor(3.0, requires_grad=True)\ny = Square.apply(w)\ny.backward()")
    [kept] = run.one(Node).saved
    assert (run.name(kept.tensor), kept.shape, kept.version) == ("w", (), 0)


def test_its_operations_inside_make_no_nodes() -> None:
    run = record(SQUARE + "w = torch.tensor(3.0, requires_grad=True)\ny = Square.apply(w) * 2\ny.backward()")
    assert {node.name for node in run.of(Node)} == {"SquareBackward", "MulBackward0"}
    assert run.terms("w") == [(12, "Square.apply", "Square.apply(w)")] or run.terms("w")[0][0] == 12


def test_function_that_returns_none_contributes_nothing() -> None:
    run = record("""
        class Stop(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y
            @staticmethod
            def backward(ctx, grad):
                return grad * 5, None
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(4.0, requires_grad=True)
        y = Stop.apply(w, v) + v * 2
        y.backward()
    """)
    assert run.terms("v") == [(2, "mul", "v * 2")]
    assert [value for value, _, _ in run.terms("w")] == [5]


def test_function_that_wrote_its_input_in_place() -> None:
    run = record("""
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        w = torch.tensor(3.0, requires_grad=True)
        h = w * 1
        Double.apply(h)
        h.backward()
    """)
    assert run.story("w") == ["line 13: None -> 2 = 2 through w * 1"]


def test_straight_through_estimator() -> None:
    run = record("""
        w = torch.tensor(2.6, requires_grad=True)
        y = w + (w.round() - w).detach()
        y.backward()
    """)
    assert run.story("w") == ["line 4: None -> 1 = 1 through w + (w.round() - w).detach()"]
    assert run.operation("(w.round() - w).detach()").cut == "detach"


def test_node_hooks_of_the_program_run_as_ever() -> None:
    run = record("""
        seen = []
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        y.grad_fn.register_hook(lambda sent, received: seen.append(sent[0].item()))
        y.grad_fn.register_prehook(lambda received: seen.append(received[0].item()))
        (y * 7).backward()
    """)
    assert run.program["seen"] == [7.0, 14.0]
    assert run.story("w") == ["line 7: None -> 14 = 14 through w * 2"]


def test_hooks_of_modules_run_as_ever() -> None:
    run = record("""
        order = []
        model = nn.Linear(1, 1)
        model.register_forward_pre_hook(lambda *_: order.append("forward pre"))
        model.register_forward_hook(lambda *_: order.append("forward"))
        model.register_full_backward_pre_hook(lambda *_: order.append("backward pre"))
        model.register_full_backward_hook(lambda *_: order.append("backward"))
        model(torch.ones(1, 1, requires_grad=True)).sum().backward()
    """)
    assert run.program["order"] == ["forward pre", "forward", "backward pre", "backward"]
    assert len(run.story("model.weight")) == 1


def test_hook_of_the_gradient_accumulator() -> None:
    run = record("""
        seen = []
        w = torch.tensor(3.0, requires_grad=True)
        accumulator = w.expand_as(w).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda *_: seen.append(w.grad.item()))
        (w * 2).backward()
    """)
    assert run.program["seen"] == [2.0]
    assert run.story("w") == ["line 6: None -> 2 = 2 through w * 2"]


def test_prehook_of_the_gradient_accumulator_that_replaces() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        accumulator = w.expand_as(w).grad_fn.next_functions[0][0]
        accumulator.register_prehook(lambda grads: (grads[0] * 10,))
        y = w * 2 + w * 5
        y.backward()
    """)
    [written] = run.all(GradWritten)
    assert written.after.items == (70.0,)
    assert written.hooked


def checkpointed(reentrant: bool) -> Recording:
    return record(f"""
        from torch.utils.checkpoint import checkpoint
        model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Tanh(), nn.Linear(1, 1, bias=False))
        with torch.no_grad():
            model[0].weight.fill_(0.5)
            model[2].weight.fill_(3.0)
        x = torch.ones(1, 1, requires_grad=True)
        y = checkpoint(model, x, use_reentrant={reentrant})
        (y * model[2].weight).sum().backward()
        truth = {{f"model.{{name}}": p.grad.item() for name, p in model.named_parameters()}}
    """)


def test_checkpoint_that_replays_in_the_same_graph() -> None:
    run = checkpointed(False)
    for name, grad in run.program["truth"].items():
        [*_, last] = run.history(run.id(name))
        assert last.after.scalar == pytest.approx(grad)
    assert all(isinstance(event, GradWritten) for name in run.program["truth"] for event in run.history(run.id(name)))


def test_checkpoint_that_runs_a_backward_of_its_own() -> None:
    run = checkpointed(True)
    for name, grad in run.program["truth"].items():
        events = list(run.history(run.id(name)))
        assert all(isinstance(event, GradWritten) for event in events), run.story(name)
        assert events[-1].after.scalar == pytest.approx(grad)
        for event in events:
            before = event.before.scalar if event.before else 0.0
            assert before + sum(term.value.scalar for term in event.contributions) == pytest.approx(event.after.scalar)
    assert len(run.all(BackwardBegan)) == 2


def test_saved_tensor_hooks_see_what_they_saw_bare() -> None:
    run = record("""
        packed, unpacked = [], []
        def pack(tensor):
            packed.append(tuple(tensor.shape))
            return tensor
        def unpack(tensor):
            unpacked.append(tuple(tensor.shape))
            return tensor
        w = torch.ones(2, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (w ** 2).exp().sum()
        y.backward()
    """)
    assert run.program["packed"] == [(2,), (2,)]
    assert run.program["unpacked"] == [(2,), (2,)]


def test_saved_on_cpu_with_hooks() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        with torch.autograd.graph.save_on_cpu():
            y = w ** 2
        y.backward()
    """)
    assert run.story("w") == ["line 5: None -> 6 = 6 through w ** 2"]


def wrong(run: Recording) -> list[Event]:
    """What must not be told of a transform's inside: backwards that write buffers."""
    return [*run.of(GradWritten), *(began for began in run.of(BackwardBegan) if began.call == "backward")]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("torch.func.grad(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))", [3.0, 12.0]),
        ("torch.func.vmap(lambda x: x * 2)(torch.tensor([1.0, 2.0]))", [2.0, 4.0]),
        ("torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1.0, 2.0]))", [[2.0, 0.0], [0.0, 4.0]]),
        ("torch.func.jacfwd(lambda x: x ** 2)(torch.tensor([1.0, 2.0]))", [[2.0, 0.0], [0.0, 4.0]]),
        ("torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))", [[6.0, 0.0], [0.0, 12.0]]),
        ("torch.func.vmap(torch.func.grad(lambda x: x ** 2))(torch.tensor([1.0, 2.0]))", [2.0, 4.0]),
        ("torch.func.vjp(lambda x: x * 3, torch.tensor([1.0]))[1](torch.tensor([2.0]))[0]", [6.0]),
        ("torch.func.jvp(lambda x: x * 3, (torch.tensor([1.0]),), (torch.tensor([2.0]),))[1]", [6.0]),
    ],
)
def test_transforms_are_not_harmed_and_tell_nothing_wrong(expression: str, value: object) -> None:
    run = record(f"result = {expression}\nw = torch.tensor(3.0, requires_grad=True)\n(w * 2).backward()")
    assert run.program["result"].tolist() == value
    assert len(wrong(run)) == 2
    assert run.story("w") == ["line 4: None -> 2 = 2 through w * 2"]


def test_batched_gradients_are_not_harmed() -> None:
    source = """
        w = torch.ones(2, requires_grad=True)
        y = w * 3
        (rows,) = torch.autograd.grad(y, w, torch.eye(2), is_grads_batched=True)
        (w * 2).sum().backward()
    """
    run = record(source, loses="a backward over a batch of gradients")
    assert run.program["rows"].tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert run.story("w") == ["line 5: None -> [2, 2] = [2, 2] through w * 2"]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_forward_mode_is_not_harmed() -> None:
    run = record("""
        import torch.autograd.forward_ad as fwAD
        with fwAD.dual_level():
            x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
            tangent = fwAD.unpack_dual(x * x).tangent
    """)
    assert run.program["tangent"].item() == 6.0


def test_anomaly_mode_is_not_harmed() -> None:
    run = record("""
        import warnings
        warnings.simplefilter("ignore")
        w = torch.tensor(3.0, requires_grad=True)
        with torch.autograd.detect_anomaly():
            (w * 2).backward()
    """)
    assert run.story("w") == ["line 6: None -> 2 = 2 through w * 2"]


def test_deferred_engine_callbacks_run() -> None:
    run = record("""
        seen = []
        w = torch.tensor(3.0, requires_grad=True)
        w.register_hook(lambda _: torch.autograd.Variable._execution_engine.queue_callback(lambda: seen.append("done")))
        (w * 2).backward()
    """)
    assert run.program["seen"] == ["done"]


def test_parametrized_module() -> None:
    run = record("""
        class Double(nn.Module):
            def forward(self, weight):
                return weight * 2
        model = nn.Linear(1, 1, bias=False)
        nn.utils.parametrize.register_parametrization(model, "weight", Double())
        model(torch.ones(1, 1)).sum().backward()
    """)
    assert run.program["model"].parametrizations.weight.original.grad.item() == 2.0
    assert run.story("model.parametrizations.weight.original") == ["line 7: None -> [2] = [2] through weight * 2"]
