"""Ledgers written by hand: what the readers of a ledger are tested on, without an engine.

`Book` numbers the events and finds columns in the source; `gradient_lab()` is the whole story of
examples/gradient_lab.py, `folded_loop()` a long training loop, `freed_graph()` a second backward that failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whygrad.ledger import Ledger, events
from whygrad.ledger.events import (
    BackwardId,
    Contribution,
    Edge,
    Group,
    ModuleId,
    NodeId,
    Operand,
    OptimizerId,
    Saved,
    Shape,
    SiteId,
    TensorId,
    Update,
)
from whygrad.ledger.values import Value, whole

EXAMPLES = Path(__file__).parent.parent / "examples"


def scalar(number: float, dtype: str = "float32") -> Value:
    return whole((), dtype, [number])


def value(shape: Sequence[int], *items: float, dtype: str = "float32") -> Value:
    return whole(shape, dtype, items)


def const(constant: object, **fields: Any) -> Operand:
    return Operand(constant=constant, **fields)


def term(number: float | Value, node: int | None = None, site: int | None = None, operation: str = "") -> Contribution:
    """One contribution; a number stands for a scalar tensor."""
    known = number if isinstance(number, Value) else scalar(number)
    return Contribution(
        value=known,
        node=None if node is None else NodeId(node),
        site=None if site is None else SiteId(site),
        operation=operation,
    )


class Book:
    """A ledger in the making.

    >>> book = Book("w = 1\\n", program="lab.py")
    >>> book.add(events.Noted, text="by hand").seq
    2
    """

    def __init__(self, source: str = "", program: str = "program.py", **header: Any) -> None:
        fields: dict[str, Any] = {
            "engine": "pytorch", "python": "3.12.3", "platform": "Linux-x86_64", "argv": (program,),
        } | header  # fmt: skip
        self.header = events.Header(whygrad="0.1.0", schema=1, program=program, **fields)
        self.events: list[events.AnyEvent] = []
        self.step = 0
        self.thread = 0
        self._lines = {program: source.splitlines()}
        self._sites: dict[tuple[str, int, str], SiteId] = {}
        self._next = {"tensor": 0, "node": 0, "module": 0, "optimizer": 0, "backward": 0}
        if source:
            self.source(program, source)

    @property
    def ledger(self) -> Ledger:
        """The ledger so far (it grows with the book)."""
        return Ledger(self.header, self.events)

    def add(self, kind: Any, /, **fields: Any) -> Any:
        """Append an event of a kind; `seq`, and the current step and thread, are filled in."""
        event = kind(seq=len(self.events) + 1, **({"step": self.step, "thread": self.thread} | fields))
        self.events.append(event)
        return event

    def new(self, entity: str) -> int:
        self._next[entity] += 1
        return self._next[entity]

    def source(self, path: str, text: str) -> None:
        self._lines[path] = text.splitlines()
        self.add(events.Source, path=path, sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)

    def site(self, line: int, code: str, function: str = "<module>", path: str = "") -> SiteId:
        """The site of an expression; its column is where `code` stands in the source's line (0 if it does not)."""
        path = path or self.header.program
        key = (path, line, code)
        if key not in self._sites:
            text = self._lines.get(path, [])
            column = max(text[line - 1].find(code.splitlines()[0]), 0) if line <= len(text) else 0
            self._sites[key] = SiteId(len(self._sites) + 1)
            extra = code.count("\n")
            self.add(
                events.Site, id=self._sites[key], path=path, line=line, column=column, end_line=line + extra,
                end_column=len(code.splitlines()[-1]) if extra else column + len(code), function=function, code=code,
            )  # fmt: skip
        return self._sites[key]

    def tensor(self, shape: Sequence[int] = (), **fields: Any) -> TensorId:
        """A new tensor: by default the float32 result of an operation."""
        made = {"dtype": "float32", "device": "cpu", "leaf": False, "requires_grad": False, "origin": "result"}
        tensor = TensorId(self.new("tensor"))
        self.add(events.Tensor, id=tensor, shape=tuple(shape), **(made | fields))
        return tensor

    def leaf(self, name: str, start: Value, site: int | None = None, **fields: Any) -> TensorId:
        """A leaf that requires grad, with its name."""
        made = {"leaf": True, "requires_grad": True, "origin": "created", "value": start, "dtype": start.dtype}
        tensor = self.tensor(start.shape, site=site, **(made | fields))
        self.add(events.Named, site=site, tensor=tensor, name=name, scope="<module>")
        return tensor

    def named(self, tensor: int, name: str, site: int | None = None, scope: str = "<module>") -> None:
        self.add(events.Named, site=site, tensor=tensor, name=name, scope=scope)

    def operation(
        self, site: int, function: str, inputs: Sequence[Operand], result: Value | None = None, *,
        grad: bool = True, **fields: Any,
    ) -> tuple[TensorId, NodeId | None]:  # fmt: skip
        """An operation with one new result; with `grad`, it made a node (written at the backward, by `node`)."""
        shape = result.shape if result is not None else ()
        output = self.tensor(shape, requires_grad=grad, leaf=not grad, site=site)
        node = NodeId(self.new("node")) if grad else None
        self.add(
            events.Operation, site=site, function=function, inputs=tuple(inputs), outputs=(output,), node=node,
            value=result, **fields,
        )  # fmt: skip
        return output, node

    def check(self, line: int, code: str, held: bool, *sides: tuple[str, str]) -> SiteId:
        site = self.site(line, f"assert {code}")
        self.add(events.Check, site=site, code=code, held=held, sides=sides)
        return site


