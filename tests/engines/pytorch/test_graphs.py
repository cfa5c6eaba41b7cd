"""The backward graph: which line made which node, what it saved, which backward freed it."""

from collections import Counter

import pytest
from recording import Recording, record

from whygrad.engines.pytorch.graph import MARK_LIMIT, Marks
from whygrad.ledger.events import BackwardBegan, BackwardEnded, GradWritten, Node, Operation


def saved(run: Recording, node: Node) -> dict[str, tuple[str, int | None]]:
    """Slot -> (name of the tensor kept, its version then)."""
    return {slot.slot: (run.name(slot.tensor), slot.version) for slot in node.saved if slot.tensor is not None}


def test_node_belongs_to_the_expression_that_made_it() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        z = y.exp()
        z.backward()
    """)
    assert {code: node.name for code, node in run.nodes().items()} == {
        "w * 2": "MulBackward0",
        "y.exp()": "ExpBackward0",
    }
    assert [run.line(node.site) for node in run.all(Node)] == [3, 4]


def test_edges_lead_from_the_loss_to_the_leaf() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        z = y.exp() + y
        z.backward()
    """)
    nodes = run.nodes()
    assert [edge.node for edge in nodes["y.exp() + y"].edges] == [nodes["y.exp()"].id, nodes["w * 2"].id]
    assert nodes["w * 2"].edges[0].leaf == run.id("w")


def test_operation_knows_its_node() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w * 2
        y.backward()
    """)
    assert run.operation("w * 2").node == run.nodes()["w * 2"].id


def test_nodes_of_a_helper_belong_to_the_helpers_line() -> None:
    run = record("""
        def double(x):
            return x * 2
        w = torch.tensor(3.0, requires_grad=True)
        double(w).backward()
    """)
    assert run.line(run.nodes()["x * 2"].site) == 3


def test_nodes_of_a_library_function_belong_to_the_expression_that_called_it() -> None:
    run = record("""
        w = torch.ones(2, 3, requires_grad=True)
        y = F.layer_norm(w, (3,)) + F.softmax(w, -1)
        y.sum().backward()
    """)
    lines = {node.name: run.code(node.site) for node in run.of(Node)}
    assert lines["NativeLayerNormBackward0"] == "F.layer_norm(w, (3,))"
    assert lines["SoftmaxBackward0"] == "F.softmax(w, -1)"


def test_nodes_of_a_library_module_know_the_module() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
    """)
    made = {(node.name, run.module(node.module).path if node.module else "") for node in run.of(Node)}
    assert ("TanhBackward0", "model.1") in made
    assert ("AddmmBackward0", "model.0") in made
    assert ("AddmmBackward0", "model.2") in made
    assert ("SumBackward0", "") in made


def test_nodes_of_a_module_of_the_users_own_know_module_and_line() -> None:
    run = record("""
        class Net(nn.Module):
            def forward(self, x):
                return x * 2
        net = Net()
        w = torch.ones(1, requires_grad=True)
        net(w).sum().backward()
    """)
    node = run.nodes()["x * 2"]
    assert run.module(node.module).path == "net"
    assert run.line(node.site) == 4


def test_first_node_and_loss_outside_modules_belong_to_none() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        w = torch.ones(1, 1, requires_grad=True)
        before = w * 2
        out = model(before)
        after = out.exp()
        after.sum().backward()
    """)
    nodes = run.nodes()
    assert nodes["w * 2"].module is None
    assert run.module(nodes["model(before)"].module).path == "model"
    assert nodes["out.exp()"].module is None


def test_product_saves_both_operands() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(5.0, requires_grad=True)
        y = w * v
        y.backward()
    """)
    assert saved(run, run.nodes()["w * v"]) == {"self": ("w", 0), "other": ("v", 0)}


def test_product_with_a_constant_does_not_save_the_operand() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        c = torch.tensor(2.0)
        y = w * 2
        z = y * c
        z.backward()
    """)
    assert saved(run, run.nodes()["w * 2"]) == {}
    assert saved(run, run.nodes()["y * c"]) == {"other": ("c", 0)}


def test_power_saves_its_operand_and_exp_its_result() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 2
        z = y.exp()
        z.backward()
    """)
    assert saved(run, run.nodes()["w ** 2"]) == {"self": ("w", 0)}
    assert saved(run, run.nodes()["y.exp()"]) == {"result": ("z", 0)}


