"""How closely a loop is looked at: fully at first and when something is new, lightly otherwise."""

import itertools

import pytest
from recording import Recording, record

from whygrad.ledger.events import (
    BackwardBegan,
    BufferFold,
    DepthChanged,
    GradWritten,
    ModuleCalled,
    Node,
    Operation,
    OptimizerStepped,
    StepsFolded,
)

LOOP = """
torch.manual_seed(0)
model = nn.Linear(2, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(4, 2), torch.randn(4, 1)
norms, losses = [], []
for step in range({steps}):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    norms.append(model.weight.grad.norm().item())
    losses.append(loss.item())
    optimizer.step()
"""


def loop(steps: int, depth: str = "auto", more: str = "") -> Recording:
    return record(LOOP.format(steps=steps) + more, depth)


def depths(run: Recording) -> list[str]:
    return [event.depth for event in run.of(DepthChanged)]


def folded(run: Recording, name: str) -> list[BufferFold]:
    tensor = run.id(name)
    return [fold for event in run.of(StepsFolded) for fold in event.buffers if fold.tensor == tensor]


def writes(run: Recording, name: str) -> int:
    seen = sum(isinstance(event, GradWritten) for event in run.history(run.id(name)))
    return seen + sum(fold.writes for fold in folded(run, name))


def resets(run: Recording, name: str) -> int:
    seen = sum(type(event).__name__ == "GradReset" for event in run.history(run.id(name)))
    return seen + sum(fold.resets for fold in folded(run, name))


def test_short_program_is_recorded_fully() -> None:
    run = loop(4)
    assert depths(run) == []
    assert len(run.all(OptimizerStepped)) == 4
    assert run.all(StepsFolded) == []


def test_long_loop_is_recorded_lightly_after_its_first_steps() -> None:
    run = loop(300)
    assert depths(run) == ["light"]
    assert 4 <= len(run.all(OptimizerStepped)) <= 8


def test_folds_and_full_steps_make_up_all_steps() -> None:
    run = loop(300)
    assert len(run.all(OptimizerStepped)) + sum(fold.optimizer_steps for fold in run.of(StepsFolded)) == 300
    assert len(run.all(BackwardBegan)) + sum(fold.backwards for fold in run.of(StepsFolded)) == 300
    assert writes(run, "model.weight") == 300


def test_resets_are_counted() -> None:
    run = loop(300)
    # the first zero_grad finds no buffer
    assert resets(run, "model.weight") == 299


def test_resets_by_a_module_are_counted() -> None:
    run = record(LOOP.format(steps=300).replace("optimizer.zero_grad()", "model.zero_grad()"), "auto")
    assert resets(run, "model.weight") == 299


def test_resets_by_assignment_are_counted() -> None:
    run = record(LOOP.format(steps=300).replace("optimizer.zero_grad()", "model.weight.grad = None"), "auto")
    assert resets(run, "model.weight") == 299


def test_resets_by_zeroing_are_counted() -> None:
    source = LOOP.format(steps=300).replace("optimizer.zero_grad()", "step and model.weight.grad.zero_()")
    run = record(source, "auto")
    assert resets(run, "model.weight") == 299


def test_missing_reset_is_no_reset() -> None:
    run = record(LOOP.format(steps=300).replace("optimizer.zero_grad()", "pass"), "auto")
    assert resets(run, "model.weight") == 0
    assert writes(run, "model.weight") == 300


def test_stretch_covers_the_steps_between() -> None:
    run = loop(300)
    [fold] = run.all(StepsFolded)
    full = [event.step for event in run.of(OptimizerStepped)]
    assert (fold.first, fold.last) == (max(full) + 1, 300)


def test_losses_of_folded_steps_are_those_of_the_program() -> None:
    run = loop(300)
    [fold] = run.all(StepsFolded)
    losses = run.program["losses"][fold.first - 1 :]
    assert fold.loss_first == pytest.approx(losses[0])
    assert fold.loss_last == pytest.approx(losses[-1])
    assert fold.loss_low == pytest.approx(min(losses))
    assert fold.loss_high == pytest.approx(max(losses))