# --- examples/gradient_lab.py -----------------------------------------------------------------------


def gradient_lab() -> Ledger:
    """All that happens in examples/gradient_lab.py, in order, as the recorder would write it in `full` depth."""
    source = (EXAMPLES / "gradient_lab.py").read_text(encoding="utf-8")
    book = Book(source, program="gradient_lab.py", depth="full")
    book.add(
        events.Environment, site=book.site(3, "import torch"), engine="pytorch", version="2.13.0+cpu", numpy="2.4.0",
        threads=2, deterministic=False, default_dtype="float32",
    )  # fmt: skip
    weight = book.leaf("w", scalar(3.0), book.site(7, "torch.tensor(3.0, requires_grad=True)"))
    book.add(
        events.Operation, site=book.site(7, "torch.tensor(3.0, requires_grad=True)"), function="torch.tensor",
        inputs=(const(3.0), const(True, keyword="requires_grad")), outputs=(weight,), value=scalar(3.0),
    )  # fmt: skip
    expression = "(w * 2.0 - 1.0).square()"
    loss = _squared_error(book, weight, 8)
    book.named(loss, "loss", book.site(8, f"loss = {expression}"))
    _backward(book, weight, loss, book.site(9, "loss.backward()"), line=8, before=None)
    buffer = book.tensor((), leaf=True, origin="unknown", site=book.site(10, "w.grad"), value=scalar(20.0))
    _grad_is(book, buffer, 10, 20.0, 20.0)

    second = _squared_error(book, weight, 13)
    _backward(book, weight, second, book.site(13, f"{expression}.backward()"), line=13, before=20.0)
    _grad_is(book, buffer, 14, 40.0, 40.0)
    failed = _grad_is(book, buffer, 16, 40.0, 20.0)
    handler = book.site(17, "except AssertionError:")
    book.add(events.Raised, site=failed, kind="AssertionError", text="", caught=handler)

    book.add(
        events.GradReset, site=book.site(22, "w.grad = None"), tensor=weight, to="none", by="= None",
        before=scalar(40.0),
    )  # fmt: skip
    third = _squared_error(book, weight, 23)
    _backward(book, weight, third, book.site(23, f"{expression}.backward()"), line=23, before=None)
    buffer = book.tensor((), leaf=True, origin="unknown", site=book.site(24, "w.grad"), value=scalar(20.0))
    _grad_is(book, buffer, 24, 20.0, 20.0)
    _modes(book)
    book.add(events.Ended, how="returned", exit_code=0)
    return book.ledger


