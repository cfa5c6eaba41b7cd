"""Training flags and grad modes: every switch, and what each module call ran under."""

import pytest
from recording import Recording, record

from whygrad.ledger.events import GradModeChanged, ModeChanged, ModuleCalled


def modes(run: Recording) -> list[tuple[int | None, str, bool, str]]:
    return [(run.line(event.site), event.by, event.entered, event.mode) for event in run.of(GradModeChanged)]


def calls(run: Recording) -> list[tuple[str, bool, str]]:
    return [(run.module(call.module).path, call.training, call.grad_mode) for call in run.of(ModuleCalled)]


def test_eval_says_which_modules_changed() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5))
        model.eval()
    """)
    changed = run.one(ModeChanged)
    assert (changed.call, changed.training, run.line(changed.site)) == ("eval", False, 3)
    assert changed.changed == (("model", True), ("model.0", True), ("model.1", True))


def test_eval_of_a_part_changes_that_part() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5))
        model[1].eval()
    """)
    assert run.one(ModeChanged).changed == (("model.1", True),)
    assert run.module(run.one(ModeChanged).module).path == "model.1"


def test_train_after_eval_of_a_part_changes_it_back() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5))
        model[1].eval()
        model.train()
    """)
    assert run.all(ModeChanged)[1].changed == (("model.1", False),)


def test_train_of_a_model_that_trains_changes_nothing() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model.train()
    """)
    assert run.one(ModeChanged).changed == ()


def test_train_false_is_eval() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model.train(False)
    """)
    assert run.one(ModeChanged).call == "eval"


def test_module_that_keeps_a_part_in_eval_does_so_in_one_event() -> None:
    run = record("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(1)
                self.head = nn.Linear(1, 1)
            def train(self, mode=True):
                super().train(mode)
                self.norm.eval()
                return self
        net = Net()
        net.eval()
        net.train()
    """)
    flags = {run.module(event.module).path: event.training for event in run.of(ModeChanged)}
    assert flags["net"] is True
    assert not run.program["net"].norm.training
    assert flags["net.norm"] is False


def test_training_flag_set_by_hand_is_noted() -> None:
    run = record("""
        model = nn.Dropout(0.5)
        model.training = False
        model(torch.ones(1))
    """)
    changed = run.one(ModeChanged)
    assert (changed.call, changed.training, changed.changed) == ("training = False", False, (("model", True),))
    assert run.line(changed.site) == 3


def test_each_call_knows_its_training_flag_and_grad_mode() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        x = torch.ones(1, 1)
        model(x)
        model.eval()
        with torch.no_grad():
            model(x)
        model.train()
        with torch.inference_mode():
            model(x)
    """)
    assert calls(run) == [("model", True, "on"), ("model", False, "off"), ("model", True, "inference")]


def test_nested_grad_modes() -> None:
    run = record("""
        with torch.no_grad():
            with torch.enable_grad():
                pass
    """)
    assert modes(run) == [
        (2, "no_grad", True, "off"),
        (3, "enable_grad", True, "on"),
        (3, "enable_grad", False, "off"),
        (2, "no_grad", False, "on"),
    ]


def test_inference_mode() -> None:
    run = record("with torch.inference_mode():\n    x = torch.ones(1)")
    assert modes(run) == [(2, "inference_mode", True, "inference"), (2, "inference_mode", False, "on")]


def test_set_grad_enabled_as_a_context() -> None:
    run = record("with torch.set_grad_enabled(False):\n    x = torch.ones(1)")
    assert modes(run) == [(2, "set_grad_enabled", True, "off"), (2, "set_grad_enabled", False, "on")]


def test_set_grad_enabled_as_a_function() -> None:
    run = record("""
        torch.set_grad_enabled(False)
        torch.set_grad_enabled(True)
    """)
    assert modes(run) == [(2, "set_grad_enabled", True, "off"), (3, "set_grad_enabled", True, "on")]


@pytest.mark.parametrize(("name", "mode"), [("no_grad", "off"), ("enable_grad", "on"), ("inference_mode", "inference")])
def test_decorator(name: str, mode: str) -> None:
    run = record(f"""
        @torch.{name}()
        def predict(x):
            return x * 2
        predict(torch.ones(1))
    """)
    assert modes(run) == [(5, name, True, mode), (5, name, False, "on")]


def test_decorator_without_parentheses() -> None:
    run = record("""
        @torch.no_grad
        def predict(x):
            return x * 2
        predict(torch.ones(1))
    """)
    assert modes(run) == [(5, "no_grad", True, "off"), (5, "no_grad", False, "on")]


def test_decorated_generator_keeps_the_mode_inside() -> None:
    run = record("""
        w = torch.ones(1, requires_grad=True)
        @torch.no_grad()
        def numbers():
            yield w * 2
            yield w * 3
        kept = [x.requires_grad for x in numbers()]
        y = w * 4
    """)
    assert run.program["kept"] == [False, False]
    assert run.operation("w * 2").cut == run.operation("w * 3").cut == "no_grad"
    assert run.operation("w * 4").cut == ""


def test_grad_modes_of_libraries_are_not_the_programs() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    """)
    assert modes(run) == []


def test_mode_left_by_an_exception() -> None:
    run = record("""
        try:
            with torch.no_grad():
                raise ValueError("out")
        except ValueError:
            pass
    """)
    assert [(by, entered, mode) for _, by, entered, mode in modes(run)] == [
        ("no_grad", True, "off"),
        ("no_grad", False, "on"),
    ]


def test_eval_does_not_touch_the_grad_mode() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model.eval()
        y = model(torch.ones(1, 1))
    """)
    assert modes(run) == []
    assert calls(run) == [("model", False, "on")]
    assert run.program["y"].requires_grad