def test_norms_of_folded_steps_are_among_those_of_the_program() -> None:
    run = loop(300)
    [event] = run.all(StepsFolded)
    [fold] = folded(run, "model.weight")
    norms = run.program["norms"][event.first - 1 :]
    assert fold.sampled > 0
    for norm in (fold.norm_first, fold.norm_last, fold.norm_low, fold.norm_high):
        assert min(abs(norm - true) for true in norms) < 1e-5
    assert min(norms) - 1e-6 <= fold.norm_low <= fold.norm_high <= max(norms) + 1e-6


def test_long_stretch_is_written_piece_by_piece() -> None:
    run = loop(2500)
    assert len(run.all(StepsFolded)) == 3
    pieces = [(fold.first, fold.last) for fold in run.of(StepsFolded)]
    assert all(later[0] == earlier[1] + 1 for earlier, later in itertools.pairwise(pieces))
    assert pieces[-1][1] == 2500


def test_events_of_ten_thousand_steps_are_bounded() -> None:
    run = loop(10_000)
    assert len(run.events) < 600
    assert writes(run, "model.weight") == 10_000


def test_new_shape_is_looked_at_fully() -> None:
    run = loop(50, more="x, y = torch.randn(3, 2), torch.randn(3, 1)\n" + _again(20))
    assert depths(run)[:2] == ["light", "full"]
    assert any(call.inputs[0].shape == (3, 2) for call in run.of(ModuleCalled))


def test_eval_is_looked_at_fully() -> None:
    run = loop(50, more="model.eval()\nwith torch.no_grad():\n    out = model(x)\n")
    calls = [(call.training, call.grad_mode) for call in run.of(ModuleCalled)]
    assert calls[-1] == (False, "off")
    assert run.operation("F.mse_loss(model(x), y)").node is not None


def test_unfrozen_parameter_is_looked_at_fully() -> None:
    run = loop(
        50,
        more="model.weight.requires_grad_(False)\nbias = nn.Parameter(torch.zeros(1))\n" + _again(3, "model(x) + bias"),
    )
    assert run.story("bias") != []


def test_new_optimizer_is_looked_at_fully() -> None:
    run = loop(50, more="optimizer = torch.optim.Adam(model.parameters())\n" + _again(3))
    assert {run.optimizer(event.optimizer).kind for event in run.of(OptimizerStepped)} == {"SGD", "Adam"}


def test_backward_from_a_new_line_is_looked_at_fully() -> None:
    run = loop(50, more="(model(x) ** 2).sum().backward()\n")
    last = run.all(BackwardBegan)[-1]
    assert run.code(last.site) == "(model(x) ** 2).sum().backward()"


def test_loss_that_is_not_finite_is_looked_at_fully() -> None:
    run = record(
        LOOP.format(steps=60).replace(
            "loss.backward()", "loss = loss * (float('nan') if step == 50 else 1.0); loss.backward()"
        ),
        "auto",
    )
    roots = [began.root_value.scalar for began in run.of(BackwardBegan)]
    assert "nan" in roots


def test_return_to_light_after_what_was_new() -> None:
    run = loop(50, more="x, y = torch.randn(3, 2), torch.randn(3, 1)\n" + _again(50))
    assert depths(run)[-1] == "light"
    assert writes(run, "model.weight") == 100


def test_buffer_at_the_switch_to_full_is_the_programs() -> None:
    run = record(
        LOOP.format(steps=50)
        + "held = model.weight.grad.clone()\nx, y = torch.randn(3, 2), torch.randn(3, 1)\n"
        + "loss = F.mse_loss(model(x), y)\nloss.backward()\n",
        "auto",
    )
    *_, last = run.history(run.id("model.weight"))
    assert last.before.items == pytest.approx(run.program["held"].flatten().tolist())


def test_light_from_the_start_counts_everything() -> None:
    run = loop(100, "light")
    assert depths(run) == []
    assert run.all(Operation) == []
    [fold] = run.all(StepsFolded)
    assert (fold.first, fold.last, fold.backwards, fold.optimizer_steps) == (1, 100, 100, 100)
    assert fold.loss_last == pytest.approx(run.program["losses"][-1])