def _squared_error(book: Book, weight: TensorId, line: int) -> TensorId:
    """(w * 2 - 1)², with w = 3: 6, 5, 25."""
    product, _ = book.operation(
        book.site(line, "w * 2.0"), "mul", [Operand(tensor=weight, code="w"), const(2.0, code="2.0")], scalar(6.0)
    )
    difference, _ = book.operation(
        book.site(line, "w * 2.0 - 1.0"), "sub", [Operand(tensor=product, code="w * 2.0"), const(1.0, code="1.0")],
        scalar(5.0),
    )  # fmt: skip
    square, _ = book.operation(
        book.site(line, "(w * 2.0 - 1.0).square()"), "square", [Operand(tensor=difference, code="w * 2.0 - 1.0")],
        scalar(25.0),
    )  # fmt: skip
    return square


def _backward(
    book: Book, weight: TensorId, loss: TensorId, call: SiteId, *, line: int, before: float | None
) -> None:  # fmt: skip
    power = NodeId(book._next["node"])
    subtract, multiply = NodeId(power - 1), NodeId(power - 2)
    product = book.site(line, "w * 2.0")
    book.add(
        events.Node, site=product, id=multiply, name="MulBackward0", edges=(Edge(leaf=weight),),
        saved=(Saved(slot="other", tensor=None, shape=()),),
    )  # fmt: skip
    book.add(
        events.Node, site=book.site(line, "w * 2.0 - 1.0"), id=subtract, name="SubBackward0",
        edges=(Edge(node=multiply),),
    )  # fmt: skip
    book.add(
        events.Node, site=book.site(line, "(w * 2.0 - 1.0).square()"), id=power, name="PowBackward0",
        edges=(Edge(node=subtract),), saved=(Saved(slot="self", tensor=TensorId(loss - 1), shape=(), version=0),),
    )  # fmt: skip
    backward = BackwardId(book.new("backward"))
    book.add(
        events.BackwardBegan, site=call, id=backward, call="backward", roots=(loss,), root_nodes=(power,),
        root_value=scalar(25.0), nodes=4, leaves=(weight,),
    )  # fmt: skip
    book.add(
        events.GradWritten, site=call, tensor=weight, backward=backward,
        before=None if before is None else scalar(before),
        contributions=(term(20.0, multiply, product, "mul"),), after=scalar((before or 0.0) + 20.0),
    )  # fmt: skip
    book.add(events.BackwardEnded, site=call, id=backward, freed=(multiply, power))


def _grad_is(book: Book, buffer: TensorId, line: int, actual: float, expected: float) -> SiteId:
    book.add(
        events.Operation, site=book.site(line, "w.grad.item()"), function="item",
        inputs=(Operand(tensor=buffer, code="w.grad"),), value=scalar(actual),
    )  # fmt: skip
    sides = ("w.grad.item()", str(actual)), (str(expected), str(expected))
    return book.check(line, f"w.grad.item() == {expected}", actual == expected, *sides)


