"""A failure of the recorder is told, never raised; when it is over everything is as it was found."""

import sys
import warnings
from typing import Any

import pytest
import torch
from recording import record

from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.operations import Operations
from whygrad.engines.pytorch.values import Reader
from whygrad.ledger.events import BackwardBegan, BackwardEnded, Ended, GradReset, GradWritten, Lost, Node, Noted

PROGRAM = """
w = torch.tensor(3.0, requires_grad=True)
y = w * 2
y.backward()
held = w.grad.item()
"""


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a defect of ours")


@pytest.mark.parametrize(
    ("kind", "method"),
    [(Operations, "result"), (Grads, "remember"), (Grads, "observe_all"), (Reader, "read")],
)
def test_failure_of_the_recorder_becomes_an_event(kind: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, method, broken)
    run = record(PROGRAM, loses="a defect of ours")
    assert run.program["held"] == 2.0
    assert run.all(Ended)


def test_same_failure_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Operations, "result", broken)
    run = record("w = torch.ones(1)\nfor _ in range(100):\n    w = w * 2", loses="a defect of ours")
    assert len(run.all(Lost)) == 1


def test_failure_at_the_start_of_a_backward_does_not_confuse_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    from whygrad.engines.pytorch.graph import Graph

    walk, times = Graph.walk, []

    def sometimes(*args: Any) -> Any:
        times.append(1)
        if len(times) == 1:
            raise RuntimeError("a defect of ours")
        return walk(*args)

    monkeypatch.setattr(Graph, "walk", sometimes)
    run = record(PROGRAM + "(w * 5).backward()", loses="a defect of ours")
    assert [ended.error for ended in run.of(BackwardEnded)] == [""]
    assert run.story("w")[-1] == "line 6: 2 -> 7 = 5 through w * 5"


def functions() -> dict[str, Any]:
    """The Python functions of torch (and one of warnings) that get probes, and their code."""
    module = torch.nn.Module
    known = {
        "call": module._wrapped_call_impl,
        "train": module.train,
        "module zero_grad": module.zero_grad,
        "engine": torch.autograd.graph._engine_run_backward,
        "init": torch.optim.Optimizer.__init__,
        "zero_grad": torch.optim.Optimizer.zero_grad,
        "clip": torch.nn.utils.clip_grad_norm_,
        "unscale": torch.amp.GradScaler.unscale_,
        "seed": torch.random.manual_seed,
        "no_grad": torch.no_grad.__enter__,
        "set_grad_enabled": torch.set_grad_enabled.__init__,
        "compile": torch.compile,
        "warnings": warnings._showwarnmsg,  # type: ignore[attr-defined]
    }
    import inspect

    return {name: inspect.unwrap(function).__code__ for name, function in known.items()}


def test_everything_is_as_it_was_found_when_a_run_is_over() -> None:
    before, finders, filters = functions(), list(sys.meta_path), list(warnings.filters)
    from torch.optim import optimizer as module

    hooks = dict(module._global_optimizer_pre_hooks), dict(module._global_optimizer_post_hooks)
    record(PROGRAM)
    assert functions() == before
    assert sys.meta_path == finders
    assert warnings.filters == filters
    assert (dict(module._global_optimizer_pre_hooks), dict(module._global_optimizer_post_hooks)) == hooks


def test_everything_is_as_it_was_found_when_the_program_raised() -> None:
    before = functions()
    record("raise ValueError('out')", raises=ValueError)
    assert functions() == before


def test_functions_are_probed_while_a_program_runs() -> None:
    before = functions()
    run = record("""
        import inspect
        code = inspect.unwrap(nn.Module._wrapped_call_impl).__code__
    """)
    assert run.program["code"] is not before["call"]


def test_two_runs_one_after_the_other_know_nothing_of_each_other() -> None:
    record(PROGRAM)
    run = record(PROGRAM)
    assert run.story("w") == ["line 4: None -> 2 = 2 through w * 2"]


def test_graph_made_in_one_run_and_used_in_the_next() -> None:
    first = record("w = torch.tensor(3.0, requires_grad=True)\ny = w ** 2")
    run = record("y.backward()", y=first.program["y"])
    assert run.one(GradWritten).after.scalar == 6.0
    assert run.one(GradWritten).contributions[0].node == run.one(Node).id
    assert run.node(run.one(BackwardBegan).root_nodes[0]).name == "PowBackward0"


def test_recording_keeps_no_tensor_alive() -> None:
    run = record("""
        import weakref, gc
        w = torch.ones(1, requires_grad=True)
        y = w * 2
        y.sum().backward()
        seen = weakref.ref(y)
        buffer = weakref.ref(w.grad)
        w.grad = None
        del y
        gc.collect()
        gone = (seen() is None, buffer() is None)
    """)
    assert run.program["gone"] == (True, True)


def test_parameters_can_be_garbage_collected_with_their_model() -> None:
    run = record("""
        import weakref, gc
        model = nn.Linear(1, 1)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        seen = weakref.ref(model.weight), weakref.ref(model), weakref.ref(optimizer)
        del model, optimizer
        gc.collect()
        gone = tuple(ref() is None for ref in seen)
    """)
    assert run.program["gone"] == (True, True, True)


@pytest.mark.filterwarnings("ignore")
def test_compiled_function_is_recorded_at_its_boundary() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        double = torch.compile(lambda x: x * 2, backend="eager")
        y = double(w)
        y.backward()
    """)
    assert run.program["w"].grad.item() == 2.0
    assert any("torch.compile" in event.text for event in run if type(event).__name__ == "Noted")


def test_compiled_code_of_the_program_is_restored_by_no_one_else() -> None:
    before = functions()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record('f = torch.compile(lambda x: x * 2, backend="eager")\ny = f(torch.ones(1))')
    assert functions() == before


def test_resets_of_an_optimizer_are_seen_after_a_compilation() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 1, bias=False))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        fast = torch.compile(model, backend="eager")
        def train():
            for _ in range(3):
                optimizer.zero_grad()
                fast(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        train()
    """)
    by = [event.by for event in run.history(run.id("model.0.weight")) if isinstance(event, GradReset)]
    assert by == ["SGD.zero_grad", "SGD.zero_grad"]


def test_inside_of_a_function_transform_is_said_to_be_unseen() -> None:
    run = record("""
        gradient = torch.func.grad(lambda w: (w * w * 2).sum())
        for _ in range(3):
            gradient(torch.ones(2))
    """)
    [noted] = run.of(Noted)
    assert "torch.func" in noted.text
    assert run.line(noted.site) == 4


def test_forked_processes_are_said_to_be_unrecorded() -> None:
    run = record("""
        import os
        for _ in range(2):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
    """)
    [noted] = run.of(Noted)
    assert "forks" in noted.text
