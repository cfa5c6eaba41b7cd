"""Buffers changed by something else than a backward: clipping, scaling, hooks, hand-written code."""

import pytest
from recording import record

from whygrad.ledger.events import GradChanged, GradWritten

WRITTEN = """
w = torch.tensor([3.0, 4.0], requires_grad=True)
(w * torch.tensor([3.0, 4.0])).sum().backward()
"""  # up to line 3; the buffer holds [3, 4], its norm is 5


def test_clip_grad_norm() -> None:
    run = record(WRITTEN + "total = nn.utils.clip_grad_norm_([w], 1.0)\nheld = w.grad.tolist()")
    [changed] = run.all(GradChanged)
    assert (changed.by, run.line(changed.site)) == ("clip_grad_norm_", 4)
    assert changed.before.items == (3.0, 4.0)
    assert changed.after.items == tuple(run.program["held"])


def test_clip_that_clips_nothing_is_no_change() -> None:
    run = record(WRITTEN + "nn.utils.clip_grad_norm_([w], 100.0)")
    assert run.all(GradChanged) == []


def test_clip_grad_value() -> None:
    run = record(WRITTEN + "nn.utils.clip_grad_value_([w], 3.5)")
    assert run.story("w")[1:] == ["line 4: [3, 4] -> [3, 3.5] by clip_grad_value_"]


@pytest.mark.parametrize(
    ("statement", "by"),
    [
        ("w.grad *= 0.5", "mul_"),
        ("w.grad.mul_(0.5)", "mul_"),
        ("w.grad.data.mul_(0.5)", "mul_"),
        ("w.grad.data *= 0.5", "mul_"),
        ("w.grad /= 2", "div_"),
        ("w.grad = w.grad * 0.5", "assignment"),
        ("w.grad.data = w.grad * 0.5", "assignment"),
        ("w.grad[:] = w.grad * 0.5", "assignment"),
        ("torch.mul(w.grad, 0.5, out=w.grad)", "torch.mul"),
        ("w.grad.copy_(w.grad * 0.5)", "copy_"),
        ("w.grad.detach().mul_(0.5)", "mul_"),
        ("g = w.grad; g.mul_(0.5)", "mul_"),
        ("g = w.grad; g *= 0.5", "mul_"),
    ],
)
def test_scaling_by_hand(statement: str, by: str) -> None:
    run = record(WRITTEN + statement)
    assert run.story("w")[1:] == [f"line 4: [3, 4] -> [1.5, 2] by {by}"]


def test_one_element_written() -> None:
    run = record(WRITTEN + "w.grad[0] = 9.0")
    assert run.story("w")[1:] == ["line 4: [3, 4] -> [9, 4] by assignment"]


def test_buffer_set_by_hand() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        w.grad = torch.tensor(7.0)
        (w * 2).backward()
    """)
    assert run.story("w") == ["line 3: None -> 7 by assignment", "line 4: 7 -> 9 = 2 through w * 2"]


def test_foreach_function_that_no_tap_sees() -> None:
    run = record(WRITTEN + "torch._foreach_mul_([w.grad], 0.5)\n(w * 0).sum().backward()")
    [changed] = run.all(GradChanged)
    assert changed.after.items == (1.5, 2.0)
    assert run.line(changed.site) == 4 or changed.by == "unseen"


def test_change_inside_a_library_is_found_at_the_step() -> None:
    run = record(
        WRITTEN
        + "optimizer = torch.optim.SGD([w], lr=0.1)\nlist(map(lambda p: p.grad.mul_(0.5), [w]))\noptimizer.step()"
    )
    [changed] = run.all(GradChanged)
    assert changed.after.items == (1.5, 2.0)


def test_write_through_numpy_is_found() -> None:
    run = record(WRITTEN + "w.grad.numpy()[0] = 100.0\n(w * 0).sum().backward()")
    assert run.story("w")[-1].startswith("line 5: [100, 4] -> [100, 4]")


def test_scaling_in_a_loop_over_parameters() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model(torch.ones(1, 1)).sum().backward()
        for p in model.parameters():
            p.grad *= 0.5
    """)
    assert run.story("model.weight")[1:] == ["line 5: [1] -> [0.5] by mul_"]
    assert run.story("model.bias")[1:] == ["line 5: [1] -> [0.5] by mul_"]