def test_light_from_the_start_counts_writes_and_resets_of_each_buffer() -> None:
    run = loop(100, "light")
    [fold] = run.all(StepsFolded)
    [buffer] = fold.buffers
    assert (buffer.writes, buffer.resets) == (100, 99)
    assert buffer.sampled > 0


def test_full_is_full_to_the_end() -> None:
    run = loop(100, "full")
    assert len(run.all(OptimizerStepped)) == 100
    assert run.all(StepsFolded) == []


def test_micro_batches_are_counted_as_writes() -> None:
    run = record(
        """
        torch.manual_seed(0)
        model = nn.Linear(2, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(100):
            for _ in range(4):
                (model(torch.ones(1, 2)).sum() / 4).backward()
            optimizer.step()
            optimizer.zero_grad()
    """,
        "auto",
    )
    assert writes(run, "model.weight") == 400
    assert resets(run, "model.weight") == 100
    assert len(run.all(BackwardBegan)) + sum(fold.backwards for fold in run.of(StepsFolded)) == 400


def test_loop_without_an_optimizer_is_folded_too() -> None:
    run = record(
        """
        w = torch.tensor(1.0, requires_grad=True)
        for _ in range(2000):
            (w * 2).backward()
            with torch.no_grad():
                w -= 0.001 * w.grad
            w.grad = None
    """,
        "auto",
    )
    assert len(run.events) < 600
    assert writes(run, "w") == 2000
    assert resets(run, "w") == 2000


def test_two_losses_that_take_turns_are_both_counted() -> None:
    run = record(
        """
        g, d = nn.Linear(1, 1), nn.Linear(1, 1)
        og, od = torch.optim.SGD(g.parameters(), lr=0.01), torch.optim.SGD(d.parameters(), lr=0.01)
        x = torch.ones(2, 1)
        for _ in range(100):
            od.zero_grad()
            d(g(x).detach()).mean().backward()
            od.step()
            og.zero_grad()
            d(g(x)).mean().backward()
            og.step()
    """,
        "auto",
    )
    assert writes(run, "d.weight") == 200
    assert writes(run, "g.weight") == 100
    assert len(run.all(OptimizerStepped)) + sum(fold.optimizer_steps for fold in run.of(StepsFolded)) == 200


def test_long_loop_without_gradients_is_bounded() -> None:
    run = record(
        """
        x = torch.ones(2)
        for i in range(5000):
            x = x * 0.999
    """,
        "auto",
        loses="expressions that ran very often",
    )
    assert len(run.events) < 1500


def _again(steps: int, output: str = "model(x)") -> str:
    return f"""
for step in range({steps}):
    optimizer.zero_grad()
    loss = F.mse_loss({output}, y)
    loss.backward()
    optimizer.step()
"""


def test_one_training_function_for_two_models_counts_each() -> None:
    run = record(
        """
        g, d = nn.Linear(1, 1), nn.Linear(1, 1)
        og, od = torch.optim.SGD(g.parameters(), lr=0.01), torch.optim.SGD(d.parameters(), lr=0.01)
        x = torch.ones(2, 1)
        def step(loss, optimizer):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for _ in range(100):
            step(d(g(x).detach()).mean(), od)
            step(d(g(x)).mean(), og)
    """,
        "auto",
    )
    assert (writes(run, "d.weight"), writes(run, "g.weight")) == (200, 100)


def test_module_made_anew_in_each_step_is_nothing_new() -> None:
    run = record(LOOP.format(steps=300).replace("F.mse_loss(", "nn.MSELoss()("), "auto")
    assert depths(run) == ["light"]
    assert writes(run, "model.weight") == 300


def test_zero_grad_without_buffers_is_no_reset() -> None:
    run = record(
        LOOP.format(steps=300).replace("optimizer.zero_grad()", "optimizer.zero_grad(); model.zero_grad()"), "auto"
    )
    assert resets(run, "model.weight") == 299


