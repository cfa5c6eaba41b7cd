"""What an operation computed with: tensors by their ids, numbers and texts by their values."""

import pytest
from recording import Recording, record


def operands(run: Recording, code: str) -> list[object]:
    """Each operand of the last operation `code`: a tensor's name or expression, `keyword=value`, `?` if not known."""
    return [_spelled(run, operand) for operand in run.operation(code).inputs]


def _spelled(run: Recording, operand: object) -> object:
    if operand.tensor is not None:
        value = run.name(operand.tensor) or operand.code
    elif operand.known and operand.items is None:
        value = operand.constant
    else:
        value = "?" if operand.items is None else [_spelled(run, item) for item in operand.items]
    return f"{operand.keyword}={value}" if operand.keyword else value


def test_item_that_is_set_has_its_index_and_its_value() -> None:
    run = record("""
        x = torch.ones(3, requires_grad=True)
        y = torch.zeros(3)
        y[1] = x[0] * 2
    """)
    written = run.operation("y[1] = x[0] * 2")
    assert written.function == "setitem"
    assert [operand.code for operand in written.inputs] == ["y", "1", "x[0] * 2"]
    assert written.inputs[2].tensor == run.operation("x[0] * 2").outputs[0]
    assert written.inputs[0].tensor == written.outputs[0] == run.id("y")


def test_item_that_is_set_to_a_name_at_a_name() -> None:
    run = record("""
        y = torch.zeros(3)
        v = torch.ones(())
        i = 2
        y[i] = v
    """)
    assert operands(run, "y[i] = v") == ["y", 2, "v"]


def test_item_that_is_added_to() -> None:
    run = record("""
        x = torch.ones(3, requires_grad=True)
        out = torch.zeros(2, 3)
        out[0] += x
    """)
    assert run.operation("out[0] += x").function == "setitem_add"
    assert operands(run, "out[0] += x") == ["out", 0, "x"]


def test_item_of_a_dictionary_that_is_set_is_no_operation() -> None:
    run = record("""
        x = torch.ones(3)
        held = {}
        for key in "ab":
            held[key] = x.sum()
        total = held["a"] + x.sum()
    """)
    assert operands(run, 'held["a"] + x.sum()') == ['held["a"]', "x.sum()"]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("float(n)", 3.0),
        ("len(items)", 2),
        ("max(n, 1)", 3),
        ("config.scale", 0.5),
        ("items[1]", 7),
        ("round(2.6)", 3),
        ("(n + 1)", 4),
        ("(n if flag else 0)", 3),
        ("half()", 0.5),
    ],
)
def test_number_that_an_expression_gives(code: str, value: float) -> None:
    run = record(f"""
        class config:
            scale = 0.5
        def half():
            return 0.5
        n, items, flag = 3, [5, 7], True
        x = torch.ones(2, requires_grad=True)
        y = x * {code}
    """)
    assert operands(run, f"x * {code}") == ["x", value]


def test_choice_between_a_tensor_and_a_number_is_what_it_was_each_time() -> None:
    run = record("""
        x, v = torch.ones(1), torch.ones(1)
        for k in range(8):
            y = x * (v if k % 2 else 2.0)
    """)
    found = [event.inputs[1] for event in run.events if getattr(event, "function", "") == "mul"]
    assert [operand.constant if operand.tensor is None else run.name(operand.tensor) for operand in found] == [
        2.0,
        "v",
    ] * 4


def test_number_is_known_after_the_same_code_computed_with_numbers_alone() -> None:
    run = record("""
        def scaled(value, n):
            return value * float(n)
        for k in range(10):
            scaled(2.0, k)
        x = torch.ones(1)
        y = scaled(x, 7)
        z = scaled(x, 8)
    """)
    assert operands(run, "value * float(n)")[1] in ("?", 8.0)  # never the number of another time


def test_keywords_of_a_function_are_told_with_their_values() -> None:
    run = record("""
        logits, labels = torch.ones(2, 3, requires_grad=True), torch.tensor([0, 1])
        loss = F.cross_entropy(logits, labels, reduction="sum", ignore_index=-1, weight=torch.ones(3))
        p = F.softmax(logits, dim=1)
    """)
    code = 'F.cross_entropy(logits, labels, reduction="sum", ignore_index=-1, weight=torch.ones(3))'
    assert operands(run, code) == ["logits", "labels", "reduction=sum", "ignore_index=-1", "weight=torch.ones(3)"]
    assert operands(run, "F.softmax(logits, dim=1)") == ["logits", "dim=1"]
