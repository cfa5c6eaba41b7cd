"""Small programs' ledgers, written by hand for the reports: each shows one thing that a report has to say well."""

from __future__ import annotations

from collections.abc import Callable

from ledgers import Book, const, scalar, term, value
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import (
    BackwardId,
    BufferFold,
    Contribution,
    Group,
    ModuleId,
    NodeId,
    Operand,
    OptimizerId,
    Shape,
    SiteId,
    TensorId,
    Update,
)
from whygrad.ledger.values import Value


def started(source: str, program: str) -> Book:
    """A book with its environment."""
    book = Book(source, program=program, platform="Linux x86_64")
    book.add(
        events.Environment, site=book.site(1, "import torch"), engine="pytorch", version="2.13.0+cpu", numpy="2.4.0",
        threads=1, deterministic=False, default_dtype="float32",
    )  # fmt: skip
    return book


def backward(
    book: Book, call: SiteId, root: TensorId, root_value: Value,
    writes: dict[TensorId, tuple[Value | None, tuple[Contribution, ...], Value]],
) -> BackwardId:  # fmt: skip
    """A pass that wrote (before, terms, after) into each of its leaves."""
    number = BackwardId(book.new("backward"))
    book.add(
        events.BackwardBegan, site=call, id=number, call="backward", roots=(root,), root_nodes=(None,),
        root_value=root_value, nodes=3, leaves=tuple(writes),
    )  # fmt: skip
    for leaf, (before, terms, after) in writes.items():
        book.add(
            events.GradWritten, site=call, tensor=leaf, backward=number, before=before, contributions=terms, after=after
        )
    book.add(events.BackwardEnded, site=call, id=number)
    return number


def reset(book: Book, site: SiteId, leaf: TensorId, before: Value | None, by: str = "SGD.zero_grad") -> None:
    book.add(events.GradReset, site=site, tensor=leaf, to="none", by=by, before=before)


def ended(book: Book, how: str = "returned", code: int = 0) -> Ledger:
    book.add(events.Ended, how=how, exit_code=code)
    return book.ledger


def two_terms() -> Ledger:
    """47 = 27 (w ** 3) + 20 (w * 2 * 10), within one backward; b is frozen, c unused, d used but not reached."""
    source = (
        "import torch\nw = torch.tensor(3.0, requires_grad=True)\nb = torch.tensor(1.0, requires_grad=True)\n"
        "c = torch.tensor(1.0, requires_grad=True)\nd = torch.tensor([1.0, 2.0], requires_grad=True)\n"
        "b.requires_grad_(False)\ne = d * 2\nloss = w ** 3 + w * 20\nloss.backward()\n"
    )
    book = started(source, "terms.py")
    w = book.leaf("w", scalar(3.0), book.site(2, "torch.tensor(3.0, requires_grad=True)"))
    b = book.leaf("b", scalar(1.0), book.site(3, "torch.tensor(1.0, requires_grad=True)"))
    book.leaf("c", scalar(1.0), book.site(4, "torch.tensor(1.0, requires_grad=True)"))
    d = book.leaf("d", value((2,), 1, 2), book.site(5, "torch.tensor([1.0, 2.0], requires_grad=True)"))
    book.add(
        events.RequiresGradChanged, site=book.site(6, "b.requires_grad_(False)"), tensor=b, to=False,
        by="requires_grad_",
    )  # fmt: skip
    book.operation(book.site(7, "d * 2"), "mul", [Operand(tensor=d, code="d"), const(2)], value((2,), 2, 4))
    loss, _ = book.operation(book.site(8, "w ** 3 + w * 20"), "add", [], scalar(87.0))
    book.named(loss, "loss")
    cube, line = book.site(8, "w ** 3"), book.site(8, "w * 20")
    terms = term(27.0, 1, cube, "pow"), term(20.0, 2, line, "mul")
    backward(book, book.site(9, "loss.backward()"), loss, scalar(87.0), {w: (None, terms, scalar(47.0))})
    return ended(book)


def never_reset(steps: int = 300) -> Ledger:
    """A loop without a reset, in full depth: the buffer grows."""
    source = (
        "import torch\nw = torch.tensor([3.0, 1.0], requires_grad=True)\nfor _ in range(300):\n"
        "    loss = (w * 2).square().sum()\n    loss.backward()\n"
    )
    book = started(source, "grows.py")
    w = book.leaf("w", value((2,), 3, 1), book.site(2, "torch.tensor([3.0, 1.0], requires_grad=True)"))
    made, call = book.site(4, "w * 2"), book.site(5, "loss.backward()")
    before = None
    for number in range(1, steps + 1):
        loss, _ = book.operation(book.site(4, "(w * 2).square().sum()"), "sum", [], scalar(40.0))
        book.named(loss, "loss")
        after = value((2,), 24.0 * number, 8.0 * number)
        terms = (term(value((2,), 24, 8), 1, made, "mul"),)
        backward(book, call, loss, scalar(40.0), {w: (before, terms, after)})
        before = after
    return ended(book)


