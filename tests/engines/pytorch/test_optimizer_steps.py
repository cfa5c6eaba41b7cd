"""Optimizers: groups, steps, what moved and what was skipped."""

import pytest
from recording import record

from whygrad.ledger.events import DataChanged, Optimizer, OptimizerStepped

BACKWARD = """
w = torch.tensor(3.0, requires_grad=True)
v = torch.tensor(5.0, requires_grad=True)
(w * 2).backward()
"""


def test_step_tells_gradient_change_and_value() -> None:
    run = record(BACKWARD + "optimizer = torch.optim.SGD([w], lr=0.5)\noptimizer.step()")
    stepped = run.one(OptimizerStepped)
    [update] = stepped.updates
    assert (update.tensor, update.grad.scalar, update.change, update.after.scalar) == (run.id("w"), 2.0, 1.0, 2.0)
    assert update.changed
    assert stepped.lr == (0.5,)
    assert run.line(stepped.site) == 6


def test_parameter_without_gradient_is_skipped() -> None:
    run = record(BACKWARD + "torch.optim.SGD([w, v], lr=0.5).step()")
    stepped = run.one(OptimizerStepped)
    assert [update.tensor for update in stepped.updates] == [run.id("w")]
    assert stepped.skipped == (run.id("v"),)


def test_momentum_moves_a_parameter_whose_gradient_is_zero() -> None:
    run = record(
        BACKWARD
        + "optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.9)\noptimizer.step()\nw.grad.zero_()\noptimizer.step()"
    )
    _first, second = run.all(OptimizerStepped)
    assert second.updates[0].grad.scalar == 0.0
    assert second.updates[0].changed
    assert round(second.updates[0].change, 4) == 0.9


def test_learning_rate_of_zero_moves_nothing() -> None:
    run = record(BACKWARD + "torch.optim.SGD([w], lr=0.0).step()")
    [update] = run.one(OptimizerStepped).updates
    assert (update.changed, update.change) == (False, 0.0)


def test_update_below_the_resolution_of_the_dtype_moves_nothing() -> None:
    run = record("""
        w = torch.ones(4, dtype=torch.bfloat16, requires_grad=True)
        w.sum().backward()
        torch.optim.SGD([w], lr=1e-5).step()
    """)
    [update] = run.one(OptimizerStepped).updates
    assert not update.changed


def test_groups_have_their_options() -> None:
    run = record("""
        w, v = (torch.tensor(3.0, requires_grad=True) for _ in range(2))
        optimizer = torch.optim.Adam([{"params": [w], "lr": 0.5}, {"params": [v]}], lr=0.1, betas=(0.5, 0.9))
    """)
    *_, known = run.of(Optimizer)
    assert (known.kind, known.name) == ("Adam", "optimizer")
    assert [group.parameters for group in known.groups] == [(run.id("w"),), (run.id("v"),)]
    assert [group.options["lr"] for group in known.groups] == [0.5, 0.1]
    assert known.groups[0].options["betas"] == [0.5, 0.9]


def test_optimizer_is_one_however_often_it_is_described() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        again = optimizer
    """)
    assert len({known.id for known in run.of(Optimizer)}) == 1


def test_group_added_later() -> None:
    run = record("""
        w, v = (torch.tensor(3.0, requires_grad=True) for _ in range(2))
        optimizer = torch.optim.SGD([w], lr=0.1)
        optimizer.add_param_group({"params": [v]})
    """)
    *_, known = run.of(Optimizer)
    assert len(known.groups) == 2
    assert run.line(known.site) == 4
    assert known.name == "optimizer"


def test_several_optimizers_step_on_their_own() -> None:
    run = record("""
        w, v = (torch.tensor(3.0, requires_grad=True) for _ in range(2))
        first, second = torch.optim.SGD([w], lr=0.1), torch.optim.Adam([v], lr=0.1)
        (w * v).backward()
        first.step()
        second.step()
    """)
    one, two = run.all(OptimizerStepped)
    assert (run.optimizer(one.optimizer).name, run.optimizer(two.optimizer).name) == ("first", "second")
    assert [update.tensor for update in one.updates] == [run.id("w")]
    assert [update.tensor for update in two.updates] == [run.id("v")]


def test_steps_are_counted() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (w * 2).backward()
            optimizer.step()
    """)
    assert [stepped.step for stepped in run.of(OptimizerStepped)] == [1, 2, 3]


def test_closure_runs_its_backwards_inside_the_step() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.LBFGS([w], lr=0.5, max_iter=3)
        def closure():
            optimizer.zero_grad()
            loss = w ** 2
            loss.backward()
            return loss
        optimizer.step(closure)
        value = w.item()
    """)
    [stepped] = run.all(OptimizerStepped)
    assert stepped.updates[0].after.scalar == run.program["value"]
    assert len(run.story("w")) >= 3
    assert {line.split(":")[0] for line in run.story("w")} == {"line 5", "line 7"}


def test_adam_step_inside_grad_scaler() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(w * 2).backward()
        scaler.step(optimizer)
        scaler.update()
    """)
    [update] = run.one(OptimizerStepped).updates
    assert update.grad.scalar == 2.0
    assert run.line(run.one(OptimizerStepped).site) == 6


