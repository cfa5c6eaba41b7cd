"""What surrounds a training step: schedules, clipping, loss scaling, autocast, states and conversions."""

import pytest
from recording import Recording, record

from whygrad.ledger.events import (
    AutocastChanged,
    Clipped,
    Converted,
    DataChanged,
    LossScaled,
    Module,
    Optimizer,
    SchedulerStepped,
    StateMoved,
    StepsFolded,
)

MODEL = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(4, 2)
"""


def module(run: Recording, path: str) -> Module:
    *_, found = (event for event in run.of(Module) if event.path == path)
    return found


def test_scheduler_steps_have_the_rates_before_and_after() -> None:
    run = record(
        MODEL
        + """
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
model(x).sum().backward()
optimizer.step()
scheduler.step()
"""
    )
    built, stepped = run.all(SchedulerStepped)
    assert (built.built, built.before, built.after) == (True, (0.1,), (0.1,))
    assert (stepped.built, stepped.before, stepped.after) == (False, (0.1,), (0.05,))
    assert (stepped.kind, run.line(stepped.site)) == ("StepLR", 10)
    assert run.optimizer(stepped.optimizer).name == "optimizer"


@pytest.mark.parametrize(
    ("scheduler", "call"),
    [
        ("ReduceLROnPlateau(optimizer, patience=0)", "scheduler.step(1.0)"),
        ("CosineAnnealingWarmRestarts(optimizer, 10)", "scheduler.step()"),
        ("OneCycleLR(optimizer, 0.1, total_steps=10)", "scheduler.step()"),
    ],
)
def test_schedulers_with_steps_of_their_own(scheduler: str, call: str) -> None:
    run = record(MODEL + f"scheduler = torch.optim.lr_scheduler.{scheduler}\noptimizer.step()\n{call}\n")
    last = run.all(SchedulerStepped)[-1]
    assert last.kind == scheduler.split("(", maxsplit=1)[0]
    assert not last.built


def test_scheduler_in_a_long_loop_is_written_a_bounded_number_of_times() -> None:
    run = record(
        MODEL
        + """
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
for _ in range(500):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    scheduler.step()
""",
        "auto",
    )
    assert len(run.all(SchedulerStepped)) < 230


def test_clipping_tells_its_limit_the_norm_and_what_it_saw() -> None:
    run = record(
        MODEL
        + """
model(x).sum().backward()
frozen = nn.Parameter(torch.ones(1))
norm = nn.utils.clip_grad_norm_([*model.parameters(), frozen], 0.5)
"""
    )
    clipped = run.one(Clipped)
    assert (clipped.by, clipped.parameters, clipped.with_grad, clipped.limit) == ("clip_grad_norm_", 5, 4, 0.5)
    assert clipped.norm == pytest.approx(run.program["norm"].item())


def test_clipping_by_an_exhausted_generator_saw_nothing() -> None:
    run = record(
        MODEL
        + """
import warnings
model(x).sum().backward()
parameters = model.parameters()
list(parameters)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    nn.utils.clip_grad_norm_(parameters, 1.0)
"""
    )
    assert (run.one(Clipped).parameters, run.one(Clipped).with_grad) == (0, 0)


def test_clipping_by_value() -> None:
    run = record(MODEL + "model(x).sum().backward()\nnn.utils.clip_grad_value_(model.parameters(), 0.25)\n")
    clipped = run.one(Clipped)
    assert (clipped.by, clipped.limit, clipped.with_grad, clipped.norm) == ("clip_grad_value_", 0.25, 4, None)


def test_scaled_loss_and_autocast() -> None:
    run = record(
        MODEL
        + """
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = model(x).sum()
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
scaler.step(optimizer)
scaler.update()
"""
    )
    assert [event.call for event in run.of(LossScaled)] == ["scale", "unscale_", "step", "update"]
    assert {event.factor for event in run.of(LossScaled)} == {8.0}
    assert [event.optimizer for event in run.of(LossScaled)] == [None, 1, 1, None]
    assert [(event.entered, event.device, event.dtype, event.enabled) for event in run.of(AutocastChanged)] == [
        (True, "cpu", "bfloat16", True),
        (False, "cpu", "bfloat16", False),
    ]


def test_state_taken_and_loaded() -> None:
    run = record(
        MODEL
        + """
best = model.state_dict()
other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
other(x)
other.load_state_dict(best)
optimizer.load_state_dict(optimizer.state_dict())
"""
    )
    told = [
        (event.call, event.module and run.module(event.module).path, event.optimizer) for event in run.of(StateMoved)
    ]
    assert told == [
        ("state_dict", "model", None),
        ("load_state_dict", "other", None),
        ("state_dict", None, 1),
        ("load_state_dict", None, 1),
    ]
    written = [(run.name(event.tensor), event.by) for event in run.of(DataChanged)]
    assert ("other.0.weight", "Sequential.load_state_dict") in written
    assert len(written) == 4


def test_parameter_that_is_written_by_copy() -> None:
    run = record(MODEL + "with torch.no_grad():\n    model[0].bias.copy_(torch.zeros(2))\n")
    assert [(run.name(event.tensor), event.by) for event in run.of(DataChanged)] == [("model.0.bias", "copy_")]


def test_converted_parameters_have_another_dtype() -> None:
    run = record(MODEL + "model(x)\nmodel.to(torch.float64)\n")
    assert [(run.name(event.tensor), event.dtype, event.by) for event in run.of(Converted)] == [
        (name, "float64", "Sequential.to")
        for name in ("model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias")
    ]


def test_group_added_while_recording_is_light() -> None:
    run = record(
        MODEL
        + """
extra = nn.Parameter(torch.ones(1))
for step in range(60):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    if step == 40:
        optimizer.add_param_group({"params": [extra], "lr": 0.5})
""",
        "light",
    )
    groups = run.all(Optimizer)[-1].groups
    assert [group.options["lr"] for group in groups] == [0.1, 0.5]
    assert groups[1].parameters == (run.id("extra"),)
    assert sum(fold.optimizer_steps for fold in run.of(StepsFolded)) == 60


def test_module_has_its_class_its_parent_and_its_options() -> None:
    run = record("""
        class Head(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.width = width
                self.rate = 0.5
                self.sizes = (1, 2)
                self.names = {"a": 1}
                self.loss = nn.CrossEntropyLoss(reduction="sum", ignore_index=-1, label_smoothing=0.1)
                self.softmax = nn.Softmax(dim=0)
                self.norm = nn.BatchNorm1d(3)
        head = Head(3)
        head.norm(torch.ones(2, 3))
    """)
    head = module(run, "head")
    assert head.options == {"width": 3, "rate": 0.5, "sizes": [1, 2]}
    assert (head.kind, head.home, head.parent) == ("Head", "__main__", None)
    loss = module(run, "head.loss")
    assert (loss.home, loss.parent) == ("torch.nn.modules.loss", head.id)
    assert loss.options == {"reduction": "sum", "ignore_index": -1, "label_smoothing": 0.1}
    assert module(run, "head.softmax").options == {"dim": 0}
    norm = module(run, "head.norm")
    assert norm.options["momentum"] == 0.1
    assert [name for name, _ in norm.buffers] == ["running_mean", "running_var", "num_batches_tracked"]