def micro_batches(steps: int = 50, batches: int = 4) -> Ledger:
    """Gradients of four micro-batches are added up before each step of the optimizer; one weight is frozen."""
    source = (
        "import torch\nmodel = torch.nn.Linear(3, 1, bias=False)\nunused = torch.nn.Parameter(torch.ones(2))\n"
        "optimizer = torch.optim.SGD([model.weight, unused], lr=0.1)\nfor batch in batches:\n"
        "    for x in batch:\n        loss = model(x).mean() / 4\n        loss.backward()\n    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
    )
    book = started(source, "micro_batches.py")
    book.add(events.Seeded, generator="torch", seed="0")
    made = book.site(2, "torch.nn.Linear(3, 1, bias=False)")
    weight = book.leaf("model.weight", value((1, 3), 0.1, 0.2, 0.3), made, origin="parameter")
    unused = book.leaf("unused", value((2,), 1, 1), book.site(3, "torch.nn.Parameter(torch.ones(2))"))
    model = ModuleId(book.new("module"))
    book.add(
        events.Module, site=made, id=model, path="model", kind="Linear", parameters=(("weight", weight),),
        config="in_features=3, out_features=1, bias=False",
    )  # fmt: skip
    optimizer = OptimizerId(book.new("optimizer"))
    book.add(
        events.Optimizer, site=book.site(4, "torch.optim.SGD([model.weight, unused], lr=0.1)"), id=optimizer,
        kind="SGD", groups=(Group(parameters=(weight, unused), options={"lr": 0.1}),), name="optimizer",
    )  # fmt: skip
    forward, call = book.site(7, "model(x)"), book.site(8, "loss.backward()")
    step_at, reset_at = book.site(9, "optimizer.step()"), book.site(10, "optimizer.zero_grad()")
    for step in range(steps):
        book.step = step
        before = None
        for number in range(batches):
            size = 16 if number + 1 < batches else 7
            loss, _ = book.operation(book.site(7, "model(x).mean() / 4"), "div", [], scalar(1.0 / (step + 1)))
            book.named(loss, "loss")
            book.add(
                events.ModuleCalled, site=forward, module=model, training=True, grad_mode="on",
                inputs=(Shape(tensor=None, shape=(size, 3), dtype="float32"),),
                outputs=(Shape(tensor=None, shape=(size, 1), dtype="float32"),),
            )  # fmt: skip
            after = value((1, 3), *((number + 1.0) * factor / (step + 1) for factor in (1, 2, 2)))
            each = (term(value((1, 3), 1, 2, 2), 1, forward, "linear"),)
            backward(book, call, loss, scalar(1.0 / (step + 1)), {weight: (before, each, after)})
            before = after
        book.step = step + 1
        update = Update(tensor=weight, grad=before, change=0.4 / (step + 1), size=0.3742)
        book.add(
            events.OptimizerStepped, site=step_at, optimizer=optimizer, updates=(update,), skipped=(unused,), lr=(0.1,)
        )
        reset(book, reset_at, weight, before)
    return ended(book)


def deep_network(layers: int = 6) -> Ledger:
    """One backward through six layers: twelve parameters with like histories, too large to be printed."""
    source = (
        "import torch\nmodel = build()\nloss = model(torch.randn(64, 784)).square().mean()\nloss.backward()\n"
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
    )
    book = started(source, "deep.py")
    made, forward = book.site(2, "build()"), book.site(3, "model(torch.randn(64, 784))")
    shapes = [shape for _ in range(layers) for shape in ((784, 784), (784,))]
    leaves = {}
    for number, shape in enumerate(shapes):
        start = Value(shape=shape, dtype="float32", norm=16.0, low=-0.04, high=0.04)
        name = f"model.{number // 2}.{'bias' if number % 2 else 'weight'}"
        leaves[book.leaf(name, start, made, origin="parameter")] = Value(
            shape=shape, dtype="float32", norm=0.81 / (number + 1), low=-0.01, high=0.02
        )
    loss, _ = book.operation(book.site(3, "model(torch.randn(64, 784)).square().mean()"), "mean", [], scalar(0.33))
    book.named(loss, "loss")
    writes = {
        leaf: (None, (Contribution(value=grad, node=NodeId(1), site=forward, operation="linear"),), grad)
        for leaf, grad in leaves.items()
    }
    backward(book, book.site(4, "loss.backward()"), loss, scalar(0.33), writes)
    clip = book.site(5, "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)")
    for leaf, grad in leaves.items():
        after = Value(shape=grad.shape, dtype="float32", norm=(grad.magnitude or 0.0) / 2, low=-0.005, high=0.01)
        book.add(events.GradChanged, site=clip, tensor=leaf, by="clip_grad_norm_", before=grad, after=after)
    return ended(book)


