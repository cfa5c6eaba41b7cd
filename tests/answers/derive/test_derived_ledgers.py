"""Derivations from ledgers as a recorder writes them: lines, versions, modules, and what a report shows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from ledgers import Book, const, folded_loop, freed_graph, gradient_lab, scalar, term, value
from whygrad.answers.derive import Derivation, Status, derivations, derive
from whygrad.answers.derive.derivation import merged
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import BackwardId, Edge, GradWritten, ModuleId, NodeId, Operand, OptimizerId, Shape, Update
from whygrad.ledger.values import Value


def written(ledger: Ledger) -> list[GradWritten]:
    return list(ledger.of(GradWritten))


def backward(
    book: Book, root: int, node: int | None, leaf: int, given: Value, **more: object
) -> Derivation:  # fmt: skip
    """Write a backward that gave a gradient to the leaf, and derive it."""
    number = BackwardId(book.new("backward"))
    began = {"root_value": None, "gradient": None, "site": None} | more
    book.add(events.BackwardBegan, id=number, call="backward", roots=(root,), root_nodes=(node,), **began)
    event = book.add(GradWritten, tensor=leaf, backward=number, before=None, contributions=(term(given),), after=given)
    return derive(book.ledger, event)


# --- the exercise ---------------------------------------------------------------------------------


def test_each_backward_of_the_exercise_is_derived_with_its_line() -> None:
    ledger = gradient_lab()
    lines = [derive(ledger, event).lines() for event in written(ledger)]
    said = "d/dw (2*w - 1)^2 = 2*(2*w - 1) * 2 = 4*(2*w - 1) = 20 at w = 3 (line {}); agrees with the observed 20"
    assert lines == [[said.format(line)] for line in (8, 13, 23)]


def test_the_report_says_the_same_derivation_once() -> None:
    ledger = gradient_lab()
    (found,) = derivations(ledger).values()
    assert [derivation.places for derivation in found] == [("line 8", "line 13", "line 23")]
    assert "at w = 3 (lines 8, 13 and 23)" in found[0].lines()[0]


def test_a_wrong_buffer_disagrees() -> None:
    ledger = gradient_lab()
    event = written(ledger)[0]
    wrong = msgspec.structs.replace(event, after=scalar(21.0), contributions=(term(21.0),))
    derivation = derive(ledger, wrong)
    assert derivation.status is Status.DISAGREES
    assert derivation.lines()[0].endswith(
        "= 20 at w = 3 (line 8); disagrees with the observed 21 (difference 1, tolerance 0.002)"
    )


def test_two_uses_of_a_leaf_add_up() -> None:
    ledger = freed_graph()
    assert derive(ledger, written(ledger)[0]).lines() == [
        "d/dw w^2 = 2*w = 6 at w = 3 (line 2); agrees with the observed 6"
    ]


def test_a_loop_whose_operations_were_not_recorded_is_not_derived() -> None:
    ledger = folded_loop()
    derivation = derive(ledger, written(ledger)[0])
    assert derivation.status is Status.NOT_DERIVED
    assert derivation.lines()[0].startswith("not derived: ")
    assert derivations(ledger) == {}


def test_the_budget_ends_the_work() -> None:
    assert derivations(gradient_lab(), budget=0) == {}
    assert derivations(gradient_lab(), limit=0) == {}


def test_places_are_joined() -> None:
    assert merged(("line 8",)) == "line 8"
    assert merged(("line 8", "line 9")) == "lines 8 and 9"
    assert merged(("model.py:3", "line 9")) == "line 9, model.py:3"


# --- what a leaf held -----------------------------------------------------------------------------


def squared(book: Book, leaf: int) -> tuple[int, int | None]:
    number = leaf_value(book, leaf)
    return book.operation(book.site(2, "w**2"), "pow", [Operand(tensor=leaf), const(2)], scalar(number**2))


def leaf_value(book: Book, leaf: int) -> float:
    """What the leaf holds after the events so far."""
    held = 3.0
    for event in book.events:
        if isinstance(event, events.OptimizerStepped):
            held = float(event.updates[0].after.scalar) if event.updates[0].after else 2.5
        elif isinstance(event, events.DataChanged) and event.tensor == leaf:
            held = float(event.after.scalar) if event.after else 2.5
    return held


def program(source: str = "w = ...\nloss = w**2\nloss.backward()\n") -> tuple[Book, int]:
    book = Book(source)
    return book, book.leaf("w", scalar(3.0), book.site(1, "..."))


def stepped(book: Book, leaf: int, after: Value | None) -> None:
    update = Update(tensor=leaf, grad=None, change=0.5, size=2.5, after=after)
    book.add(events.OptimizerStepped, site=book.site(3, "opt.step()"), optimizer=OptimizerId(1), updates=(update,))


def test_after_a_step_the_new_value_counts() -> None:
    book, leaf = program()
    stepped(book, leaf, scalar(2.5))
    derivation = backward(book, *squared(book, leaf), leaf, scalar(5.0))
    assert derivation.lines() == ["d/dw w^2 = 2*w = 5 at w = 2.5 (line 2); agrees with the observed 5"]


def test_a_step_that_hides_the_new_value_is_named() -> None:
    book, leaf = program()
    stepped(book, leaf, None)
    derivation = backward(book, *squared(book, leaf), leaf, scalar(5.0))
    assert derivation.reason == "the value of w is not known: the optimizer's step changed it (line 3)"


def test_a_write_between_use_and_backward_that_autograd_cannot_see_is_named() -> None:
    book, leaf = program()
    root, node = squared(book, leaf)
    site = book.site(3, "w.data.mul_(2)")
    hidden = {"by": ".data.mul_", "version_before": 0, "version": 0, "hidden": True, "after": scalar(6.0)}
    book.add(events.DataChanged, site=site, tensor=leaf, **hidden)
    derivation = backward(book, root, node, leaf, scalar(12.0))
    assert (
        derivation.reason == "w was written (line 3) after `w**2` (line 2) used it, in a way that autograd cannot see"
    )


def test_after_light_recording_a_parameter_is_not_trusted() -> None:
    book, leaf = program()
    book.add(events.DepthChanged, depth="light", why="steps alike")
    derivation = backward(book, *squared(book, leaf), leaf, scalar(6.0))
    assert derivation.reason == "the value of w is not known: steps that were recorded lightly changed it"


def test_a_grad_buffer_in_the_program_is_not_trusted_after_a_backward() -> None:
    book, leaf = program()
    buffer = book.tensor((), leaf=True, origin="grad", value=scalar(1.0))
    book.add(events.BackwardEnded, id=BackwardId(7))
    root, node = book.operation(book.site(2, "w*g"), "mul", [Operand(tensor=leaf), Operand(tensor=buffer)], scalar(3.0))
    assert "a backward may have added to it" in backward(book, root, node, leaf, scalar(1.0)).reason


# --- what else had a hand in the gradient ---------------------------------------------------------


def test_a_hook_is_the_first_suspect() -> None:
    book, leaf = program()
    root, node = squared(book, leaf)
    number = BackwardId(book.new("backward"))
    book.add(events.BackwardBegan, id=number, call="backward", roots=(root,), root_nodes=(node,))
    hooked = {"tensor": leaf, "backward": number, "before": None, "hooked": True}
    same = book.add(GradWritten, **hooked, contributions=(term(6.0),), after=scalar(6.0))
    other = book.add(GradWritten, **hooked, contributions=(term(60.0),), after=scalar(60.0))
    assert derive(book.ledger, same).status is Status.AGREES
    assert "a hook of the program's may have changed what arrived" in derive(book.ledger, other).reason


def test_a_custom_backward_is_named() -> None:
    book, leaf = program()
    root, node = squared(book, leaf)
    book.add(events.Node, id=node, site=book.site(2, "w**2"), name="SquareBackward", edges=(Edge(leaf=leaf),))
    derivation = backward(book, root, node, leaf, scalar(6.0))
    assert derivation.reason == "SquareBackward (line 2) is custom: no recorded operation says what it computes"


def test_a_custom_backward_on_another_way_does_not_matter() -> None:
    book, leaf = program()
    other = book.leaf("other", scalar(1.0))
    custom = NodeId(99)
    root, node = squared(book, leaf)
    book.add(events.Node, id=custom, name="SquareBackward", edges=(Edge(leaf=other),))
    book.add(events.Node, id=node, name="PowBackward0", edges=(Edge(leaf=leaf), Edge(node=custom)))
    assert backward(book, root, node, leaf, scalar(6.0)).status is Status.AGREES


def test_a_gradient_that_came_another_way_is_no_disagreement() -> None:
    book, leaf = program()
    root, node = squared(book, leaf)
    number = BackwardId(book.new("backward"))
    book.add(events.BackwardBegan, id=number, call="backward", roots=(root,), root_nodes=(node,))
    elsewhere = (term(60.0, node, book.site(3, "opt.step()")),)
    event = book.add(
        GradWritten, tensor=leaf, backward=number, before=None, contributions=elsewhere, after=scalar(60.0)
    )
    assert "does not tell how the gradient came through it" in derive(book.ledger, event).reason


def test_several_roots_add_up() -> None:
    book, leaf = program()
    first, node = squared(book, leaf)
    second, other = book.operation(book.site(2, "w*3"), "mul", [Operand(tensor=leaf), const(3)], scalar(9.0))
    number = BackwardId(book.new("backward"))
    book.add(events.BackwardBegan, id=number, call="backward", roots=(first, second), root_nodes=(node, other))
    right = {"tensor": leaf, "backward": number, "before": None, "contributions": ()}
    assert derive(book.ledger, book.add(GradWritten, **right, after=scalar(9.0))).status is Status.AGREES
    doubted = derive(book.ledger, book.add(GradWritten, **right, after=scalar(15.0)))
    assert "the gradient arguments of several roots were not recorded" in doubted.reason


# --- operands -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "operands", "result", "gradient"),
    [
        ("div", lambda leaf: [Operand(tensor=leaf), Operand(code="len(x)")], 0.75, 0.25),
        ("mul", lambda leaf: [Operand(code="1 - decay"), Operand(tensor=leaf)], 0.03, 0.01),
        ("add", lambda leaf: [Operand(tensor=leaf), Operand(code="n")], 7.0, 1.0),
        ("sub", lambda leaf: [Operand(code="n"), Operand(tensor=leaf)], 1.0, -1.0),
    ],
)
def test_a_missing_number_follows_from_the_result(
    function: str, operands: object, result: float, gradient: float
) -> None:
    book, leaf = program()
    inputs: Sequence[Operand] = operands(leaf)  # type: ignore[operator]
    root, node = book.operation(book.site(2, "w**2"), function, inputs, scalar(result))
    derivation = backward(book, root, node, leaf, scalar(gradient))
    assert derivation.status is Status.AGREES, derivation.lines()
    assert "by the recorded result of `w**2` (line 2)" in derivation.lines()[1]


def test_a_missing_operand_is_named() -> None:
    book, leaf = program()
    root, node = book.operation(
        book.site(2, "w**2"), "pow", [Operand(tensor=leaf), Operand(code="power()")], scalar(9.0)
    )
    derivation = backward(book, root, node, leaf, scalar(6.0))
    assert derivation.reason == "the operand `power()` of `w**2` (line 2) was not recorded"


def test_a_call_whose_inside_was_not_recorded_is_named() -> None:
    book, leaf = program()
    root, node = book.operation(book.site(2, "w**2"), "call", [Operand(tensor=leaf)], scalar(9.0))
    assert (
        backward(book, root, node, leaf, scalar(6.0)).reason == "what `w**2` (line 2) computes inside was not recorded"
    )


def test_a_call_of_the_programs_own_function_is_followed_inside() -> None:
    book, leaf = program()
    root, node = squared(book, leaf)
    made = {"inputs": (Operand(tensor=leaf),), "outputs": (root,), "node": node, "value": scalar(9.0)}
    book.add(events.Operation, site=book.site(3, "square(w)"), function="call", **made)
    assert backward(book, root, node, leaf, scalar(6.0)).status is Status.AGREES


# --- modules --------------------------------------------------------------------------------------


def called(
    kind: str, config: str, output: Value, inputs: Sequence[Value], training: bool = True
) -> tuple[Book, int, int, int]:
    """A leaf `x` through one module (its other inputs are constants); returns the book, the leaf and the root."""
    book = Book("x = ...\ny = layer(x)\n")
    leaf = book.leaf("x", inputs[0])
    others = [book.tensor(each.shape, leaf=True, origin="created", dtype=each.dtype, value=each) for each in inputs[1:]]
    module = ModuleId(book.new("module"))
    book.add(events.Module, id=module, path="layer", kind=kind, config=config)
    site = book.site(2, "layer(x)")
    root = book.tensor(output.shape, requires_grad=True, site=site)
    shapes = tuple(Shape(tensor, each.shape, each.dtype) for tensor, each in zip((leaf, *others), inputs, strict=True))
    book.add(
        events.ModuleCalled, site=site, module=module, training=training, grad_mode="on", inputs=shapes,
        outputs=(Shape(root, output.shape, "float32"),), value=output,
    )  # fmt: skip
    return book, leaf, root, 1


@pytest.mark.parametrize(
    ("kind", "config", "output", "gradient"),
    [
        ("ReLU", "", [1.0, 0.0], [1.0, 0.0]),
        ("ReLU", "inplace=True", [1.0, 0.0], [1.0, 0.0]),
        ("LeakyReLU", "negative_slope=0.5", [1.0, -1.0], [1.0, 0.5]),
        ("Identity", "", [1.0, -2.0], [1.0, 1.0]),
        ("Dropout", "p=1.0, inplace=False", [0.0, 0.0], [0.0, 0.0]),
        ("Hardtanh", "min_val=-1.0, max_val=2.0", [1.0, -1.0], [1.0, 0.0]),
    ],
)
def test_a_module_is_an_operation_with_its_configuration(
    kind: str, config: str, output: list[float], gradient: list[float]
) -> None:
    book, leaf, root, node = called(kind, config, value((2,), *output), [value((2,), 1.0, -2.0)])
    ones = value((2,), 1.0, 1.0)
    derivation = backward(book, root, node, leaf, value((2,), *gradient), gradient=ones)
    assert derivation.status is Status.AGREES, derivation.lines()


@pytest.mark.parametrize(("result", "gradient"), [(2.5, [1.0, -2.0]), (5.0, [2.0, -4.0])])
def test_the_recorded_loss_says_its_reduction(result: float, gradient: list[float]) -> None:
    inputs = [value((2,), 1.0, -2.0), value((2,), 0.0, 0.0)]
    book, leaf, root, node = called("MSELoss", "", scalar(result), inputs)
    assert backward(book, root, node, leaf, value((2,), *gradient)).status is Status.AGREES


def test_dropout_in_training_is_not_guessed() -> None:
    book, leaf, root, node = called("Dropout", "p=0.5, inplace=False", value((2,), 2.0, 0.0), [value((2,), 1.0, -2.0)])
    derivation = backward(book, root, node, leaf, value((2,), 2.0, 0.0), gradient=value((2,), 1.0, 1.0))
    assert derivation.reason == "`layer(...)` (line 2) is not replayed: it drew random numbers"


def test_batch_norm_in_eval_lacks_its_running_statistics() -> None:
    output = value((2, 1), 1.0, -2.0)
    config = "1, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True"
    book, leaf, root, node = called("BatchNorm1d", config, output, [output], training=False)
    derivation = backward(book, root, node, leaf, output, gradient=value((2, 1), 1.0, 1.0))
    assert derivation.reason == "layer (line 2) computes with its running statistics, which were not recorded"


@pytest.mark.parametrize(("kind", "config"), [("LSTM", "2, 2"), ("Conv2d", "1, 1, padding=same"), ("Mystery", "")])
def test_a_module_that_is_not_known_is_named(kind: str, config: str) -> None:
    output = value((2,), 1.0, -2.0)
    book, leaf, root, node = called(kind, config, output, [output])
    derivation = backward(book, root, node, leaf, output, gradient=value((2,), 1.0, 1.0))
    assert derivation.reason == f"what {kind} layer (line 2) computes inside is not replayed"


def test_a_module_that_writes_into_its_input_gives_a_new_value() -> None:
    """`Sequential(Linear, ReLU(inplace=True))`: the version counter shows the write before the call is over."""
    book = Book("x = ...\ny = layers(x)\n")
    leaf, site = book.leaf("x", value((2,), 1.0, -2.0)), book.site(2, "layers(x)")
    doubled, node = book.operation(site, "mul", [Operand(tensor=leaf), const(2)], value((2,), 2.0, -4.0))
    module = ModuleId(book.new("module"))
    book.add(events.Module, id=module, path="layers.1", kind="ReLU", config="inplace=True")
    after = value((2,), 2.0, 0.0)
    book.add(
        events.DataChanged, site=site, tensor=doubled, by="ReLU", version_before=0, version=1, after=after
    )  # fmt: skip
    shape = (Shape(doubled, (2,), "float32"),)
    book.add(
        events.ModuleCalled, site=site, module=module, training=True, grad_mode="on", inputs=shape, outputs=shape,
        value=after,
    )  # fmt: skip
    derivation = backward(book, doubled, node, leaf, value((2,), 2.0, 0.0), gradient=value((2,), 1.0, 1.0))
    assert derivation.lines()[0].startswith("d/dx sum(relu(2*x)) = step(2*x) * 2 = 2*step(2*x) = [2, 0]")


def test_a_hook_on_the_way_is_a_suspect() -> None:
    book, leaf = program("w = ...\nloss = w**2\nloss.register_hook(lambda g: 2 * g)\n")
    derivation = backward(book, *squared(book, leaf), leaf, scalar(12.0))
    assert derivation.reason.startswith("the program registers hooks, which may have changed the gradient on its way")


def test_on_an_accelerator_the_tolerance_is_that_of_its_multiplications() -> None:
    book = Book("w = ...\nloss = w**2\n")
    leaf = book.leaf("w", scalar(3.0), book.site(1, "..."), device="cuda:0")
    derivation = backward(book, *squared(book, leaf), leaf, scalar(6.01))
    assert derivation.status is Status.AGREES