def _modes(book: Book) -> None:
    line_26 = book.site(26, "torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False), torch.nn.Dropout(p=1.0))")
    weight = book.leaf("model.0.weight", value((1, 2), 0.48, -0.12), line_26, origin="parameter")
    sequential, linear, dropout = (ModuleId(book.new("module")) for _ in range(3))
    book.add(events.Module, site=line_26, id=sequential, path="model", kind="Sequential")
    book.add(
        events.Module, site=line_26, id=linear, path="model.0", kind="Linear", parameters=(("weight", weight),),
        config="in_features=2, out_features=1, bias=False",
    )  # fmt: skip
    book.add(events.Module, site=line_26, id=dropout, path="model.1", kind="Dropout", config="p=1.0, inplace=False")

    def no_grad(line: int, entered: bool) -> None:
        mode = "off" if entered else "on"
        book.add(
            events.GradModeChanged, site=book.site(line, "torch.no_grad()"), by="no_grad", entered=entered, mode=mode
        )

    no_grad(27, True)
    copied = book.site(28, "model[0].weight.copy_(torch.tensor([[2.0, -1.0]]))")
    start = book.tensor(
        (1, 2), leaf=True, origin="created", site=book.site(28, "torch.tensor([[2.0, -1.0]])"),
        value=value((1, 2), 2.0, -1.0),
    )  # fmt: skip
    book.add(
        events.Operation, site=book.site(28, "torch.tensor([[2.0, -1.0]])"), function="torch.tensor",
        inputs=(const([[2.0, -1.0]]),), outputs=(start,), value=value((1, 2), 2.0, -1.0),
    )  # fmt: skip
    book.add(
        events.Operation, site=copied, function="copy_", in_place=True, no_node="grad mode off", outputs=(weight,),
        inputs=(Operand(tensor=weight, code="model[0].weight"), Operand(tensor=start)), value=value((1, 2), 2.0, -1.0),
    )  # fmt: skip
    book.add(events.DataChanged, site=copied, tensor=weight, by="copy_", version_before=1, version=2)
    no_grad(27, False)
    line_29 = book.site(29, "torch.tensor([[3.0, 4.0]])")
    inputs = book.tensor((1, 2), leaf=True, origin="created", site=line_29, value=value((1, 2), 3.0, 4.0))
    book.add(
        events.Operation, site=line_29, function="torch.tensor", inputs=(const([[3.0, 4.0]]),), outputs=(inputs,),
        value=value((1, 2), 3.0, 4.0),
    )  # fmt: skip
    book.named(inputs, "x", book.site(29, "x = torch.tensor([[3.0, 4.0]])"))

    def mode(line: int, call: str, changed: bool) -> None:
        training = call == "train"
        paths = tuple((path, not training) for path in ("model", "model.0", "model.1")) if changed else ()
        book.add(
            events.ModeChanged, site=book.site(line, f"model.{call}()"), module=sequential, call=call,
            training=training, changed=paths,
        )  # fmt: skip

    def call(line: int, result: float, *, training: bool, grad: bool = True) -> TensorId:
        """model(x): Linear gives 2 · 3 - 1 · 4 = 2, Dropout(p=1) gives 0 in training and its input otherwise."""
        site = book.site(line, "model(x)")
        mode_name = "on" if grad else "off"
        why = "" if grad else "grad mode off"
        hidden, node = book.operation(
            site, "linear", [Operand(tensor=inputs), Operand(tensor=weight)], value((1, 1), 2.0), grad=grad, no_node=why
        )
        output = hidden
        if training:
            output, node = book.operation(
                site, "dropout", [Operand(tensor=hidden)], value((1, 1), result), grad=grad, no_node=why
            )
        row, one, last = ((tensor, shape) for tensor, shape in ((inputs, (1, 2)), (hidden, (1, 1)), (output, (1, 1))))
        for module, before, after, depth in (
            (linear, row, one, 1),
            (dropout, one, last, 1),
            (sequential, row, last, 0),
        ):
            number = 2.0 if module == linear else result
            book.add(
                events.ModuleCalled, site=site, module=module, training=training, grad_mode=mode_name, depth=depth,
                inputs=(Shape(*before, "float32"),), outputs=(Shape(*after, "float32"),), value=value((1, 1), number),
            )  # fmt: skip
        book.add(
            events.Operation, site=site, function="call", inputs=(Operand(tensor=inputs, code="x"),),
            outputs=(output,), node=node, no_node=why, value=value((1, 1), result),
        )  # fmt: skip
        return output

    mode(31, "train", changed=False)
    call(32, 0.0, training=True)
    book.check(32, "torch.equal(model(x), torch.zeros(1, 1))", True)
    mode(34, "eval", changed=True)
    y = call(35, 2.0, training=False)
    book.named(y, "y", book.site(35, "y = model(x)"))
    book.add(
        events.Operation, site=book.site(36, "y.item()"), function="item", inputs=(Operand(tensor=y, code="y"),),
        cut="item", value=scalar(2.0),
    )  # fmt: skip
    book.check(
        36, "y.requires_grad and y.item() == 2.0", True, ("y.requires_grad", "True"), ("y.item() == 2.0", "True")
    )
    no_grad(37, True)
    without = call(38, 2.0, training=False, grad=False)
    book.named(without, "y_without_graph", book.site(38, "y_without_graph = model(x)"))
    no_grad(37, False)
    book.check(39, "not y_without_graph.requires_grad", True, ("y_without_graph.requires_grad", "False"))
    book.check(40, "y_without_graph.item() == 2.0", True, ("y_without_graph.item()", "2.0"), ("2.0", "2.0"))
    mode(42, "train", changed=True)
    no_grad(43, True)
    call(44, 0.0, training=True, grad=False)
    book.check(
        44, "model.training and model(x).item() == 0.0", True, ("model.training", "True"),
        ("model(x).item() == 0.0", "True"),
    )  # fmt: skip
    no_grad(43, False)

    code = "torch.tensor([[3.0, 4.0, 5.0]])"
    three = book.tensor((1, 3), leaf=True, origin="created", site=book.site(47, code), value=value((1, 3), 3, 4, 5))
    book.add(
        events.Operation, site=book.site(47, code), function="torch.tensor", inputs=(const([[3.0, 4.0, 5.0]]),),
        outputs=(three,), value=value((1, 3), 3.0, 4.0, 5.0),
    )  # fmt: skip
    site = book.site(47, f"model({code})")
    text = "mat1 and mat2 shapes cannot be multiplied (1x3 and 2x1)"
    for module, depth, broken in (
        (linear, 1, "Linear(2, 1) expected 2 features in the last dimension, got 3"),
        (sequential, 0, ""),
    ):
        book.add(
            events.ModuleCalled, site=site, module=module, training=True, grad_mode="on", depth=depth,
            inputs=(Shape(three, (1, 3), "float32"),), error=f"RuntimeError: {text}", broken=broken,
        )  # fmt: skip
    book.add(events.Raised, site=site, kind="RuntimeError", text=text, caught=book.site(48, "except RuntimeError:"))


