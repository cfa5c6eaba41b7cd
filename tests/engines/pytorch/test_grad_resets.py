"""Grad buffers set to None or to zero, and by whom."""

from recording import record

MODEL = """
model = nn.Linear(1, 1, bias=False)
with torch.no_grad():
    model.weight.fill_(3.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
model(torch.full((1, 1), 2.0)).sum().backward()
"""  # up to line 6


def test_assignment_of_none() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        w.grad = None
        (w * 5).backward()
    """)
    assert run.story("w")[1:] == ["line 4: 2 -> None by w.grad = None", "line 5: None -> 5 = 5 through w * 5"]


def test_deleted_buffer() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        del w.grad
        (w * 5).backward()
    """)
    assert run.story("w")[1:] == ["line 4: 2 -> None by del w.grad", "line 5: None -> 5 = 5 through w * 5"]


def test_buffer_filled_with_zeros() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        w.grad.zero_()
        (w * 5).backward()
    """)
    assert run.story("w")[1:] == ["line 4: 2 -> 0 by zero_", "line 5: 0 -> 5 = 5 through w * 5"]


def test_buffer_zeroed_through_data() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        w.grad.data.zero_()
        (w * 5).backward()
    """)
    assert run.story("w")[1:] == ["line 4: 2 -> 0 by zero_", "line 5: 0 -> 5 = 5 through w * 5"]


def test_detached_and_zeroed_as_old_pytorch_did() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        w.grad.detach_()
        w.grad.zero_()
        (w * 5).backward()
    """)
    assert run.story("w")[1:] == ["line 5: 2 -> 0 by zero_", "line 6: 0 -> 5 = 5 through w * 5"]


def test_buffer_overwritten_with_zeros() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        w.grad = torch.zeros(())
        (w * 5).backward()
    """)
    assert run.story("w")[1:] == ["line 4: 2 -> 0 by assignment", "line 5: 0 -> 5 = 5 through w * 5"]


def test_buffer_multiplied_by_zero() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        w.grad *= 0
    """)
    assert run.story("w")[1:] == ["line 4: 2 -> 0 by mul_"]


def test_optimizer_zero_grad_sets_none() -> None:
    run = record(MODEL + "optimizer.zero_grad()")
    assert run.story("model.weight")[1:] == ["line 7: [2] -> None by SGD.zero_grad"]


def test_optimizer_zero_grad_may_set_zero() -> None:
    run = record(MODEL + "optimizer.zero_grad(set_to_none=False)")
    assert run.story("model.weight")[1:] == ["line 7: [2] -> 0 by SGD.zero_grad"]


def test_module_zero_grad_sets_none() -> None:
    run = record(MODEL + "model.zero_grad()")
    assert run.story("model.weight")[1:] == ["line 7: [2] -> None by Linear.zero_grad"]


def test_module_zero_grad_may_set_zero() -> None:
    run = record(MODEL + "model.zero_grad(set_to_none=False)")
    assert run.story("model.weight")[1:] == ["line 7: [2] -> 0 by Linear.zero_grad"]


def test_zero_grad_of_a_subclass_bears_its_name() -> None:
    run = record("""
        class Own(torch.optim.SGD):
            pass
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = Own([w], lr=0.1)
        (w * 2).backward()
        optimizer.zero_grad()
    """)
    assert run.story("w")[1:] == ["line 7: 2 -> None by Own.zero_grad"]


def test_reset_of_a_buffer_that_is_none_is_no_event() -> None:
    run = record(MODEL + "optimizer.zero_grad()\noptimizer.zero_grad()\nmodel.weight.grad = None")
    assert len(run.story("model.weight")) == 2


def test_loop_over_parameters_resets_each() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model(torch.ones(1, 1)).sum().backward()
        for parameter in model.parameters():
            parameter.grad = None
    """)
    assert run.story("model.weight")[1:] == ["line 5: [1] -> None by parameter.grad = None"]
    assert run.story("model.bias")[1:] == ["line 5: [1] -> None by parameter.grad = None"]


def test_loop_over_parameters_zeroes_each() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model(torch.ones(1, 1)).sum().backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()
    """)
    assert run.story("model.weight")[1:] == ["line 6: [1] -> 0 by zero_"]


def test_reset_in_a_helper_has_the_helpers_line() -> None:
    run = record("""
        def reset(tensor):
            tensor.grad = None
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        reset(w)
    """)
    assert run.story("w")[1:] == ["line 3: 2 -> None by tensor.grad = None"]


def test_setattr_is_found_at_the_next_backward() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        setattr(w, "grad", None)
        (w * 5).backward()
    """)
    assert run.story("w")[1:] == ["line 5: 2 -> None by unseen", "line 5: None -> 5 = 5 through w * 5"]


def test_foreach_zero_is_found_at_the_next_backward() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        torch._foreach_zero_([w.grad])
        (w * 5).backward()
    """)
    assert run.story("w")[1][-14:] in ("by unseen", "2 -> 0 by torch._foreach_zero_"[-14:])
    assert run.story("w")[2] == "line 5: 0 -> 5 = 5 through w * 5"


def test_last_reset_is_found_at_the_end() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        setattr(w, "grad", None)
    """)
    assert run.story("w")[1:] == ["2 -> None by unseen"]


def test_reset_of_several_targets() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(3.0, requires_grad=True)
        (w * v).backward()
        w.grad = v.grad = None
    """)
    assert run.story("w")[1:] == ["line 5: 3 -> None by w.grad = None"]
    assert run.story("v")[1:] == ["line 5: 3 -> None by v.grad = None"]


def test_reset_of_a_retained_gradient() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = w * 2
        h.retain_grad()
        (h * 7).backward()
        h.grad = None
    """)
    assert run.story("h")[1:] == ["line 6: 7 -> None by h.grad = None"]


def test_zero_grad_of_one_optimizer_leaves_the_others_parameters_alone() -> None:
    run = record("""
        w, v = (torch.tensor(3.0, requires_grad=True) for _ in range(2))
        first, second = torch.optim.SGD([w], lr=0.1), torch.optim.SGD([v], lr=0.1)
        (w * v).backward()
        first.zero_grad()
    """)
    assert run.story("w")[1:] == ["line 5: 3 -> None by SGD.zero_grad"]
    assert len(run.story("v")) == 1