def test_saved_version_counts_writes_before() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        with torch.no_grad():
            w.mul_(2.0)
            w.add_(1.0)
        y = w ** 2
        y.backward()
    """)
    assert saved(run, run.nodes()["w ** 2"]) == {"self": ("w", 2)}


def test_matrix_product_saves_its_matrices() -> None:
    run = record("""
        a = torch.ones(2, 2, requires_grad=True)
        b = torch.ones(2, 2, requires_grad=True)
        y = a @ b
        y.sum().backward()
    """)
    assert saved(run, run.nodes()["a @ b"]) == {"self": ("a", 0), "mat2": ("b", 0)}


def test_library_module_saves_its_weight_and_its_input() -> None:
    run = record("""
        model = nn.Linear(2, 1)
        x = torch.ones(1, 2, requires_grad=True)
        model(x).sum().backward()
    """)
    [node] = [node for node in run.of(Node) if node.name == "AddmmBackward0"]
    assert ("x", 0) in saved(run, node).values()


def test_backward_frees_what_it_used() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 2
        z = y + 1
        z.backward()
    """)
    assert run.one(BackwardEnded).freed == (run.nodes()["w ** 2"].id,)


def test_kept_graph_is_not_freed() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 2
        y.backward(retain_graph=True)
        y.backward()
    """)
    assert [ended.freed for ended in run.of(BackwardEnded)] == [(), (run.nodes()["w ** 2"].id,)]


def test_part_that_a_backward_did_not_need_is_not_freed() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(3.0, requires_grad=True)
        a, b = w ** 2, v ** 2
        loss = a + b
        loss.backward(inputs=[w])
        b.backward()
    """)
    first, second = run.all(BackwardEnded)
    assert first.freed == (run.nodes()["w ** 2"].id,)
    assert second.freed == (run.nodes()["v ** 2"].id,)


def test_autograd_grad_with_respect_to_an_intermediate_frees_down_to_it() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        h = w ** 2
        y = h ** 2
        torch.autograd.grad(y, h)
        h.backward()
    """)
    first, second = run.all(BackwardEnded)
    assert first.freed == (run.nodes()["h ** 2"].id,)
    assert second.freed == (run.nodes()["w ** 2"].id,)


def test_backward_counts_nodes_and_leaves() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = torch.tensor(3.0, requires_grad=True)
        y = (w * v).exp()
        y.backward()
    """)
    began = run.one(BackwardBegan)
    assert began.nodes == 2
    assert set(began.leaves) == {run.id("w"), run.id("v")}
    assert run.node(began.root_nodes[0]).name == "ExpBackward0"
    assert began.root_value.scalar == run.tensor(run.id("y")).value or began.root_value.scalar > 8102


def test_same_expression_made_again_makes_new_nodes() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        for _ in range(3):
            (w ** 2).backward()
    """)
    assert len({node.id for node in run.of(Node)}) == 3
    assert {run.line(node.site) for node in run.of(Node)} == {4}


def test_chain_longer_than_pythons_recursion_limit() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w
        for _ in range(3000):
            y = y + 0
        y.backward()
    """)
    assert run.one(BackwardBegan).nodes == 3000
    assert run.story("w") == ["line 6: None -> 1 = 1 through y + 0"]


