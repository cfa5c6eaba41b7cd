# Exceptions that torch raises, printed by the program.
import logging
import sys
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

logging.basicConfig(stream=sys.stdout)


def show(function):
    print("==", function.__name__)
    try:
        function()
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        print(type(error), error.args == (str(error),), len(traceback.extract_tb(error.__traceback__)))
    else:
        print("no error")
    return function


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(4, 1))
        self.register_buffer("b", torch.zeros(1))

    def forward(self, x):
        return self.layers(
            x
        ) + self.b


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


@show
def shapes():
    Net()(torch.ones(1, 2))


@show
def broadcasting():
    torch.ones(2, 3) + torch.ones(4) * leaf(
        4
    )


@show
def second_backward():
    w = leaf(2)
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


@show
def second_backward_inside():
    w = leaf(2)
    hidden = w.exp()
    for _ in range(2):
        loss = (hidden * w).sum()
        loss.backward()


@show
def in_place():
    w = leaf(2)
    y = w.exp()
    z = y * 2
    y += 1
    (y.sum() + z.sum()).backward()


@show
def in_place_leaf():
    w = leaf(2)
    w += 1


@show
def in_place_item():
    w = leaf(2)
    w[0] = 3


@show
def in_place_view():
    w = leaf(4)
    a, b = w.chunk(2)
    a.mul_(2)


@show
def not_scalar():
    (leaf(2) * 2).backward()


@show
def no_grad():
    with torch.no_grad():
        loss = leaf(2).sum()
    loss.backward()


@show
def grad_shape():
    w = leaf(2)
    (w * 2).backward(torch.ones(3))


@show
def assign_grad():
    w = leaf(2)
    w.grad = torch.ones(3)


@show
def assign_grad_type():
    w = leaf(2)
    w.grad = [
        1.0
    ]


@show
def numpy_of_grad():
    leaf(2).numpy()


@show
def item_of_many():
    leaf(2).item()


@show
def boolean_of_many():
    if leaf(2) > 0:
        pass


@show
def assertion():
    w = leaf(2)
    assert w.sum() == 3, f"sum is {w.sum().item()}"


@show
def assertion_of_many():
    w = leaf(2)
    assert w == w


@show
def unused():
    a, b = leaf(1), leaf(1)
    torch.autograd.grad(a.sum(), [a, b])


@show
def integer_grad():
    torch.ones(2, dtype=torch.long, requires_grad=True)


@show
def requires_grad_of_non_leaf():
    y = leaf(2) * 2
    y.requires_grad = False


@show
def inference():
    with torch.inference_mode():
        t = torch.ones(2)
    (t * leaf(2)).sum().backward()


@show
def inference_in_place():
    with torch.inference_mode():
        t = torch.ones(2)
    t.add_(1)


@show
def dtypes():
    nn.Linear(2, 2)(torch.ones(2, dtype=torch.double))


@show
def classes():
    F.cross_entropy(leaf(2, 3), torch.tensor([0, 5]))


@show
def index():
    leaf(3)[5]


@show
def embedding():
    nn.Embedding(3, 2)(torch.tensor([4]))


@show
def attribute():
    Net().layers.missing


@show
def state():
    Net().load_state_dict({"b": torch.zeros(2), "c": 1})


@show
def hooks():
    w = leaf(2)
    y = w * 2

    def hook(g):
        return g + torch.ones(
            3
        )

    y.register_hook(hook)
    y.sum().backward()


@show
def hook_type():
    w = leaf(2)
    w.register_hook(lambda g: "text")
    w.sum().backward()


@show
def module_hook():
    net = nn.Linear(2, 2)
    net.register_forward_hook(lambda module, args, out: [][len(args)])
    net(leaf(2))


@show
def backward_hook():
    net = nn.Linear(2, 2)
    net.register_full_backward_hook(lambda module, gin, gout: 1 / 0)
    net(leaf(2)).sum().backward()


