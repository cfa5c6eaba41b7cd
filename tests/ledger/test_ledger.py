"""The questions that reports ask of a ledger; each is asked of a ledger in memory and of the same one on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgers import Book, const, folded_loop, freed_graph, gradient_lab, scalar, term, value
from whygrad.ledger import Ledger, Writer, events, read
from whygrad.ledger.events import BackwardId, ModuleId, Operand, TensorId


@pytest.fixture(scope="module", params=["memory", "disk"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    ledger = gradient_lab()
    return ledger if request.param == "memory" else _on_disk(ledger, tmp_path_factory.mktemp("lab") / "lab.jsonl")


def _on_disk(ledger: Ledger, path: Path) -> Ledger:
    with Writer(path, ledger.header) as writer:
        for event in ledger:
            writer.write(event)
    return read(path)


def _the(ledger: Ledger, name: str) -> TensorId:
    return ledger.find(name)[0]


def test_the_events_are_numbered_from_one_and_can_be_read_twice(lab: Ledger) -> None:
    first = [event.seq for event in lab]
    assert first == list(range(1, len(first) + 1))
    assert [event.seq for event in lab] == first


def test_the_history_of_a_buffer_is_all_that_happened_to_it_in_order(lab: Ledger) -> None:
    history = list(lab.history(_the(lab, "w")))
    assert [type(event).__name__ for event in history] == ["GradWritten", "GradWritten", "GradReset", "GradWritten"]
    assert [event.after.scalar if isinstance(event, events.GradWritten) else None for event in history] == [
        20.0, 40.0, None, 20.0,
    ]  # fmt: skip


def test_a_tensor_without_a_buffer_has_no_history(lab: Ledger) -> None:
    assert list(lab.history(_the(lab, "model.0.weight"))) == []
    assert list(lab.history(TensorId(999))) == []


def test_leaves_come_in_order_of_appearance(lab: Ledger) -> None:
    assert [lab.name(leaf) for leaf in lab.leaves()] == ["w", "model.0.weight"]


def test_a_buffer_seen_only_in_folded_steps_is_still_a_leaf() -> None:
    book = Book()
    tensor = book.tensor((2,), leaf=True, requires_grad=False)
    fold = events.BufferFold(tensor=tensor, writes=3, resets=3)
    book.add(events.StepsFolded, first=1, last=3, backwards=3, optimizer_steps=3, buffers=(fold,))
    assert book.ledger.leaves() == (tensor,)


def test_a_leaf_whose_requires_grad_was_switched_on_is_reported() -> None:
    book = Book()
    tensor = book.tensor((2,), leaf=True, requires_grad=False)
    assert book.ledger.leaves() == ()
    book.add(events.RequiresGradChanged, tensor=tensor, to=True, by="requires_grad_")
    assert book.ledger.leaves() == (tensor,)


def test_contributions_are_those_of_one_backward(lab: Ledger) -> None:
    (written,) = lab.contributions(BackwardId(2))
    assert isinstance(written, events.GradWritten)
    assert written.after.scalar == 40.0
    assert lab.where(written.contributions[0].site) == "line 13"


def test_contributions_of_interleaved_passes_do_not_mix() -> None:
    book = Book()
    tensor = book.tensor(leaf=True, requires_grad=True)
    for backward in (1, 2):
        book.add(events.BackwardBegan, id=backward, call="backward", roots=(), root_nodes=())
    for backward in (2, 1):
        book.add(
            events.GradWritten, tensor=tensor, backward=backward, before=None, contributions=(term(1.0),),
            after=scalar(float(backward)),
        )  # fmt: skip
        book.add(events.BackwardEnded, id=backward)
    assert [event.after.scalar for event in book.ledger.contributions(BackwardId(1))] == [1.0]  # type: ignore[union-attr]
    assert [event.after.scalar for event in book.ledger.contributions(BackwardId(2))] == [2.0]  # type: ignore[union-attr]
    assert list(book.ledger.contributions(BackwardId(3))) == []


def test_modes_are_training_flags_and_grad_modes_in_one_order(lab: Ledger) -> None:
    modes = list(lab.modes())
    assert [mode.seq for mode in modes] == sorted(mode.seq for mode in modes)
    said = [mode.call if isinstance(mode, events.ModeChanged) else mode.mode for mode in modes]
    assert said == ["off", "on", "train", "eval", "off", "on", "train", "off", "on"]


def test_calls_are_those_of_one_module(lab: Ledger) -> None:
    calls = list(lab.calls(ModuleId(2)))
    assert [(call.training, call.grad_mode) for call in calls] == [
        (True, "on"), (False, "on"), (False, "off"), (True, "off"), (True, "on"),
    ]  # fmt: skip
    assert calls[-1].broken == "Linear(2, 1) expected 2 features in the last dimension, got 3"


def test_what_a_line_did(lab: Ledger) -> None:
    kinds = [type(event).__name__ for event in lab.at("gradient_lab.py", 22)]
    assert kinds == ["GradReset"]
    assert list(lab.at("gradient_lab.py", 12)) == []
    assert list(lab.at("other.py", 22)) == []


def test_an_expression_over_several_lines_covers_each_of_them() -> None:
    book = Book("y = (\n    w\n    * 2\n)\n")
    site = book.site(1, "(\n    w\n    * 2\n)")
    book.add(events.Noted, site=site, text="product")
    for line in (1, 2, 3, 4):
        assert [event.seq for event in book.ledger.at("program.py", line)] == [3]


def test_entities_are_found_by_id_and_unknown_ids_are_none(lab: Ledger) -> None:
    assert lab.site(events.SiteId(2)).code == "torch.tensor(3.0, requires_grad=True)"  # type: ignore[union-attr]
    assert lab.tensor(TensorId(1)).requires_grad  # type: ignore[union-attr]
    assert lab.node(events.NodeId(1)).name == "MulBackward0"  # type: ignore[union-attr]
    assert lab.module(ModuleId(2)).path == "model.0"  # type: ignore[union-attr]
    assert "loss.backward()" in lab.source("gradient_lab.py")  # type: ignore[operator]
    for found in (lab.site, lab.tensor, lab.node, lab.module, lab.optimizer):
        assert found(999) is None  # type: ignore[operator]
        assert found(None) is None  # type: ignore[operator]
    assert lab.source("missing.py") is None


def test_an_optimizer_is_as_it_was_last_described() -> None:
    book = Book()
    group = events.Group(parameters=(), options={"lr": 0.1})
    for groups in ((group,), (group, group)):
        book.add(events.Optimizer, id=1, kind="SGD", groups=groups)
    assert len(book.ledger.optimizer(events.OptimizerId(1)).groups) == 2  # type: ignore[union-attr]


# --- names --------------------------------------------------------------------------------------------


def test_a_module_path_is_a_better_name_than_a_global_and_that_than_a_local() -> None:
    book = Book()
    tensor = book.tensor(leaf=True, requires_grad=True)
    book.named(tensor, "weight", scope="build")
    assert book.ledger.name(tensor) == "weight"
    book.named(tensor, "first", scope="<module>")
    assert book.ledger.name(tensor) == "first"
    book.named(tensor, "later", scope="<module>")
    book.named(tensor, "model.0.weight", scope="<module>")
    book.add(events.Module, id=1, path="model.0", kind="Linear")
    assert book.ledger.name(tensor) == "model.0.weight"
    assert book.ledger.names(tensor) == ("weight", "first", "later", "model.0.weight")


def test_a_parameter_that_was_never_named_is_called_by_its_module() -> None:
    book = Book()
    tensor = book.tensor((1, 2), origin="parameter")
    book.add(events.Module, id=1, path="model.0", kind="Linear", parameters=(("weight", tensor),))
    assert book.ledger.name(tensor) == "model.0.weight"


def test_the_class_of_a_module_without_a_path_is_no_name() -> None:
    book = Book()
    tensor = book.tensor((1, 2), origin="parameter")
    book.add(events.Module, id=1, path="Linear", kind="Linear", parameters=(("weight", tensor),))
    assert book.ledger.name(tensor) == ""
    assert book.ledger.describe(tensor) == "a parameter of shape (1, 2)"


def test_a_tensor_without_a_name_is_described_by_where_it_was_made(lab: Ledger) -> None:
    assert lab.describe(TensorId(2)) == "the result of `w * 2.0` (line 8)"
    assert lab.describe(TensorId(4)) == "loss"
    assert lab.describe(TensorId(999)) == "a tensor that was not recorded"
    book = Book()
    assert book.ledger.describe(book.tensor((2, 3))) == "a tensor of shape (2, 3)"


def test_long_expressions_are_shortened_in_descriptions() -> None:
    code = "torch.cat([\n" + "    first_tensor,\n" * 20 + "])"
    book = Book(f"y = {code}\n")
    tensor = book.tensor(site=book.site(1, code))
    said = book.ledger.describe(tensor)
    assert len(said) < 100
    assert "\n" not in said
    assert said.startswith("the result of `torch.cat([ first_tensor,")


def test_lines_of_other_files_carry_the_file() -> None:
    book = Book("import helpers\n", program="examples/main.py")
    book.source("/somewhere/helpers.py", "x = 1\n")
    ledger = book.ledger
    main, other = book.site(1, "import helpers"), book.site(1, "x = 1", path="/somewhere/helpers.py")
    assert ledger.where(main) == "line 1"
    assert ledger.where(other) == "helpers.py:1"
    assert ledger.where(None) == "an unrecorded line"


def test_the_program_is_recognised_when_sites_hold_its_full_path() -> None:
    book = Book(program="./main.py")
    book.source("/home/somebody/helpers.py", "x = 1\n")
    book.source("/home/somebody/main.py", "import helpers\n")
    assert book.ledger.main_path() == "/home/somebody/main.py"


# --- which tensor a name means ------------------------------------------------------------------------


def _rebound() -> Ledger:
    source = "x = a\nx = x * 2\nfor _ in range(2):\n    x = x + 1\ndef f(x):\n    return x\n"
    book = Book(source)
    start = book.tensor(site=book.site(1, "a"))
    book.named(start, "x", book.site(1, "x = a"))
    product, _ = book.operation(book.site(2, "x * 2"), "mul", [Operand(tensor=start), const(2)])
    book.named(product, "x", book.site(2, "x = x * 2"))
    previous = product
    for _ in range(2):
        total, _ = book.operation(book.site(4, "x + 1"), "add", [Operand(tensor=previous), const(1)])
        book.named(total, "x", book.site(4, "x = x + 1"))
        previous = total
    argument = book.tensor((7,))
    inside = book.site(6, "x", function="f")
    book.named(argument, "x", inside, scope="f")
    book.add(events.Noted, site=inside, text="used")
    return book.ledger


def test_all_that_ever_bore_a_name_newest_first() -> None:
    assert _rebound().find("x") == (5, 4, 3, 2, 1)
    assert _rebound().find("z") == ()


@pytest.mark.parametrize(
    ("line", "tensors"),
    [
        pytest.param(1, (1,), id="the line that binds it"),
        pytest.param(2, (2, 1), id="the result before the operand"),
        pytest.param(3, (2, 1), id="a line that recorded nothing takes the one before"),
        pytest.param(4, (4, 3, 2), id="each turn of a loop, the last turn first"),
        pytest.param(6, (5,), id="the local name in a function"),
        pytest.param(99, (5,), id="after the end"),
    ],
)
def test_what_a_name_meant_at_a_line(line: int, tensors: tuple[int, ...]) -> None:
    assert _rebound().find("x", line) == tensors


def test_a_name_means_nothing_before_it_is_bound(lab: Ledger) -> None:
    assert lab.find("y", 9) == ()
    assert lab.find("w", 1) == ()
    assert lab.find("w", 40) == lab.find("w", 7) == lab.find("w")


# --- ledgers that grow ----------------------------------------------------------------------------------


def test_a_ledger_in_memory_follows_its_list() -> None:
    book = Book()
    ledger = book.ledger
    tensor = book.leaf("w", scalar(3.0))
    assert ledger.leaves() == (tensor,)
    book.add(events.GradReset, tensor=tensor, to="none", by="= None", before=None)
    assert len(list(ledger.history(tensor))) == 1


@pytest.mark.parametrize("make", [gradient_lab, folded_loop, freed_graph])
def test_a_ledger_on_disk_answers_as_the_one_in_memory(make: type[Ledger], tmp_path: Path) -> None:
    memory = make()  # type: ignore[call-arg]
    disk = _on_disk(memory, tmp_path / "run.jsonl")
    assert list(disk) == list(memory)
    assert disk.leaves() == memory.leaves()
    for tensor in memory.of(events.Tensor):
        assert disk.tensor(tensor.id) == tensor
        assert disk.names(tensor.id) == memory.names(tensor.id)
        assert disk.describe(tensor.id) == memory.describe(tensor.id)
        assert list(disk.history(tensor.id)) == list(memory.history(tensor.id))
    for began in memory.of(events.BackwardBegan):
        assert list(disk.contributions(began.id)) == list(memory.contributions(began.id))


def test_values_survive_the_disk(tmp_path: Path) -> None:
    book = Book()
    weight = book.leaf("w", value((2,), float("nan"), float("inf")))
    found = _on_disk(book.ledger, tmp_path / "run.jsonl").tensor(weight)
    assert found is not None
    assert found.value == value((2,), float("nan"), float("inf"))