def test_nodes_made_while_autograd_builds_a_graph_belong_to_that_backward() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        y = w ** 3
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        g.backward()
    """)
    second = run.all(BackwardBegan)[1]
    made = [node for node in run.of(Node) if node.seq < second.seq and run.line(node.site) == 4]
    assert made
    assert run.node(second.root_nodes[0]).site == made[0].site


def test_views_say_what_they_are_views_of() -> None:
    run = record("""
        w = torch.ones(4, requires_grad=True)
        h = w * 1
        v = h[:2]
        v.mul_(2)
        h.sum().backward()
    """)
    assert run.story("w") == ["line 6: None -> [2, 2, 1, 1] = [2, 2, 1, 1] through w * 1"]


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        ("w * 2", "mul"), ("2 * w", "mul"), ("w - 1", "sub"), ("-w", "neg"), ("w @ w", "matmul"), ("w / 2", "div"),
        ("w.square()", "square"), ("w[0]", "getitem"), ("w.T", "T"), ("torch.exp(w)", "torch.exp"),
        ("F.relu(w)", "torch.nn.functional.relu"), ("nn.functional.relu(w)", "torch.nn.functional.relu"),
        ("torch.stack([w, w])", "torch.stack"), ("w.view(2, 1)", "view"), ("w.sum(dim=0)", "sum"),
        ("abs(w)", "call"), ("sum([w, w])", "call"), ("w.max(dim=0)", "max"), ("w.reshape(-1)", "reshape"),
    ],
)  # fmt: skip
def test_operations_have_plain_names(expression: str, function: str) -> None:
    run = record(f"w = torch.ones(2, requires_grad=True)\ny = {expression}".replace("w.T", "w.view(1, 2).T"))
    *_, last = run.of(Operation)
    assert last.function == function


def test_operation_shows_its_operands() -> None:
    run = record("""
        w = torch.ones(2, requires_grad=True)
        y = torch.add(w, 1.5, alpha=2)
        z = torch.stack([w, y], dim=0)
        e = z[0, 1:]
    """)
    first, scalar, keyword = run.operation("torch.add(w, 1.5, alpha=2)").inputs
    assert (first.tensor, first.code, scalar.constant) == (run.id("w"), "w", 1.5)
    assert (keyword.constant, keyword.keyword) == (2, "alpha")
    stacked = run.operation("torch.stack([w, y], dim=0)").inputs[0]
    assert [item.tensor for item in stacked.items] == [run.id("w"), run.id("y")]
    index = run.operation("z[0, 1:]").inputs[1]
    assert [item.constant for item in index.items] == [0, {"slice": [1, None, None]}]


def test_result_with_several_tensors_lists_them() -> None:
    run = record("""
        w = torch.ones(4, requires_grad=True)
        a, b = w.chunk(2)
        values, indices = w.max(dim=0)
    """)
    assert run.operation("w.chunk(2)").outputs == (run.id("a"), run.id("b"))
    assert run.operation("w.max(dim=0)").outputs == (run.id("values"), run.id("indices"))


def test_value_of_an_operand_that_another_expression_gave() -> None:
    run = record("""
        w = torch.ones(2, requires_grad=True)
        y = (w * 2) + (w * 3)
    """)
    inner = [run.operation(code).outputs[0] for code in ("w * 2", "w * 3")]
    assert [operand.tensor for operand in run.operation("(w * 2) + (w * 3)").inputs] == inner


def test_operands_of_an_expression_that_calls_itself_are_its_own() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        def f(n):
            return w * 1 if n == 0 else f(n - 1) * 2 + f(n - 1) * 3
        y = f(2)
        y.backward()
    """)
    made = {operation.outputs[0]: operation for operation in run.of(Operation)}
    for operation in run.of(Operation):
        if run.code(operation.site) == "f(n - 1) * 2 + f(n - 1) * 3":
            left, right = (made[operand.tensor] for operand in operation.inputs)
            assert (run.code(left.site), run.code(right.site)) == ("f(n - 1) * 2", "f(n - 1) * 3")
            assert left.value.scalar + right.value.scalar == operation.value.scalar


def test_operand_that_was_a_tensor_before_and_is_a_number_now_is_no_tensor() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        def scale(i):
            return w * 0.5 if i == 0 else 2.0
        for i in range(2):
            y = scale(i) * w
    """)
    first, second = [operation for operation in run.of(Operation) if run.code(operation.site) == "scale(i) * w"]
    assert first.inputs[0].tensor is not None
    assert second.inputs[0].tensor is None


def test_node_of_a_library_is_placed_rightly_however_often_the_code_inside_it_ran() -> None:
    run = record(
        """
        class Twice(nn.Module):
            def forward(self, x):
                return x * 1
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = nn.Sequential(nn.Linear(1, 1), Twice())
            def forward(self, x):
                for _ in range(230):
                    x = self.block(x)
                return x
        net = Net()
        net(torch.ones(1, 1)).sum().backward()
        """,
        "auto",
        loses="expressions that ran very often",
    )
    placed = Counter((node.name, run.code(node.site)) for node in run.of(Node))
    assert placed == {
        ("AddmmBackward0", "self.block(x)"): 230,
        ("TBackward0", "self.block(x)"): 230,
        ("MulBackward0", "x * 1"): 230,
        ("SumBackward0", "net(torch.ones(1, 1)).sum()"): 1,
    }


def test_nodes_older_than_what_is_remembered_have_no_site() -> None:
    marks = Marks()
    for number in range(1, MARK_LIMIT + 2):
        marks.add(number, number)
    assert marks.owner(10, "another") is None
    assert marks.owner(MARK_LIMIT - 10, "another") == MARK_LIMIT - 9
    assert marks.owner(MARK_LIMIT + 10, "another") == "another"


def test_graph_that_is_too_large_gives_partial_contributions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whygrad.engines.pytorch.graph.NODE_LIMIT", 20)
    run = record(
        """
        w = torch.ones(1, requires_grad=True)
        late = torch.ones(1, requires_grad=True)
        x = w * 2 + late
        for _ in range(30):
            x = x * 1 + w
        x.sum().backward()
        """,
        loses="more than 20 nodes",
    )
    assert run.one(BackwardBegan).partial
    written = {run.name(event.tensor): event for event in run.of(GradWritten)}
    assert written["w"].after.items == (32.0,)
    assert written["w"].partial
    assert not written["w"].hooked
    assert 0 < len(written["w"].contributions) < 31
    assert (written["late"].after.items, written["late"].contributions, written["late"].partial) == ((1.0,), (), True)


def test_graph_that_was_walked_whole_is_not_partial() -> None:
    run = record("""
        w = torch.ones(1, requires_grad=True)
        (w * 2).backward()
    """)
    assert not run.one(BackwardBegan).partial
    assert not run.one(GradWritten).partial