class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        ctx.kind = kind
        ctx.save_for_backward(x)
        if kind == "forward":
            return x + torch.ones(
                5)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        match ctx.kind:
            case "count":
                return g
            case "shape":
                return torch.ones(7), None
            case "type":
                return "text", None
            case "raise":
                raise ValueError(f"in backward of {tuple(x.shape)}")
            case "none":
                return None, None
            case "in place":
                g.resize_(9)
        return g, g


for kind in ("forward", "count", "shape", "type", "raise", "none", "extra"):

    @show
    def custom():
        w = leaf(2)
        Custom.apply(w * 1, kind).sum().backward()
        print(w.grad)


class NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


@show
def no_backward():
    NoBackward.apply(leaf(2)).sum().backward()


@show
def not_static():
    class Old(torch.autograd.Function):
        def forward(self, x):
            return x

    Old()(leaf(1))


@show
def once():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    w = leaf(1)
    (g,) = torch.autograd.grad(Once.apply(w * w).sum(), w, create_graph=True)
    g.backward()


@show
def checkpoint_mismatch():
    calls = []

    def f(x):
        calls.append(1)
        return x.sin().cos() if len(calls) == 1 else x.sin()

    checkpoint(f, leaf(2), use_reentrant=False).sum().backward()


@show
def checkpoint_raises():
    calls = []

    def f(x):
        calls.append(1)
        return x * (1 / (2 - len(calls)))

    checkpoint(f, leaf(2), use_reentrant=True).sum().backward()


@show
def anomaly():
    with torch.autograd.detect_anomaly(check_nan=True):
        w = torch.tensor(-1.0, requires_grad=True)
        (w.sqrt() * 2).backward()


@show
def anomaly_nested():
    with torch.autograd.set_detect_anomaly(True):
        net = nn.Sequential(nn.Linear(1, 1), nn.Sigmoid())
        x = torch.zeros(1, requires_grad=True)
        y = net(x) * (
            x / x
        )
        y.sum().backward()


@show
def optimizer_empty():
    torch.optim.SGD([], lr=0.1)


@show
def optimizer_non_leaf():
    torch.optim.SGD([leaf(1) * 2], lr=0.1)


@show
def optimizer_value():
    torch.optim.Adam([leaf(1)], lr=-1)


@show
def closure():
    torch.optim.LBFGS([leaf(1)]).step(lambda: 1 / 0)


@show
def scaler():
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD([leaf(1)], lr=0.1)
    scaler.step(optimizer)


@show
def clip():
    w = leaf(1)
    w.grad = torch.tensor([float("inf")])
    nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)


@show
def meta():
    with torch.device("meta"):
        y = torch.ones(2).sum()
    y.item()


@show
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        torch.ones(4, requires_grad=True).put_(torch.tensor([0]), torch.ones(1), accumulate=False)
    finally:
        torch.use_deterministic_algorithms(False)


@show
def func():
    torch.func.grad(lambda x: x * 2)(torch.ones(2))


@show
def vmap():
    torch.func.vmap(lambda x: x.item())(torch.ones(2))


@show
def vmap_control():
    torch.func.vmap(lambda x: x if x > 0 else -x)(torch.ones(2))


@show
def double():
    w = leaf(1)
    (g,) = torch.autograd.grad((w * w).sum(), w)
    g.backward()


@show
def retain():
    y = torch.ones(2)
    y.retain_grad()


@show
def pickled():
    import pickle

    y = leaf(2) * 2
    import copy

    copy.deepcopy(y)


@show
def conversion():
    torch.tensor([[1, 2], [3]])


@show
def from_numpy():
    torch.from_numpy([1, 2])


@show
def mixed():
    torch.cat([leaf(2), torch.ones(2, 2)])


@show
def pipeline():
    batch = {"x": torch.ones(2, 2), "y": torch.ones(3)}
    net = nn.ModuleDict({"encoder": nn.Linear(2, 4), "decoder": nn.Linear(4, 1)})
    return F.mse_loss(
        net["decoder"](net["encoder"](batch["x"])).squeeze(-1),
        batch["y"]
    ).backward()


@show
def chained():
    try:
        second_backward()
        leaf(1).foo
    except AttributeError as error:
        raise RuntimeError("while training") from error


try:
    pipeline()
except RuntimeError:
    logging.exception("training failed")