def test_step_that_the_scaler_skips_is_no_step() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(w * float("inf")).backward()
        scaler.step(optimizer)
        scaler.update()
    """)
    assert run.all(OptimizerStepped) == []


def test_scheduler_changes_the_rate_of_the_next_step() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=1.0)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        for _ in range(2):
            (w * 2).backward()
            optimizer.step()
            scheduler.step()
    """)
    assert [stepped.lr for stepped in run.of(OptimizerStepped)] == [(1.0,), (0.5,)]


def test_step_that_raises_is_no_step_and_harms_nothing_after_it() -> None:
    run = record("""
        class Broken(torch.optim.SGD):
            def step(self, closure=None):
                raise ValueError("no")
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        try:
            Broken([w], lr=0.5).step()
        except ValueError:
            pass
        torch.optim.SGD([w], lr=0.5).step()
    """)
    assert run.one(OptimizerStepped).updates[0].after.scalar == 2.0


def test_optimizer_of_the_users_own() -> None:
    run = record("""
        class Own(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {"lr": 0.5})
            @torch.no_grad()
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.sub_(group["lr"] * p.grad)
        w = torch.tensor(3.0, requires_grad=True)
        optimizer = Own([w])
        (w * 2).backward()
        optimizer.step()
    """)
    stepped = run.one(OptimizerStepped)
    assert run.line(stepped.site) == 13
    assert stepped.updates[0].after.scalar == 2.0


def test_parameter_written_by_hand_is_a_change_of_data() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        (w * 2).backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
    """)
    changed = run.one(DataChanged)
    assert (changed.tensor, changed.by, changed.after.scalar, changed.hidden) == (run.id("w"), "sub_", 2.0, False)
    assert (changed.version_before, changed.version) == (0, 1)


@pytest.mark.parametrize(
    ("statement", "by"),
    [
        ("w.data.mul_(2)", ".data.mul_"),
        ("w.data *= 2", ".data.mul_"),
        ("w.data = w.data * 2", ".data"),
        ("w.data[...] = w.data * 2", ".data"),
    ],
)
def test_write_through_data_is_hidden_from_the_version(statement: str, by: str) -> None:
    run = record(f"w = torch.tensor(3.0, requires_grad=True)\n{statement}")
    changed = run.one(DataChanged)
    assert (changed.tensor, changed.by, changed.hidden, changed.after.scalar) == (run.id("w"), by, True, 6.0)
    assert changed.version == changed.version_before == 0


def test_parameter_initialised_under_no_grad() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        with torch.no_grad():
            model.weight.fill_(2.0)
            model.bias.zero_()
    """)
    changes = {run.name(event.tensor): (event.by, event.after.scalar) for event in run.of(DataChanged)}
    assert changes == {"model.weight": ("fill_", 2.0), "model.bias": ("zero_", 0.0)}


def test_item_written_counts_the_version() -> None:
    run = record("""
        x = torch.zeros(3)
        x[1] = 5.0
        x[0] += 1.0
    """)
    changes = [(event.by, event.version, event.after.items) for event in run.of(DataChanged)]
    assert changes == [("setitem", 1, (0.0, 5.0, 0.0)), ("setitem", 2, (1.0, 5.0, 0.0))] or changes[0] == (
        "setitem", 1, (0.0, 5.0, 0.0),
    )  # fmt: skip
    assert changes[-1][2] == (1.0, 5.0, 0.0)


def test_write_into_a_view_writes_its_base() -> None:
    run = record("""
        x = torch.zeros(3)
        v = x[1:]
        v.fill_(7.0)
    """)
    changed = {run.name(event.tensor): event.after.items for event in run.of(DataChanged)}
    assert changed == {"v": (7.0, 7.0), "x": (0.0, 7.0, 7.0)}


def test_write_that_goes_on_from_data() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        w.data.mul_(2).add_(1)
    """)
    changes = [(run.name(event.tensor), event.by, event.hidden, event.after.scalar) for event in run.of(DataChanged)]
    assert changes == [("w", ".data.mul_", True, 6.0), ("w", ".data.add_", True, 7.0)]


@pytest.mark.parametrize(("alias", "by", "hidden"), [("w.data", ".data.mul_", True), ("w.detach()", "mul_", False)])
def test_write_through_an_alias_is_a_write_of_the_leaf(alias: str, by: str, hidden: bool) -> None:
    run = record(f"w = torch.tensor(3.0, requires_grad=True)\nd = {alias}\nd.mul_(2)")
    [changed] = [event for event in run.of(DataChanged) if event.tensor == run.id("w")]
    assert (changed.by, changed.hidden, changed.after.scalar, run.line(changed.site)) == (by, hidden, 6.0, 4)


def test_state_dict_that_is_loaded_is_told_with_its_line() -> None:
    run = record("""
        a, b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        a(torch.ones(1, 1)).sum().backward()
        a.load_state_dict(b.state_dict())
        torch.optim.SGD(a.parameters(), lr=0.1).step()
        loaded = b.weight.item()
    """)
    [changed] = run.of(DataChanged)
    assert (run.name(changed.tensor), changed.by, run.line(changed.site)) == ("a.weight", "Linear.load_state_dict", 4)
    assert changed.after.scalar == run.program["loaded"]


def test_operation_that_only_reads_is_not_blamed_for_a_write_it_sees() -> None:
    run = record("""
        x = torch.zeros(3)
        v = x.detach()
        v.fill_(7.0)
        y = x.sum()
    """)
    changed = {run.name(event.tensor): (event.by, run.line(event.site)) for event in run.of(DataChanged)}
    assert changed == {"v": ("fill_", 4), "x": ("fill_", 4)}
    assert not run.operation("x.sum()").in_place
