# How the stack looks from inside everything that torch calls back.
import inspect
import os
import sys
import traceback

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


def short(path):
    return path if path == __file__ else os.path.basename(path)


def stack(title):
    frames = inspect.stack(0)[1:]
    print(title, len(frames), sys._getframe(1).f_code.co_name)
    print("   ", " < ".join(f"{f.function}:{f.lineno if short(f.filename) == __file__ else short(f.filename) + ':' + str(f.lineno)}" for f in frames))
    print("   ", [(line.lineno, line.line) for line in traceback.extract_stack()[:-1] if line.filename == __file__])


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        stack("init")

    def forward(self, x, depth=0):
        stack("forward")
        if depth:
            return self(x, depth - 1)
        return self.linear(x)

    def extra_repr(self):
        stack("extra_repr")
        return "extra"

    def train(self, mode=True):
        stack("train")
        return super().train(mode)

    def zero_grad(self, set_to_none=True):
        stack("zero_grad")
        super().zero_grad(set_to_none)

    def _apply(self, fn, recurse=True):
        stack("_apply")
        return super()._apply(fn, recurse)


torch.manual_seed(0)
layer = Layer()
model = nn.Sequential(layer, nn.Sequential(nn.ReLU(), Layer()))
x = torch.ones(3, 2, requires_grad=True)
handles = [
    layer.register_forward_pre_hook(lambda *args: stack("forward pre hook")),
    layer.register_forward_hook(lambda *args: stack("forward hook")),
    layer.register_full_backward_pre_hook(lambda *args: stack("backward pre hook")),
    layer.register_full_backward_hook(lambda *args: stack("backward hook")),
]
y = model(x)
y.register_hook(lambda g: stack("tensor hook"))
y.grad_fn.register_hook(lambda *args: stack("node hook"))
y.grad_fn.register_prehook(lambda *args: stack("node prehook"))
layer.linear.weight.register_post_accumulate_grad_hook(lambda p: stack("post accumulate"))
layer.linear.bias.register_hook(lambda g: stack("leaf hook"))
y.sum().backward()
layer(x, depth=2)
repr(layer)
model.train()
model.eval()
model.zero_grad()
model.double()
for handle in handles:
    handle.remove()


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        stack("function forward")
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        stack("function backward")
        return g * 2


z = torch.tensor([1.0, 2.0], requires_grad=True)
Function.apply(z).sum().backward()
torch.autograd.grad(Function.apply(z).sum(), z)
torch.autograd.backward([Function.apply(z).sum()])


class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        stack("step")
        return super().step(closure)

    def zero_grad(self, set_to_none=True):
        stack("optimizer zero_grad")
        super().zero_grad(set_to_none)


optimizer = Optimizer([z], lr=0.1)
optimizer.register_step_pre_hook(lambda *args: stack("step pre hook"))
optimizer.register_step_post_hook(lambda *args: stack("step post hook"))


def closure():
    stack("closure")
    optimizer.zero_grad()
    loss = (z * z).sum()
    loss.backward()
    return loss


optimizer.step(closure)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: stack("lambda lr") or 1.0)
scheduler.step()
lbfgs = torch.optim.LBFGS([z], max_iter=2)
lbfgs.step(closure)


def inner(t):
    stack("checkpointed")
    return t.sin() * 2


for reentrant in (True, False):
    checkpoint(inner, z, use_reentrant=reentrant).sum().backward()
with torch.autograd.graph.saved_tensors_hooks(lambda t: stack("pack") or t, lambda t: stack("unpack") or t):
    w = z * z
w.sum().backward()


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        stack("function mode " + func.__name__)
        return func(*args, **(kwargs or {}))


with Mode():
    z + z
    torch.sin(z)


class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        stack("subclass " + func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


t = torch.ones(2).as_subclass(Tensor)
t = t + 1
t.sum()


def functional(v):
    stack("in func")
    return (v * v).sum()


torch.func.grad(functional)(z.detach())
torch.func.vmap(functional)(torch.ones(2, 2))
torch.autograd.functional.jacobian(functional, z.detach())
torch.autograd.gradcheck(functional, torch.ones(2, dtype=torch.double, requires_grad=True))
nn.utils.parametrize.register_parametrization(nn.Linear(1, 1), "weight", type("P", (nn.Module,), {"forward": lambda self, w: stack("parametrization") or w})())
dataset = type("D", (), {"__len__": lambda self: 2, "__getitem__": lambda self, i: stack("getitem") or torch.tensor(i)})()
list(torch.utils.data.DataLoader(dataset, batch_size=2, collate_fn=lambda batch: stack("collate") or batch))


@torch.no_grad()
def decorated():
    stack("no_grad decorator")
    with torch.enable_grad():
        stack("enable_grad")


decorated()
list(map(lambda n: n if n else stack("lambda"), torch.arange(1)))
print(len(list(traceback.walk_stack(sys._getframe()))))
