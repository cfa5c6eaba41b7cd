"""Threads, forks and workers: each event knows its thread; a child writes nothing."""

import os

import pytest
from recording import record

from whygrad.ledger.events import BackwardBegan, GradWritten, ModuleCalled, Node, Operation


def test_backward_in_a_thread() -> None:
    run = record("""
        import threading
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        thread = threading.Thread(target=lambda: y.backward())
        thread.start()
        thread.join()
    """)
    assert run.story("w") == ["line 5: None -> 2 = 2 through w * 2"]
    assert run.one(BackwardBegan).thread == 1
    assert run.operation("w * 2").thread == 0


def test_backward_called_by_a_thread_directly() -> None:
    run = record("""
        import threading
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        thread = threading.Thread(target=y.backward)
        thread.start()
        thread.join()
    """)
    assert run.story("w") == ["None -> 2 = 2 through w * 2"]


def test_forward_in_another_thread() -> None:
    run = record("""
        import threading
        w = torch.tensor(3.0, requires_grad=True)
        made = []
        def forward():
            made.append(F.silu(w * 2))
        thread = threading.Thread(target=forward)
        thread.start()
        thread.join()
        made[0].backward()
    """)
    assert [code for _, _, code in run.terms("w")] == ["w * 2"]
    assert {run.code(node.site) for node in run.of(Node)} == {"w * 2", "F.silu(w * 2)"}


def test_modules_called_in_several_threads_do_not_mix() -> None:
    run = record("""
        from concurrent.futures import ThreadPoolExecutor
        models = [nn.Sequential(nn.Linear(1, 1), nn.Tanh()) for _ in range(4)]
        def work(model):
            for _ in range(10):
                model(torch.ones(1, 1)).sum().backward()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, models))
    """)
    assert len(run.all(ModuleCalled)) == 4 * 10 * 3
    assert {(run.module(call.module).kind, call.depth) for call in run.of(ModuleCalled)} == {
        ("Sequential", 0), ("Linear", 1), ("Tanh", 1),
    }  # fmt: skip


def test_operands_of_expressions_in_several_threads_do_not_mix() -> None:
    run = record("""
        import threading
        barrier = threading.Barrier(2)
        def work(w):
            for _ in range(50):
                y = (w * 2) + later(w)
        def later(w):
            barrier.wait()
            return w
        leaves = [torch.tensor(float(i), requires_grad=True) for i in range(2)]
        threads = [threading.Thread(target=work, args=[leaf]) for leaf in leaves]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    made = {}
    for operation in run.of(Operation):
        code = run.code(operation.site)
        if code == "w * 2":
            made[operation.outputs[0]] = operation.thread
        elif code == "(w * 2) + later(w)":
            assert made[operation.inputs[0].tensor] == operation.thread


def test_zero_grad_in_several_threads_resets_the_right_buffers() -> None:
    run = record("""
        from concurrent.futures import ThreadPoolExecutor
        class Slow(torch.optim.SGD):
            def zero_grad(self, set_to_none=True):
                super().zero_grad(set_to_none)
        leaves = [torch.tensor(float(i), requires_grad=True) for i in range(4)]
        def work(leaf):
            optimizer = Slow([leaf], lr=0.0)
            for _ in range(20):
                (leaf * 2).backward()
                optimizer.step()
                optimizer.zero_grad()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, leaves))
    """)
    for leaf in range(4):
        writes = [event for event in run.history(run.id(f"leaves[{leaf}]")) if isinstance(event, GradWritten)]
        assert len(writes) == 20
        assert all(event.before is None and event.after.scalar == 2.0 for event in writes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_child_writes_nothing() -> None:
    run = record("""
        import os
        w = torch.tensor(3.0, requires_grad=True)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            (w * 5).backward()
            os.write(writer, str(w.grad.item()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        said = os.read(reader, 100)
        (w * 2).backward()
    """)
    assert run.program["said"] == b"5.0"
    assert run.story("w") == ["line 12: None -> 2 = 2 through w * 2"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_of_a_data_loader_are_not_harmed() -> None:
    run = record("""
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4.0))
        total = 0.0
        for x, y in DataLoader(data, batch_size=2, num_workers=1, multiprocessing_context="fork"):
            total += x.sum().item() + y.sum().item()
    """)
    assert run.program["total"] == 34.0


def test_backward_inside_a_backward_in_a_hook() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(5.0, requires_grad=True)
        @torch.enable_grad()
        def hook(grad):
            (v * grad.detach()).backward()
        y = w * 2
        y.register_hook(hook)
        (y * 7).backward()
    """)
    assert run.story("v") == ["line 6: None -> 7 = 7 through v * grad.detach()"]
    assert run.story("w") == ["line 9: None -> 14 = 14 through w * 2"]


def test_passes_of_two_threads_into_one_buffer_claim_nothing_that_was_not_seen() -> None:
    run = record("""
        import threading
        w = torch.ones(4, requires_grad=True)
        barrier = threading.Barrier(2)
        def work():
            for _ in range(30):
                barrier.wait()
                (w * 2).sum().backward()
        threads = [threading.Thread(target=work) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    assert run.program["w"].grad.tolist() == [120.0] * 4
    writes = run.all(GradWritten)
    assert writes[-1].after.items == (120.0,) * 4
    assert not any(event.hooked for event in writes)
    assert all(term.value.items == (2.0,) * 4 for event in writes for term in event.contributions)
