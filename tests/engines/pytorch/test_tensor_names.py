"""Tensors are called what the user's code calls them."""

import pytest
from recording import record

from whygrad.ledger.events import Module, Named, Optimizer, RequiresGradChanged, Tensor


def test_global_name() -> None:
    run = record("w = torch.tensor(3.0, requires_grad=True)")
    assert run.names(run.id("w")) == ("w",)


def test_several_names_for_one_tensor() -> None:
    run = record("""
        w = torch.tensor(3.0, requires_grad=True)
        v = u = w
    """)
    assert run.names(run.id("w")) == ("w", "v", "u")


def test_name_passes_from_one_tensor_to_the_next() -> None:
    run = record("""
        x = torch.tensor(3.0, requires_grad=True)
        x = x * 2
        x = x * 3
    """)
    assert [run.describe(tensor) for tensor in run.find("x")] == ["x"] * 3


def test_parameters_are_called_by_the_path_of_their_module() -> None:
    run = record("""
        model = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
        model(torch.ones(1, 2))
    """)
    assert run.name(run.id("model.0.weight")) == "model.0.weight"
    assert run.tensor(run.id("model.0.bias")).shape == (1,)


def test_parameters_of_a_module_of_the_users_own() -> None:
    run = record("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(2, 1)
                self.scale = nn.Parameter(torch.ones(1))
            def forward(self, x):
                return self.layer(x) * self.scale
        net = Net()
        net(torch.ones(1, 2)).sum().backward()
    """)
    assert run.name(run.id("net.layer.weight")) == "net.layer.weight"
    assert run.name(run.id("net.scale")) == "net.scale"
    assert len(run.story("net.scale")) == 1


def test_model_made_and_used_in_a_function() -> None:
    run = record("""
        def main():
            model = nn.Linear(2, 1)
            model(torch.ones(1, 2)).sum().backward()
        main()
    """)
    assert len(run.story("model.weight")) == 1


def test_tied_weights_have_both_names() -> None:
    run = record("""
        model = nn.Sequential(nn.Embedding(4, 2), nn.Linear(2, 4, bias=False))
        model[1].weight = model[0].weight
        model(torch.tensor([1])).sum().backward()
    """)
    assert {"model.0.weight", "model.1.weight"} <= set(run.names(run.id("model.0.weight")))
    assert run.id("model.0.weight") == run.id("model.1.weight")


TIED = """
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(3, 2)
            self.head = nn.Linear(2, 3, bias=False)
            {tie}
        def forward(self, x):
            return self.head(self.emb(x))
    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.tensor([1])).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "tie",
    [
        "self.head.weight = self.emb.weight",
        "setattr(self.head, 'weight', self.emb.weight)",
        "self.head.register_parameter('weight', self.emb.weight)",
    ],
)
def test_weight_tied_while_the_model_is_built_is_one_parameter_with_two_names(tie: str) -> None:
    run = record(TIED.format(tie=tie))
    [tensor] = run.leaves()
    assert {"model.emb.weight", "model.head.weight"} <= set(run.names(tensor))
    assert run.name(tensor) in ("model.emb.weight", "model.head.weight")
    assert run.all(Optimizer)[-1].groups[0].parameters == (tensor,)
    assert [(module.path, module.parameters) for module in run.all(Module) if module.path.startswith("model.")] == [
        ("model.emb", (("weight", tensor),)),
        ("model.head", (("weight", tensor),)),
    ]


def test_weight_tied_after_the_model_was_met_takes_the_name() -> None:
    run = record("""
        emb = nn.Embedding(3, 2)
        head = nn.Linear(2, 3, bias=False)
        model = nn.ModuleDict({"emb": emb, "head": head})
        count = sum(p.numel() for p in model.parameters() if (p * 1).requires_grad)
        head.weight = emb.weight
        head(emb(torch.tensor([1]))).sum().backward()
    """)
    [tensor] = run.leaves()
    assert run.find("model.head.weight")[0] == run.find("model.emb.weight")[0] == tensor
    replaced = run.find("model.head.weight")[1]
    assert run.name(replaced) == ""


