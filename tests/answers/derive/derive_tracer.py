"""A small tracer: runs PyTorch and writes the ledger by hand, so that derivations can be tested on real gradients.

It sees each call of a function of PyTorch's (not what happens inside), as a recorder sees the expressions of a
program. It knows no lines: every operation stands in line 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ledgers import Book
from whygrad.answers.derive import Derivation, derive
from whygrad.ledger import events
from whygrad.ledger.events import BackwardId, Contribution, GradWritten, NodeId, Operand, TensorId
from whygrad.ledger.values import Value, whole

NAMES = {
    "__rsub__": "rsub", "__rpow__": "rpow", "__rdiv__": "rdiv", "__rtruediv__": "rdiv", "__getitem__": "getitem",
    "__setitem__": "setitem", "__matmul__": "matmul", "__pow__": "pow", "__truediv__": "div", "__neg__": "neg",
    "log_sigmoid": "logsigmoid", "_threshold": "threshold",
}  # fmt: skip
SWAPPED = {"rsub": "sub", "rpow": "pow", "rdiv": "div"}
ATTRIBUTES = {"T", "mT", "data"}


def kept(tensor: torch.Tensor, limit: int = 64) -> Value:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() <= limit:
        return whole(tensor.shape, dtype, tensor.detach().reshape(-1).tolist())
    flat = tensor.detach().double()
    return Value(tuple(tensor.shape), dtype, norm=float(flat.norm()), low=float(flat.min()), high=float(flat.max()))


class Tracer(TorchFunctionMode):
    """Use it as a context for the forward, then call `backward`."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book("program\n", program="program.py")
        self.site = self.book.site(1, "program")
        self.ids: dict[int, TensorId] = {}
        self.alive: list[Any] = []
        self.nodes = 0

    def leaf(self, data: Any, name: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """A leaf that requires grad."""
        with torch._C.DisableTorchFunction():
            tensor = torch.as_tensor(data, dtype=dtype).clone().requires_grad_()
        self.book.named(self.meet(tensor, "created"), name)
        return tensor

    def meet(self, tensor: torch.Tensor, origin: str = "unknown") -> TensorId:
        if id(tensor) not in self.ids:
            value = None if origin == "result" else kept(tensor, 4096)
            self.ids[id(tensor)] = self.book.tensor(
                tensor.shape, dtype=str(tensor.dtype).removeprefix("torch."), leaf=tensor.is_leaf,
                requires_grad=tensor.requires_grad, origin=origin, value=value, site=self.site,
            )  # fmt: skip
            self.alive.append(tensor)
        return self.ids[id(tensor)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            inputs = [self.operand(item) for item in args]
            inputs += [self.operand(item, keyword) for keyword, item in (kwargs or {}).items()]
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", "")
            if name == "__get__":
                name = func.__self__.__name__
                if name not in ATTRIBUTES:
                    return result
            name = NAMES.get(name, name)
            if name in SWAPPED:
                name, inputs = SWAPPED[name], inputs[::-1]
            module = getattr(func, "__module__", "") or ""
            if module.startswith("torch.linalg") or "linalg" in str(func):
                name = "torch.linalg." + name.removeprefix("linalg_")
            written = name == "setitem" or (name.endswith("_") and isinstance(result, torch.Tensor))
            self.record(name, inputs, args[0] if name == "setitem" else result, written)
        return result

    def record(self, name: str, inputs: list[Operand], result: Any, written: bool) -> None:
        several = list(result) if isinstance(result, tuple | list) else [result]
        if not several or not all(isinstance(item, torch.Tensor) for item in several):
            return
        outputs = tuple(self.meet(item, "result") for item in several)
        self.nodes += 1
        differentiable = several[0].grad_fn is not None
        self.book.add(
            events.Operation, site=self.site, function=name, inputs=tuple(inputs), outputs=outputs, in_place=written,
            node=NodeId(self.nodes) if differentiable else None, no_node="" if differentiable or written else "none",
            value=kept(several[0]) if several[0].numel() <= 64 else None,
        )  # fmt: skip

    def operand(self, item: Any, keyword: str = "") -> Operand:
        if isinstance(item, torch.Tensor):
            return Operand(tensor=self.meet(item), keyword=keyword)
        if isinstance(item, tuple | list):
            code = "[...]" if isinstance(item, list) else ""
            return Operand(items=tuple(self.operand(each) for each in item), keyword=keyword, code=code)
        if isinstance(item, slice):
            return Operand(constant={"slice": [item.start, item.stop, item.step]}, keyword=keyword)
        if item is ...:
            return Operand(constant={"ellipsis": True}, keyword=keyword)
        if item is None or isinstance(item, bool | int | float | str):
            return Operand(constant=item, keyword=keyword)
        return Operand(keyword=keyword)

    def backward(
        self, root: torch.Tensor, *leaves: torch.Tensor, gradient: torch.Tensor | None = None, bend: Bend | None = None
    ) -> list[GradWritten]:
        """Run the backward and write what it gave; `bend` falsifies each gradient first."""
        backward = BackwardId(self.book.new("backward"))
        root_id = self.meet(root, "result")
        self.book.add(
            events.BackwardBegan, id=backward, call="backward", roots=(root_id,), root_nodes=(None,),
            root_value=kept(root), gradient=None if gradient is None else kept(gradient),
        )  # fmt: skip
        before = [None if leaf.grad is None else leaf.grad.clone() for leaf in leaves]
        root.backward(gradient, retain_graph=True)
        written = []
        for leaf, earlier in zip(leaves, before, strict=True):
            after = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
            term = after if earlier is None else after - earlier
            if bend is not None:
                after = term = bend(term)
            written.append(
                self.book.add(
                    GradWritten,
                    tensor=self.meet(leaf),
                    backward=backward,
                    after=kept(after),
                    before=None if earlier is None else kept(earlier),
                    contributions=(Contribution(value=kept(term)),),
                )
            )
        return written

    def derive(self, root: torch.Tensor, *leaves: torch.Tensor, **given: Any) -> list[Derivation]:
        written = self.backward(root, *leaves, **given)
        return [derive(self.book.ledger, each) for each in written]


Bend = Callable[[torch.Tensor], torch.Tensor]
