# Objects that do not bear to be touched, tensors without values, graphs that are deep, hooks that do odd things.
import gc
import os
import sys
import traceback
import weakref

import torch
import torch.nn as nn
from torch._subclasses.fake_tensor import FakeTensorMode

torch.manual_seed(0)
calls = []


def flush(title):
    print(title, calls)
    calls.clear()


def attempt(function):
    print("==", function.__name__)
    try:
        function()
    except BaseException as error:
        print(type(error).__name__, str(error).splitlines()[:1])
        traceback.print_exc(limit=-2, file=sys.stdout)


class Touchy(nn.Module):
    """Notes what is asked of it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        nn.init.constant_(self.linear.weight, 0.5)
        nn.init.zeros_(self.linear.bias)

    def __hash__(self):
        calls.append("hash")
        return 7

    def __eq__(self, other):
        calls.append("eq")
        return self is other

    def __len__(self):
        calls.append("len")
        return 0

    def __iter__(self):
        calls.append("iter")
        return iter(())

    def __repr__(self):
        calls.append("repr")
        return "Touchy"

    def __dir__(self):
        calls.append("dir")
        return []

    def extra_repr(self):
        calls.append("extra_repr")
        return ""

    def state_dict(self, *args, **kwargs):
        calls.append("state_dict")
        return super().state_dict(*args, **kwargs)

    def forward(self, x):
        calls.append("forward")
        return self.linear(x)


model = Touchy()
flush("built")
holder = nn.Sequential(model, nn.ReLU())
flush("held")
y = holder(torch.ones(1, 2))
flush("called")
y.sum().backward()
flush("backward")
optimizer = torch.optim.SGD(holder.parameters(), lr=0.1)
flush("optimizer")
optimizer.step()
optimizer.zero_grad()
flush("step")
holder.eval()
flush("eval")
model.train()
flush("train")
copy = model
assert copy is model
[copy for _ in range(2)]
flush("names")
reference = weakref.ref(model)
del model, copy, holder, y, optimizer
gc.collect()
print(reference())
flush("gone")


class Strict(torch.optim.Optimizer):
    """An optimizer with a way of its own."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr, "extra": lambda: 1})
        calls.append("init")

    @torch.no_grad()
    def step(self, closure=None, *, scale=1.0):
        calls.append(f"step {scale}")
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(group["lr"] * scale * p.grad)
        return "stepped"

    def zero_grad(self, *args):
        calls.append("zero_grad")
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    def __getattribute__(self, name):
        if name == "param_groups":
            calls.append("param_groups")
        return super().__getattribute__(name)


class Duck:
    def __init__(self, parameters):
        self.parameters = list(parameters)

    def step(self):
        for p in self.parameters:
            p.data.add_(p.grad, alpha=-0.1)

    def zero_grad(self):
        for p in self.parameters:
            p.grad.detach_().zero_()


w = nn.Parameter(torch.tensor([1.0, 2.0]))
optimizer = Strict([w], 0.1)
flush("strict")
(w * w).sum().backward()
print(optimizer.step(scale=2.0), w)
flush("strict step")
optimizer.zero_grad()
flush("strict zero")
optimizer = Duck([w])
(w * w).sum().backward()
optimizer.step()
optimizer.zero_grad()
print(w, w.grad)