def test_tensor_hook_that_replaces_the_gradient() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        w.register_hook(lambda grad: grad * 10)
        (w * 2).backward()
    """)
    assert run.story("w") == ["line 4: None -> 20 = 2 through w * 2 (hooked)"]


def test_tensor_hook_that_looks_only_replaces_nothing() -> None:
    run = record("""
        seen = []
        w = torch.tensor(3.0, requires_grad=True)
        w.register_hook(lambda grad: seen.append(grad.item()))
        (w * 2).backward()
    """)
    assert run.program["seen"] == [2.0]
    assert run.story("w") == ["line 5: None -> 2 = 2 through w * 2"]


def test_hook_of_an_intermediate_tensor_shows_in_what_arrives() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = w * 2
        h.register_hook(lambda grad: grad * 10)
        (h * 7).backward()
    """)
    assert run.story("w") == ["line 5: None -> 140 = 140 through w * 2"]


def test_hook_that_writes_in_place() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        def halve(grad):
            grad *= 0.5
        w.register_hook(halve)
        (w * 2).backward()
    """)
    assert run.story("w") == ["line 6: None -> 1 = 2 through w * 2 (hooked)"]


def test_hook_on_a_leaf_with_several_terms() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        w.register_hook(lambda grad: grad.clamp(max=4.0))
        y = w * 2 + w * 5
        y.backward()
    """)
    [written] = run.all(GradWritten)
    assert written.hooked
    assert sorted(run.terms("w")) == [(2, "mul", "w * 2"), (5, "mul", "w * 5")]
    assert written.after.items == (4.0,)


def test_post_accumulate_hook_that_scales() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        def halve(p):
            p.grad *= 0.5
        w.register_post_accumulate_grad_hook(halve)
        (w * 2).backward()
    """)
    assert run.story("w") == ["line 6: None -> 2 = 2 through w * 2", "line 4: 2 -> 1 by mul_"]


def test_post_accumulate_hook_that_steps_and_resets() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)
        def step(p):
            optimizer.step()
            optimizer.zero_grad()
        w.register_post_accumulate_grad_hook(step)
        (w * 2).backward()
        value = w.item()
    """)
    assert run.program["value"] == 2.0
    assert run.story("w") == ["line 8: None -> 2 = 2 through w * 2", "line 6: 2 -> None by SGD.zero_grad"]


def test_module_hooks_that_replace_gradients_show_in_what_arrives() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
        with torch.no_grad():
            model[0].weight.fill_(2.0)
            model[1].weight.fill_(3.0)
        model[1].register_full_backward_hook(lambda module, grad_in, grad_out: (grad_in[0] * 10,))
        model(torch.ones(1, 1)).sum().backward()
        held = model[0].weight.grad.item()
    """)
    assert run.program["held"] == 30.0
    [written] = run.history(run.id("model.0.weight"))
    assert written.after.items == (30.0,)
    assert [term.value.items for term in written.contributions] == [(30.0,)]


def test_grad_scaler_unscales() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(w * 2).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    """)
    assert run.story("w") == ["line 5: None -> 16 = 16 through w * 2", "line 6: 16 -> 2 by unscale_"]


def test_grad_scaler_step_unscales_by_itself() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(w * 2).backward()
        scaler.step(optimizer)
        scaler.update()
    """)
    assert run.story("w") == ["line 5: None -> 16 = 16 through w * 2", "line 6: 16 -> 2 by unscale_"]


def test_gradient_copied_from_another_model() -> None:
    run = record("""
        a, b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        a(torch.ones(1, 1)).sum().backward()
        for mine, theirs in zip(b.parameters(), a.parameters()):
            mine.grad = theirs.grad
    """)
    assert run.story("b.weight") == ["line 5: None -> [1] by assignment"]
    assert len(run.story("a.weight")) == 1


def test_buffer_shared_by_two_leaves_changes_for_both() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(3.0, requires_grad=True)
        w.grad = v.grad = torch.tensor(1.0)
        (w * 2).backward()
    """)
    assert run.story("w")[0] == run.story("v")[0]
    assert run.story("w")[-1] == "line 5: 1 -> 3 = 2 through w * 2"
    assert run.story("v")[-1].endswith("1 -> 3 by unseen")