def test_parameter_that_is_never_used_is_never_reset() -> None:
    run = record(
        LOOP.format(steps=300)
        .replace("\noptimizer =", "\nunused = nn.Parameter(torch.ones(1))\noptimizer =", 1)
        .replace("model.parameters()", "[*model.parameters(), unused]"),
        "auto",
    )
    assert (writes(run, "unused"), resets(run, "unused")) == (0, 0)


def test_gradient_kept_by_zeroing_counts_its_resets() -> None:
    run = record(LOOP.format(steps=300).replace("zero_grad()", "zero_grad(set_to_none=False)"), "auto")
    assert resets(run, "model.weight") == 299


def test_model_made_while_recording_is_light_has_its_names() -> None:
    run = loop(
        100,
        more="second = nn.Sequential(nn.Linear(2, 1))\n"
        + _again(3, "second(x)")
        .replace("optimizer", "other")
        .replace("\nfor", "\nother = torch.optim.SGD(second.parameters(), lr=0.1)\nfor", 1),
    )
    assert len(run.story("second.0.weight")) >= 3
    assert run.optimizer(run.all(OptimizerStepped)[-1].optimizer).name == "other"


def test_scheduler_and_gradient_clipping_do_not_keep_a_loop_from_being_light() -> None:
    source = LOOP.format(steps=300).replace(
        "    optimizer.step()",
        "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n    scheduler.step()",
    )
    run = record(
        source.replace("\nx, y =", "\nscheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)\nx, y =", 1), "auto"
    )
    assert depths(run) == ["light"]


def test_evaluation_between_epochs_returns_to_light() -> None:
    run = record(
        """
        torch.manual_seed(0)
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(20):
            model.train()
            for _ in range(20):
                optimizer.zero_grad()
                model(torch.ones(4, 2)).sum().backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for _ in range(5):
                    model(torch.ones(4, 2))
    """,
        "auto",
    )
    assert writes(run, "model.weight") == 400
    assert len(run.events) < 1500
    assert depths(run)[-1] == "light"