def test_replaced_parameter_with_a_gradient_keeps_its_name() -> None:
    run = record("""
        model = nn.Linear(1, 1, bias=False)
        model(torch.ones(1, 1)).sum().backward()
        model.weight = nn.Parameter(torch.ones(1, 1))
        model(torch.ones(1, 1)).sum().backward()
    """)
    new, old = run.find("model.weight")
    assert run.leaves() == (old, new)
    assert run.name(old) == run.name(new) == "model.weight"


def test_replaced_parameter_that_an_optimizer_holds_is_reported() -> None:
    run = record("""
        model = nn.Linear(1, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.weight = nn.Parameter(torch.ones(1, 1))
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
    """)
    new, old = run.find("model.weight")
    assert run.leaves() == (old, new)
    assert run.all(Optimizer)[-1].groups[0].parameters == (old,)
    assert run.all(Module)[-1].parameters == (("weight", new),)


def test_item_of_a_dict() -> None:
    run = record("""
        batch = {"x": torch.ones(2), "y": torch.zeros(2)}
        loss = (batch["x"] - batch["y"]).sum()
    """)
    assert run.names(run.id('batch["x"]')) == ('batch["x"]',)
    assert run.id('batch["x"]') != run.id('batch["y"]')


def test_item_set_in_a_dict() -> None:
    run = record("""
        batch = {}
        batch["x"] = torch.ones(2, requires_grad=True)
        batch["x"].sum().backward()
    """)
    assert run.story('batch["x"]') == ['line 4: None -> [1, 1] = [1, 1] through batch["x"].sum()']


def test_items_of_a_list() -> None:
    run = record("""
        params = [torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)]
        (params[0] + params[1]).sum().backward()
    """)
    assert len(run.story("params[0]")) == len(run.story("params[1]")) == 1
    assert run.id("params[0]") != run.id("params[1]")


def test_attribute_of_self() -> None:
    run = record("""
        class Model:
            def __init__(self):
                self.h = torch.ones(1, requires_grad=True)
            def loss(self):
                return (self.h * 2).sum()
        model = Model()
        model.loss().backward()
    """)
    assert run.story("self.h") == ["line 8: None -> [2] = [2] through self.h * 2"]
    assert next(named for named in run.of(Named) if named.name == "self.h").scope == "Model.__init__"


def test_unpacked_names() -> None:
    run = record("""
        a, (b, c) = torch.ones(1), (torch.zeros(1), torch.ones(2))
    """)
    assert run.tensor(run.id("c")).shape == (2,)
    assert run.id("a") != run.id("b")


def test_starred_name_holds_several() -> None:
    run = record("""
        first, *rest = [torch.ones(1), torch.ones(2), torch.ones(3)]
    """)
    assert run.tensor(run.id("first")).shape == (1,)
    assert run.tensor(run.id("rest[1]")).shape == (3,)


def test_loop_variable() -> None:
    run = record("""
        for row in torch.eye(2).unbind():
            total = row.sum()
    """)
    assert len(run.find("row")) == 2


def test_name_given_by_with_and_by_a_walrus() -> None:
    run = record("""
        import contextlib
        with contextlib.nullcontext(torch.ones(3)) as x:
            (y := x * 2).sum()
    """)
    assert run.tensor(run.id("x")).shape == run.tensor(run.id("y")).shape == (3,)


def test_parameter_of_a_function_is_a_name_in_it() -> None:
    run = record("""
        def loss(weight):
            return (weight * 2).sum()
        w = torch.ones(1, requires_grad=True)
        loss(w).backward()
    """)
    assert run.name(run.id("w")) == "w"
    assert run.id("weight") == run.id("w")
    assert run.name(run.id("weight")) == "w"


def test_name_of_a_function_is_valid_in_its_scope() -> None:
    run = record("""
        def step():
            h = torch.ones(1, requires_grad=True)
            return h * 2
        y = step()
    """)
    assert {(named.name, named.scope) for named in run.of(Named)} == {("h", "step"), ("y", "<module>")}