@attempt
def lazy():
    net = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d())
    print(net, [type(p).__name__ for p in net.parameters()])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    p = next(net.parameters())
    q = [p, p]
    print(q[0] is p, isinstance(p, nn.Parameter))
    net(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    print(net, q[1].shape, p.grad.shape)
    torch.nn.LazyLinear(1).weight.shape


@attempt
def fake():
    with FakeTensorMode() as mode:
        t = torch.ones(2, requires_grad=True)
        u = (t * 2).sum()
        u.backward()
        net = nn.Linear(2, 1)
        v = net(t)
        print(t, u.shape, t.grad, v, mode.allow_non_fake_inputs, len(mode.fake_tensor_converter.tensor_memo) if hasattr(mode.fake_tensor_converter, "tensor_memo") else 0)
        a, b = t
        c = [a, b, v]
    w = t + 0 if False else c
    print(len(w))
    t.sum().item()


@attempt
def freed_storage():
    t = torch.ones(4, requires_grad=True)
    u = torch.ones(1000)
    u.untyped_storage().resize_(0)
    s = [u, t]
    v = u
    x, y = s
    print(u.shape, v is u, u.untyped_storage().nbytes(), x is u)
    with torch.no_grad():
        t.untyped_storage().resize_(0)
    z = t
    t.untyped_storage().resize_(16)
    t.data.fill_(2)
    (t * t).sum().backward()
    print(t.grad, z is t)


@attempt
def deep_graph():
    x = torch.ones((), requires_grad=True)
    y = x
    for i in range(3000):
        y = y * 1.0001 + 0
    y.backward()
    print(x.grad.item().hex())
    z = x
    for i in range(1000):
        z = (lambda v: v.sin())(z)
    z.backward()
    print(x.grad.item().hex())
    del y, z
    parts = []
    for i in range(300):
        parts.append(x * i)
    torch.stack(parts).sum().backward()
    print(x.grad.item().hex())


@attempt
def deep_modules():
    net = nn.Linear(1, 1)
    nn.init.ones_(net.weight)
    for i in range(60):
        net = nn.Sequential(net)
    net(torch.ones(1, 1)).backward()
    print(len(list(net.modules())), next(net.parameters()).grad)
    cyclic = nn.Module()
    cyclic.child = nn.Module()
    cyclic.child.w = nn.Parameter(torch.ones(1))
    cyclic.child.parent = cyclic
    print(len(list(cyclic.modules())), [n for n, _ in cyclic.named_parameters()])
    cyclic.child.w.sum().backward()
    torch.optim.SGD(cyclic.parameters(), lr=1.0).step()
    print(cyclic.child.w)
    many = nn.ParameterList([nn.Parameter(torch.tensor(float(i))) for i in range(200)])
    torch.optim.Adam(many.parameters())
    sum(many).backward()
    print(sum(p.grad for p in many))
    net.extra = many
    del net.extra
    net[0] = nn.Identity()
    print(net(torch.ones(1)), len(list(net.parameters())))


@attempt
def reentrant():
    a = torch.ones(1, requires_grad=True)

    def hook(g):
        b = torch.ones(1, requires_grad=True)
        (b * 3).backward()
        calls.append((g.item(), b.grad.item(), torch.is_grad_enabled()))
        return g + b.grad

    c = a * 2
    c.register_hook(hook)
    c.backward()
    print(a.grad, calls)
    calls.clear()

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x**3
            return ctx.y.detach().clone()

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                ctx.y.backward(g)
            return ctx.x.grad

    Inner.apply(a * 2).backward()
    print(a.grad)
    handle = a.register_hook(lambda g: handle.remove())
    (a * 2).backward()
    (a * 2).backward()
    print(a.grad, a._backward_hooks)


@attempt
def interrupted():
    a = torch.ones(1, requires_grad=True)
    b = a * 2

    def interrupt(g):
        raise KeyboardInterrupt

    handle = b.register_hook(interrupt)
    try:
        b.backward(retain_graph=True)
    except KeyboardInterrupt:
        print("interrupted", a.grad)
    handle.remove()
    b.backward()
    print(a.grad)
    b = a * 2
    b.register_hook(lambda g: next(iter(())))
    b.backward()


@attempt
def exits():
    a = torch.ones(1, requires_grad=True)
    a.register_hook(lambda g: sys.exit(5))
    (a * 2).backward()


@attempt
def legacy():
    t = torch.FloatTensor([1, 2]).requires_grad_()
    u = torch.Tensor(2, 2).fill_(1)
    v = torch.autograd.Variable(t, requires_grad=True)
    (u @ v).sum().backward()
    print(t.grad, v.grad, t.type(), u.new(2).shape, t.grad.data is t.grad.data, t.is_leaf)
    t.grad = None
    t.set_(torch.zeros(2))


@attempt
def foreign():
    import ctypes

    import numpy as np

    array = np.ones(3, dtype=np.float32)
    t = torch.from_numpy(array).requires_grad_()
    (t * t).sum().backward()
    array[0] = 5
    buffer = bytearray(8)
    u = torch.frombuffer(buffer, dtype=torch.float32)
    buffer[:4] = bytes(ctypes.c_float(2.5))
    print(t, t.grad, u, np.shares_memory(array, t.detach().numpy()), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(u)))
    print(np.asarray(u) + u.numpy(), float(np.sum(t.detach().numpy())), np.float32(2) * u, u * np.ones(2, dtype=np.float32), (u + np.float64(1)).dtype, array * u)


class Weird:
    """Comparisons that give tensors, a length that raises, a hash that is missing."""

    __hash__ = None

    def __eq__(self, other):
        calls.append("eq")
        return torch.ones(2)

    def __len__(self):
        raise RuntimeError("no length")

    def __array__(self):
        raise RuntimeError("no array")

    @property
    def shape(self):
        raise RuntimeError("no shape")

    @property
    def grad(self):
        calls.append("grad")
        raise RuntimeError("no grad")


@attempt
def weird():
    w = Weird()
    x = [w, (w, {"w": w})]
    y, (z, m) = x
    same = w == y
    print(same, z is w, m["w"] is w)
    flush("weird")
    w.grad = 3


print(torch.rand(1).item().hex(), os.path.basename(sys.argv[0]))
