# Subclasses and modes that note every call that reaches them: a recorder must add none.
# transparency: env=KINETO_LOG_LEVEL=99
import sys
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

calls = []


def flush(title):
    print(title, calls)
    calls.clear()


def name_of(func):
    return getattr(func, "__name__", None) or str(func)


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(name_of(func))
        return super().__torch_function__(func, types, args, kwargs)


class Fussy(torch.Tensor):
    """Only these functions, or an error."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if name_of(func) not in ("add", "mul", "sum", "backward", "__get__", "__repr__", "__set__", "relu", "linear"):
            raise TypeError(f"not supported: {name_of(func)}")
        calls.append(name_of(func))
        return super().__torch_function__(func, types, args, kwargs)


class Wrapper(torch.Tensor):
    """A wrapper whose storage is empty; what happens is seen at dispatch."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"Wrapper({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        calls.append(str(func).removeprefix("aten."))
        unwrap = lambda t: t.inner if isinstance(t, Wrapper) else t  # noqa: E731
        out = func(*torch.utils._pytree.tree_map(unwrap, args), **torch.utils._pytree.tree_map(unwrap, kwargs or {}))
        return torch.utils._pytree.tree_map(lambda t: Wrapper(t) if torch.is_tensor(t) else t, out)


class Duck:
    """Not a tensor; it answers for itself."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append("duck " + name_of(func))
        return cls(func(*[a.value if isinstance(a, Duck) else a for a in args], **(kwargs or {})))

    def __getattr__(self, name):
        calls.append("duck attribute " + name)
        raise AttributeError(name)


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        calls.append(name_of(func))
        return func(*args, **(kwargs or {}))


class Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        calls.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


a = torch.ones(2, 2).as_subclass(Logged)
flush("made")
b = a + a * 2
flush("arithmetic")
c = b[0], b.T, b.shape, b.grad, b.data, b.requires_grad
flush("attributes")
w = torch.ones(2, requires_grad=True)
v = torch.ones(2).as_subclass(Logged).requires_grad_()
flush("leaf")
loss = (v * w).sum()
flush("loss")
loss.backward()
flush("backward")
g = v.grad
flush("grad")
v.grad.zero_()
flush("grad zeroed")
v.grad = None
flush("grad None")
v.data.mul_(2)
flush("data")
with torch.no_grad():
    v -= 0.1
    v[0] = 1
flush("in place")
optimizer = torch.optim.SGD([v], lr=0.1)
flush("optimizer")
v.sum().backward()
optimizer.step()
flush("step")
optimizer.zero_grad()
flush("zero_grad")
assert v.sum() > -100, "never"
flush("assert")
linear = nn.Linear(2, 1)
linear.weight = nn.Parameter(torch.ones(1, 2).as_subclass(Logged))
flush("parameter")
out = linear(torch.ones(1, 2))
flush("linear")
out.sum().backward()
flush("linear backward")
float(out.detach()), out.detach().item(), out.tolist(), f"{out.shape}"
flush("values")
for row in a:
    row
flush("iteration")
x, y = a
flush("unpack")
a = b = x = y = c = g = None
flush("released")
f = torch.ones(2).as_subclass(Fussy)
try:
    h = f + f
    h = (h * 2).sum()
    i = h.relu()
    j = i.exp()
except TypeError:
    traceback.print_exc()
flush("fussy")
t = Wrapper(torch.ones(2, requires_grad=False))
u = t * 2 + 1
flush("wrapper")
t = Wrapper(torch.ones(2, requires_grad=True))
u = (t * t).sum()
flush("wrapper grad")
u.backward()
flush("wrapper backward")
print(t.grad, t)
flush("wrapper printed")
d = Duck(torch.ones(2))
e = torch.add(d, 1)
flush("duck")
e = torch.stack([torch.zeros(2), torch.ones(2)]) if not isinstance(e, Duck) else e
flush("duck isinstance")
model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.0), nn.Linear(3, 1))
x = torch.ones(4, 2)
for mode in (Functions, Dispatches):
    with mode():
        out = model(x)
        flush("forward")
        loss = F.mse_loss(out, torch.zeros(4, 1))
        flush("loss")
        loss.backward()
        flush("backward")
        optimizer = torch.optim.Adam(model.parameters())
        flush("optimizer")
        optimizer.step()
        flush("step")
        optimizer.zero_grad(set_to_none=False)
        flush("zero_grad")
        y = (x + 1)[0, 0]
        y *= 2
        y.item(), float(loss.detach()), loss.grad_fn
        flush("others")
        z = torch.randn(2, requires_grad=True)
        z.register_hook(lambda g: g * 2)
        (z * z).sum().backward()
        z.grad = None
        z.data.zero_()
        z.requires_grad = False
        flush("leaf")
        assert torch.allclose(z, torch.zeros(2))
        flush("assert")
        model.train(), model.eval(), model.state_dict(), model.to(torch.float32), nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        flush("model")
with FlopCounterMode(display=False) as counter:
    model(x).sum().backward()
print(counter.get_total_flops(), {str(k): {str(o): n for o, n in v.items()} for k, v in counter.get_flop_counts().items()})
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
    out = model(x)
    loss = (out * 2 - 1).square().mean()
    loss.backward()
    w = torch.ones(2, requires_grad=True)
    (w[0] * w[1]).item() if False else float((w[0] * w[1]).detach())
    w.grad = torch.zeros(2)
    w.grad.add_(1)
    total = sum(p.grad.norm() for p in model.parameters())
    optimizer.step()
    optimizer.zero_grad()
print(sorted((e.key, e.count, str(e.input_shapes)) for e in profile.key_averages(group_by_input_shape=True) if "ProfilerStep" not in e.key))


class Alone(TorchFunctionMode):
    """A mode that is not re-entered: what it sees it sees once."""

    depth = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        Alone.depth += 1
        calls.append((Alone.depth, name_of(func), sys._getframe(1).f_code.co_name))
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
        Alone.depth -= 1
        return out


with Alone():
    nn.Linear(1, 1)(torch.ones(1)).backward()
flush("alone")
print(torch.overrides.has_torch_function((v,)), torch.overrides.is_tensor_like(d), torch.overrides.resolve_name(torch.Tensor.add))
original = torch.Tensor.backward
torch.Tensor.backward = lambda self, *args, **kwargs: calls.append("my backward") or original(self, *args, **kwargs)
torch.ones(1, requires_grad=True).sum().backward()
torch.Tensor.backward = original
call = nn.Module.__call__
nn.Module.__call__ = lambda self, *args, **kwargs: calls.append("my call") or call(self, *args, **kwargs)
nn.ReLU()(torch.ones(1))
nn.Module.__call__ = call
step = torch.optim.SGD.step
torch.optim.SGD.step = lambda self, closure=None: calls.append("my step") or step(self, closure)
torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1).step()
torch.optim.SGD.step = step
flush("patched")
add, torch.Tensor.__add__ = torch.Tensor.__add__, lambda self, other: calls.append("my add") or torch.add(self, other)
torch.ones(1) + 1
torch.Tensor.__add__ = add
flush("patched operator")