def made_anew(turns: int = 40) -> Ledger:
    """A leaf of the same name made in every turn of a loop, its gradient asked for with autograd.grad."""
    source = (
        "import torch\nfor i in range(40):\n    x = torch.tensor(float(i), requires_grad=True)\n"
        "    (g,) = torch.autograd.grad(x ** 2, x)\n"
    )
    book = started(source, "anew.py")
    made, call = (
        book.site(3, "torch.tensor(float(i), requires_grad=True)"),
        book.site(4, "torch.autograd.grad(x ** 2, x)"),
    )
    square = book.site(4, "x ** 2")
    for turn in range(turns):
        x = book.leaf("x", scalar(float(turn)), made)
        root, _ = book.operation(square, "pow", [Operand(tensor=x, code="x"), const(2)], scalar(float(turn) ** 2))
        number = BackwardId(book.new("backward"))
        book.add(
            events.BackwardBegan, site=call, id=number, call="autograd.grad", roots=(root,), root_nodes=(None,),
            root_value=scalar(float(turn) ** 2), nodes=2, leaves=(x,), inputs=(x,),
        )  # fmt: skip
        book.add(
            events.GradReturned, site=call, tensor=x, backward=number, value=scalar(2.0 * turn),
            contributions=(term(2.0 * turn, 1, square, "pow"),),
        )  # fmt: skip
        book.add(events.BackwardEnded, site=call, id=number)
    return ended(book)


def not_a_number() -> Ledger:
    """log(0) in a helper file sends NaN into two parameters; the program then fails an assert that nobody catches."""
    source = "import torch\nfrom losses import entropy\nloss = entropy(model(x))\nloss.backward()\nassert good(loss)\n"
    book = started(source, "train.py")
    book.source("/home/someone/losses.py", "def entropy(p):\n    return -(p * p.log()).sum()\n")
    log = book.site(2, "p.log()", "entropy", "/home/someone/losses.py")
    bad = Value(shape=(10, 4), dtype="float32", norm="nan", low="nan", high="nan", nan=12)
    forward, call = book.site(3, "model(x)"), book.site(4, "loss.backward()")
    leaves = [
        book.leaf(f"model.{name}", Value(shape=(10, 4), dtype="float32", norm=1.0), forward, origin="parameter")
        for name in ("weight", "bias")
    ]
    loss, _ = book.operation(book.site(3, "entropy(model(x))"), "neg", [], scalar(float("nan")))
    book.named(loss, "loss")
    terms = (Contribution(value=bad, node=NodeId(1), site=log, operation="log"),)
    backward(book, call, loss, scalar(float("nan")), dict.fromkeys(leaves, (None, terms, bad)))
    check = book.check(5, "good(loss)", False, ("good(loss)", "False"))
    book.add(events.Raised, site=check, kind="AssertionError", text="")
    return ended(book, "exception", 1)


def overwritten() -> Ledger:
    """A tensor that exp saved is written in place before the backward; a detach, a frozen layer, warnings, losses."""
    source = (
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\ny = x.exp()\nh = y.detach()\n"
        "y.add_(1)\ny.sum().backward()\n"
    )
    book = started(source, "overwritten.py")
    x = book.leaf("x", value((2,), 1, 2), book.site(2, "torch.tensor([1.0, 2.0], requires_grad=True)"))
    y, node = book.operation(book.site(3, "x.exp()"), "exp", [Operand(tensor=x, code="x")], value((2,), 2.718, 7.389))
    book.named(y, "y")
    h, _ = book.operation(
        book.site(4, "y.detach()"), "detach", [Operand(tensor=y, code="y")], value((2,), 2.718, 7.389), grad=False,
        cut="detach", no_node="cut",
    )  # fmt: skip
    book.named(h, "h")
    add = book.site(5, "y.add_(1)")
    book.add(events.DataChanged, site=add, tensor=y, by="add_", version_before=0, version=1)
    total, _ = book.operation(book.site(6, "y.sum()"), "sum", [Operand(tensor=y, code="y")], scalar(12.1))
    book.add(events.Node, site=book.site(3, "x.exp()"), id=node, name="ExpBackward0", edges=(events.Edge(leaf=x),))
    call = book.site(6, "y.sum().backward()")
    number = BackwardId(book.new("backward"))
    book.add(
        events.BackwardBegan, site=call, id=number, call="backward", roots=(total,), root_nodes=(None,),
        root_value=scalar(12.1), nodes=4, leaves=(x,),
    )  # fmt: skip
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [2]], which is output 0 of ExpBackward0, is at version 1; expected version 0 instead. "
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True)."
    )
    book.add(
        events.BackwardEnded,
        site=call,
        id=number,
        error=f"RuntimeError: {text}",
        blamed=node,
        written_by=add,
        written=y,
    )
    book.add(events.Raised, site=call, kind="RuntimeError", text=text)
    book.add(events.Warned, site=add, kind="UserWarning", text="a warning\nof two lines")
    book.add(events.Noted, site=call, text="torch.compile: recorded at its boundary only")
    book.add(events.Lost, site=call, what="the value of y", why="it was freed before it was read")
    return ended(book, "exception", 1)


