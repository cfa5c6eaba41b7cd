# The many ways to get at torch, some of them late, some of them through the program's own modules.
import sys

print([name for name in ("torch", "numpy", "torch.nn") if name in sys.modules])
sys.stdout.flush()
before = list(sys.path)


def late():
    import torch.nn.functional as F

    return F.relu


from helpers import torching  # noqa: E402

print("torch" in sys.modules, late().__name__, torching.torch is sys.modules["torch"])
from importlib import import_module, reload  # noqa: E402

t = import_module("torch")
print(t is torching.torch, t.__name__, t.__file__.endswith("__init__.py"), type(t).__name__, t.__loader__.__class__.__name__, t.__spec__.origin == t.__file__)
from torch import *  # noqa: E402, F403
from torch import nn, optim, tensor as make  # noqa: E402
from torch.autograd import Variable, grad as derivative  # noqa: E402

w = make([1.0, 2.0], requires_grad=True)
loss = mul(w, w).sum() + exp(w).sum()  # noqa: F405
loss.backward()
print(w.grad, derivative(w.sum(), w)[0], Variable(w) is w, isinstance(w, Variable))
tch = __import__("torch", fromlist=["ones"])
print(tch.ones(2), torching.load("torch").zeros(1), (tch.ones(1, requires_grad=True) * 2).grad_fn.name())
model = nn.Sequential(nn.Linear(2, 1), torching.Scale(1))
step = optim.SGD(model.parameters(), lr=0.1).step
backward = (model(ones(1, 2)) * 3).sum().backward  # noqa: F405
backward()
step()
print(model[0].weight.grad, [m.__class__.__module__ for m in model])
import torch as renamed  # noqa: E402

torch = None
print(renamed.sin(renamed.zeros(1)), torch)
sub = renamed.Tensor.__sub__
print(sub(w, 1), getattr(w, "add")(1), renamed.Tensor.mul(w, 2), w.__mul__(2), list(map(renamed.sin, w))[0], renamed.add(w, 1, alpha=2), (lambda v: v @ v)(w))
nn_again = reload(sys.modules["helpers.torching"])
print(nn_again is torching, before == list(sys.path))
print(type(sys.modules["torch"]).__name__, sys.modules["torch"].__dict__.get("__whatever__"), renamed.__version__.split("+")[0].count("."))
exec("import torch as inner\nv = inner.ones(1, requires_grad=True)\n(v * 4).backward()\nprint(v.grad)")
print(eval("renamed.ones(1) * 3"), (lambda: eval("w * 2"))().tolist())
sys.modules["helpers.fake_torch"] = renamed
from helpers import fake_torch  # noqa: E402, F401