def test_tensor_without_a_name_is_described_by_where_it_was_made() -> None:
    run = record("""
        (torch.ones(1, requires_grad=True) * 2).sum().backward()
    """)
    [leaf] = run.leaves()
    assert run.describe(leaf) == "the result of `torch.ones(1, requires_grad=True)` (line 2)"


def test_comprehension_variable_is_no_name_outside() -> None:
    run = record("""
        params = [torch.ones(1, requires_grad=True) for _ in range(3)]
        loss = sum(p.sum() for p in params)
        loss.backward()
    """)
    assert [len(run.story(f"params[{index}]")) for index in range(3)] == [1, 1, 1]


def test_one_tensor_has_one_id_through_every_view_of_the_name() -> None:
    run = record("""
        w = torch.ones(1, requires_grad=True)
        holder = [w]
        again = holder[0]
        again.sum().backward()
    """)
    assert run.id("again") == run.id("w") == run.id("holder[0]")


def test_id_is_not_used_again_for_a_tensor_at_the_same_address() -> None:
    run = record("""
        for _ in range(20):
            x = torch.ones(1)
            del x
    """)
    assert len({tensor.id for tensor in run.of(Tensor)}) == 20


def test_origin_says_how_a_tensor_came_to_be() -> None:
    run = record("""
        w = torch.ones(1, requires_grad=True)
        y = w * 2
        y.backward()
        g = w.grad
        p = nn.Parameter(torch.ones(1))
        model = nn.BatchNorm1d(2)
        model(torch.ones(2, 2))
    """)
    origins = {name: run.tensor(run.id(name)).origin for name in ("w", "y", "g", "p", "model.weight")}
    assert origins == {"w": "created", "y": "result", "g": "grad", "p": "parameter", "model.weight": "parameter"}


def test_buffers_of_a_module_have_names_too() -> None:
    run = record("""
        model = nn.BatchNorm1d(2)
        model(torch.ones(2, 2))
    """)
    assert run.tensor(run.id("model.running_mean")).origin == "buffer"


def test_small_leaves_are_kept_whole_and_large_ones_by_statistics() -> None:
    run = record("""
        small = torch.arange(3.0)
        large = torch.ones(100, 100)
    """)
    assert run.tensor(run.id("small")).value.items == (0.0, 1.0, 2.0)
    assert run.tensor(run.id("large")).value is None


def test_module_named_after_its_parameters_were_met() -> None:
    run = record("""
        optimizer = torch.optim.SGD((model := nn.Linear(1, 1)).parameters(), lr=0.1)
        model(torch.ones(1, 1)).sum().backward()
    """)
    assert len(run.story("model.weight")) == 1


def test_module_path_is_the_outermost_name() -> None:
    run = record("""
        encoder = nn.Linear(1, 1)
        model = nn.Sequential(encoder, nn.Linear(1, 1))
        model(torch.ones(1, 1)).sum().backward()
    """)
    assert run.name(run.id("model.1.weight")) == "model.1.weight"
    assert len(run.story("model.0.weight")) == 1


def test_requires_grad_switched_later_is_noted() -> None:
    run = record("""
        w = torch.ones(1)
        w.requires_grad_()
        v = torch.ones(1)
        v.requires_grad = True
        v.requires_grad = False
        p = torch.ones(1, requires_grad=True)
        p.requires_grad_(False)
    """)
    changes = [(run.name(event.tensor), event.to, run.line(event.site)) for event in run.of(RequiresGradChanged)]
    assert changes == [("w", True, 3), ("v", True, 5), ("v", False, 6), ("p", False, 8)]


def test_module_frozen_by_requires_grad_is_noted() -> None:
    run = record("""
        model = nn.Linear(1, 1)
        model(torch.ones(1, 1))
        model.requires_grad_(False)
    """)
    changes = {(run.name(event.tensor), event.to, run.line(event.site)) for event in run.of(RequiresGradChanged)}
    assert changes == {("model.weight", False, 4), ("model.bias", False, 4)}