# --- other programs ---------------------------------------------------------------------------------


def folded_loop(steps: int = 303) -> Ledger:
    """A training loop whose first three steps were recorded in full, and the others folded into one event."""
    source = (
        "import torch\n\nmodel = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for x, target in batches:\n    optimizer.zero_grad()\n    loss = (model(x) - target).square().mean()\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    book = Book(source, program="train.py")
    made = book.site(3, "torch.nn.Linear(2, 1)")
    weight = book.leaf("model.weight", value((1, 2), 0.5, -0.25), made, origin="parameter")
    bias = book.leaf("model.bias", value((1,), 0.125), made, origin="parameter")
    book.add(
        events.Module, site=made, id=ModuleId(book.new("module")), path="model", kind="Linear",
        parameters=(("weight", weight), ("bias", bias)), config="in_features=2, out_features=1, bias=True",
    )  # fmt: skip
    optimizer = OptimizerId(book.new("optimizer"))
    group = Group(parameters=(weight, bias), options={"lr": 0.1, "momentum": 0})
    built = book.site(4, "torch.optim.SGD(model.parameters(), lr=0.1)")
    book.add(events.Optimizer, site=built, id=optimizer, kind="SGD", groups=(group,), name="optimizer")
    call, mean = book.site(8, "loss.backward()"), book.site(7, "model(x)")
    gradient: dict[TensorId, Value] = {}
    for step in range(1, 4):
        book.step = step
        for tensor, before in gradient.items():
            book.add(
                events.GradReset, site=book.site(6, "optimizer.zero_grad()"), tensor=tensor, to="none",
                by="SGD.zero_grad", before=before,
            )  # fmt: skip
        loss, node = book.operation(mean, "mean", [], scalar(1.0 / step))
        book.named(loss, "loss", book.site(7, "loss = (model(x) - target).square().mean()"))
        backward = BackwardId(book.new("backward"))
        book.add(
            events.BackwardBegan, site=call, id=backward, call="backward", roots=(loss,), root_nodes=(node,),
            root_value=scalar(1.0 / step), nodes=6, leaves=(weight, bias),
        )  # fmt: skip
        gradient = {weight: value((1, 2), 0.5 / step, 0.25 / step), bias: value((1,), 0.5 / step)}
        for tensor, after in gradient.items():
            book.add(
                events.GradWritten, site=call, tensor=tensor, backward=backward, before=None,
                contributions=(term(after, node, mean, "linear"),), after=after,
            )  # fmt: skip
        book.add(events.BackwardEnded, site=call, id=backward)
        updates = tuple(
            Update(tensor=tensor, grad=grad, change=0.1 * (grad.magnitude or 0.0), size=0.5)
            for tensor, grad in gradient.items()
        )
        step_site = book.site(9, "optimizer.step()")
        book.add(events.OptimizerStepped, site=step_site, optimizer=optimizer, updates=updates, lr=(0.1,))
    book.add(events.DepthChanged, depth="light", why="three steps alike")
    folds = tuple(
        events.BufferFold(
            tensor=tensor, writes=steps - 3, resets=steps - 3, sampled=30, norm_first=0.19, norm_last=0.004,
            norm_low=0.003, norm_high=0.19,
        )
        for tensor in (weight, bias)
    )  # fmt: skip
    book.add(
        events.StepsFolded, first=4, last=steps, backwards=steps - 3, optimizer_steps=steps - 3, buffers=folds,
        loss_first=0.25, loss_last=0.001, loss_low=0.001, loss_high=0.25,
    )  # fmt: skip
    book.add(events.Ended, how="returned", exit_code=0)
    return book.ledger


def freed_graph() -> Ledger:
    """A loss kept from line 2 is sent backward twice: the second pass finds its graph freed, uncaught."""
    source = "w = torch.tensor(3.0, requires_grad=True)\nloss = w * w\nloss.backward()\nloss.backward()\n"
    book = Book(source, program="twice.py")
    weight = book.leaf("w", scalar(3.0), book.site(1, "torch.tensor(3.0, requires_grad=True)"))
    made = book.site(2, "w * w")
    operand = Operand(tensor=weight, code="w")
    loss, node = book.operation(made, "mul", [operand, operand], scalar(9.0))
    assert node is not None
    book.named(loss, "loss", book.site(2, "loss = w * w"))
    saved = tuple(Saved(slot=slot, tensor=weight, shape=(), version=0) for slot in ("self", "other"))
    book.add(
        events.Node, site=made, id=node, name="MulBackward0", edges=(Edge(leaf=weight), Edge(leaf=weight)), saved=saved
    )
    text = "Trying to backward through the graph a second time"
    for line in (3, 4):
        call = book.site(line, "loss.backward()")
        backward = BackwardId(book.new("backward"))
        book.add(
            events.BackwardBegan, site=call, id=backward, call="backward", roots=(loss,), root_nodes=(node,),
            root_value=scalar(9.0), nodes=2, leaves=(weight,),
        )  # fmt: skip
        if line == 3:
            terms = (term(3.0, node, made, "mul"), term(3.0, node, made, "mul"))
            book.add(
                events.GradWritten, site=call, tensor=weight, backward=backward, before=None, contributions=terms,
                after=scalar(6.0),
            )  # fmt: skip
            book.add(events.BackwardEnded, site=call, id=backward, freed=(node,))
        else:
            book.add(
                events.BackwardEnded, site=call, id=backward, error=f"RuntimeError: {text}", blamed=node,
                freed_by=BackwardId(1),
            )  # fmt: skip
            book.add(events.Raised, site=call, kind="RuntimeError", text=text)
    book.add(events.Ended, how="exception", exit_code=1)
    return book.ledger