def long_training(steps: int = 10_000) -> Ledger:
    """`auto` depth: full, light, full again for one step with a new shape, light to the end."""
    source = (
        "import torch\nmodel = torch.nn.Linear(784, 10)\noptimizer = torch.optim.Adam(model.parameters())\n"
        "for x, y in loader:\n    loss = criterion(model(x), y)\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n"
    )
    book = started(source, "long.py")
    made, forward, call = (
        book.site(2, "torch.nn.Linear(784, 10)"),
        book.site(5, "model(x)"),
        book.site(7, "loss.backward()"),
    )
    leaves = [
        book.leaf(f"model.{name}", Value(shape=shape, dtype="float32", norm=1.0), made, origin="parameter")
        for name, shape in (("weight", (10, 784)), ("bias", (10,)))
    ]
    optimizer = OptimizerId(book.new("optimizer"))
    group = Group(parameters=tuple(leaves), options={"lr": 0.001})
    book.add(
        events.Optimizer, site=book.site(3, "torch.optim.Adam(model.parameters())"), id=optimizer, kind="Adam",
        groups=(group,), name="optimizer",
    )  # fmt: skip
    before: dict[TensorId, Value] = {}

    def full(step: int, size: float) -> None:
        book.step = step
        loss, _ = book.operation(book.site(5, "criterion(model(x), y)"), "cross_entropy", [], scalar(size))
        book.named(loss, "loss")
        for leaf, grad in before.items():
            reset(book, book.site(6, "optimizer.zero_grad()"), leaf, grad, "Adam.zero_grad")
        for leaf in leaves:
            before[leaf] = Value(shape=(10, 784), dtype="float32", norm=size, low=-0.1, high=0.1)
        writes = {
            leaf: (None, (Contribution(value=grad, node=NodeId(1), site=forward, operation="linear"),), grad)
            for leaf, grad in before.items()
        }
        backward(book, call, loss, scalar(size), writes)
        updates = tuple(Update(tensor=leaf, grad=grad, change=0.01 * size, size=1.0) for leaf, grad in before.items())
        book.add(
            events.OptimizerStepped, site=book.site(8, "optimizer.step()"), optimizer=optimizer, updates=updates,
            lr=(0.001,),
        )  # fmt: skip

    def light(first: int, last: int, start: float, end: float) -> None:
        count = last - first + 1
        book.add(events.DepthChanged, depth="light", why="the same has been seen 5 times")
        folds = tuple(
            BufferFold(
                tensor=leaf, writes=count, resets=count, sampled=count // 100, norm_first=start, norm_last=end,
                norm_low=end, norm_high=start * 1.1,
            )
            for leaf in leaves
        )  # fmt: skip
        book.add(
            events.StepsFolded, first=first, last=last, backwards=count, optimizer_steps=count, buffers=folds,
            loss_first=start, loss_last=end, loss_low=end, loss_high=start * 1.1,
        )  # fmt: skip

    for step in range(1, 6):
        full(step, 2.3 - 0.1 * step)
    light(6, 4999, 1.8, 0.6)
    book.add(events.DepthChanged, depth="full", why="a new shape")
    full(5000, 0.59)
    light(5001, steps, 0.58, 0.02)
    return ended(book)


STORIES: dict[str, Callable[[], Ledger]] = {
    story.__name__: story
    for story in (
        two_terms, never_reset, micro_batches, deep_network, made_anew, not_a_number, overwritten, long_training,
    )
}  # fmt: skip