def test_losses_of_two_lines_are_told_apart() -> None:
    run = record(
        """
        w = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.0)
        for _ in range(100):
            (w * 2).backward()
            (w * 5).backward()
            optimizer.step()
            optimizer.zero_grad()
    """,
        "auto",
    )
    fold = run.all(StepsFolded)[-1]
    assert (fold.loss_first, fold.loss_last, fold.loss_low, fold.loss_high) == (2.0, 2.0, 2.0, 2.0)
    assert [(run.code(each.site), each.backwards, each.loss_low, each.loss_high) for each in fold.passes] == [
        ("(w * 2).backward()", fold.backwards // 2, 2.0, 2.0),
        ("(w * 5).backward()", fold.backwards // 2, 5.0, 5.0),
    ]
    assert writes(run, "w") == 200


def test_losses_of_two_nets_trained_by_one_function_are_told_apart() -> None:
    run = record(
        """
        nets = [nn.Linear(1, 1, bias=False) for _ in range(2)]
        for net, value in zip(nets, (2.0, 5.0)):
            nn.init.constant_(net.weight, value)
        def train(net):
            net(torch.ones(1, 1)).sum().backward()
            net.weight.grad = None
        for _ in range(50):
            for net in nets:
                train(net)
    """,
        "auto",
    )
    fold = run.all(StepsFolded)[-1]
    assert sorted((each.loss_first, each.loss_last) for each in fold.passes) == [(2.0, 2.0), (5.0, 5.0)]


def test_optimizer_that_is_gone_before_the_end_did_reset() -> None:
    run = record(
        """
        torch.manual_seed(0)
        model = nn.Linear(2, 1, bias=False)
        x, y = torch.randn(4, 2), torch.randn(4, 1)
        def train():
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for _ in range(300):
                optimizer.zero_grad()
                F.mse_loss(model(x), y).backward()
                optimizer.step()
        train()
        """,
        "auto",
    )
    assert writes(run, "model.weight") == 300
    assert resets(run, "model.weight") == 299


def test_model_that_is_gone_before_the_end_did_reset() -> None:
    run = record(
        """
        def train():
            model = nn.Linear(2, 1, bias=False)
            for _ in range(300):
                model.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
        train()
        """,
        "auto",
    )
    assert resets(run, "model.weight") == 299


@pytest.mark.parametrize("depth", ["auto", "light"])
def test_nets_trained_one_after_another_are_folded_apart(depth: str) -> None:
    run = record(
        """
        def train(rate):
            model = nn.Linear(2, 1, bias=False)
            optimizer = torch.optim.SGD(model.parameters(), lr=rate)
            for _ in range(100):
                optimizer.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        for rate in (0.1, 0.01, 0.001):
            train(rate)
        """,
        depth,
    )
    folds = run.all(StepsFolded)
    tensors = [[buffer.tensor for buffer in fold.buffers] for fold in folds]
    assert len(tensors) == 3
    assert len({tensor for [tensor] in tensors}) == 3
    assert all(fold.buffers[0].writes == fold.backwards for fold in folds)
    assert all(fold.buffers[0].resets >= fold.backwards - 1 for fold in folds)


UPDATED_BY_HAND = """
w = torch.ones(2, requires_grad=True)
for _ in range(300):
    loss = (w * 3).sum()
    loss.backward()
    w = (w - 0.01 * w.grad).detach().requires_grad_()
"""


@pytest.mark.parametrize("depth", ["auto", "light"])
def test_leaf_made_anew_in_each_step_is_one_of_many(depth: str) -> None:
    run = record(UPDATED_BY_HAND + "last = (w * 3).sum()\nlast.backward()\n", depth)
    buffers = [buffer for fold in run.of(StepsFolded) for buffer in fold.buffers]
    full = sum(isinstance(event, GradWritten) for leaf in run.leaves() for event in run.history(leaf))
    assert full + sum(buffer.writes + buffer.others_writes for buffer in buffers) == 301
    assert all(buffer.writes <= 1 for buffer in buffers)
    assert sum(buffer.others for buffer in buffers) == sum(buffer.others_writes for buffer in buffers)
    assert len(run.events) < 500


def test_leaf_made_anew_in_each_step_leaves_none_that_no_backward_reached() -> None:
    run = record(UPDATED_BY_HAND, "auto")
    folded_ = {buffer.tensor for fold in run.of(StepsFolded) for buffer in fold.buffers}
    untouched = [leaf for leaf in run.leaves() if leaf not in folded_ and not list(run.history(leaf))]
    assert [run.name(leaf) for leaf in untouched] == ["w"]  # the last one, which no backward reached indeed
    assert untouched == [run.id("w")]


def test_each_leaf_of_many_that_one_line_uses_is_counted() -> None:
    run = record(
        """
        leaves = [torch.ones(1, requires_grad=True) for _ in range(40)]
        for w in leaves:
            (w * 2).sum().backward()
        """,
        "auto",
    )
    buffers = [buffer for fold in run.of(StepsFolded) for buffer in fold.buffers]
    assert [(buffer.writes, buffer.others) for buffer in buffers] == [(1, 0)] * len(buffers)
    assert len(buffers) + len(run.all(GradWritten)) == 40


def test_nodes_of_a_call_made_before_recording_woke_have_its_line() -> None:
    run = loop(50, more="out = model(x)\n(out ** 2).sum().backward()\n")
    last = run.all(BackwardBegan)[-1]
    made = {node.name: run.code(node.site) for node in run.of(Node) if node.step == last.step}
    assert made["MmBackward0"] == made["TBackward0"] == "model(x)"


def test_nodes_that_nobody_saw_being_made_have_no_line() -> None:
    run = record(
        LOOP.format(steps=60).replace("loss.backward()", "(loss * (float('nan') if step == 50 else 1.0)).backward()"),
        "auto",
    )
    began = next(event for event in run.of(BackwardBegan) if event.root_value.scalar == "nan")
    made = {node.name: run.code(node.site) for node in run.of(Node) if node.step == began.step}
    assert made["MmBackward0"] == made["TBackward0"] == "model(x)"
    assert made["MseLossBackward0"] == ""
