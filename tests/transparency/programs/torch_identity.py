# Which objects are the same, which share memory, which are still alive, and how often each is referred to.
import copy
import gc
import sys
import weakref

import torch
import torch.nn as nn


torch.manual_seed(0)


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def title(text):
    print("==", text)


def alive():
    return sum(1 for o in gc.get_objects() if type(o) in (torch.Tensor, nn.Parameter))


title("the grad buffer")
w = leaf()
print(w.grad is w.grad, w.grad)
(w * 2).sum().backward()
first = w.grad
pointer = first.data_ptr()
print(w.grad is first, w.grad is w.grad, sys.getrefcount(first), first._version)
(w * 3).sum().backward()
print(w.grad is first, w.grad.data_ptr() == pointer, first.tolist(), first._version)
w.grad.zero_()
(w * w).sum().backward(create_graph=True)
print(w.grad is first, w.grad.data_ptr() == pointer, w.grad.grad_fn, first._version)
w.grad = None
print(first.tolist(), sys.getrefcount(first))
del first
optimizer = torch.optim.SGD([w], lr=0.1)
for set_to_none in (True, False):
    (w * 2).sum().backward()
    kept = w.grad
    optimizer.zero_grad(set_to_none=set_to_none)
    print(w.grad is kept, kept.tolist())
w.grad = None

title("stealing")
for make in (lambda w: w * 2, lambda w: w.clone(), lambda w: w + 0, lambda w: w.view(2), lambda w: w.expand(3, 2), lambda w: w.t()):
    w, seen = leaf(), []
    given = torch.ones(make(w).shape)
    y = make(w)
    y.register_hook(lambda g: seen.append(g.data_ptr()))
    y.backward(given)
    print(w.grad.data_ptr() == given.data_ptr(), w.grad.data_ptr() == seen[0], seen[0] == given.data_ptr(), w.grad.is_contiguous(), sys.getrefcount(w.grad))
w = leaf()
w.register_hook(lambda g: seen.append(g))
seen = []
(w * 2).sum().backward()
print(w.grad is seen[0], w.grad.data_ptr() == seen[0].data_ptr(), seen[0]._version, sys.getrefcount(seen[0]))
(w * 2).sum().backward()
print(w.grad.data_ptr() == seen[0].data_ptr(), seen[0].tolist(), seen[1].tolist(), [s._version for s in seen])
w = leaf()
(g,) = torch.autograd.grad((w * 2).sum(), w)
print(g is w.grad, w.grad, sys.getrefcount(g), g._version)
w.grad = g
print(w.grad is g, sys.getrefcount(g))
a = b = leaf()
(a * b).sum().backward()
print(a is b, a.grad is b.grad, a.grad.tolist())
x, y = leaf(), leaf()
(x + y).sum().backward()
print(x.grad is y.grad, x.grad.data_ptr() == y.grad.data_ptr())
x, y = leaf(), leaf()
(x + y).backward(torch.ones(2))
print(x.grad.data_ptr() == y.grad.data_ptr())

title("versions and storages")
t = torch.zeros(4)
views = t.view(2, 2), t[1:], t.detach(), t.data, t.clone(), t.reshape(2, 2), t.contiguous(), t.numpy()
print([getattr(v, "_version", None) for v in views], [v.data_ptr() == t.data_ptr() for v in views[:-1]], [v._base is t for v in views[:-1]])
t.add_(1)
views[0][0, 0] = 5
t.data[0] = 7
t += 1
t[:2] *= 2
print([getattr(v, "_version", None) for v in views], t._version, views[7].tolist(), t.storage_offset(), t.untyped_storage().nbytes())
print(nn.Linear(1, 1).weight._version, nn.Parameter(torch.ones(1))._version, torch.nn.init.zeros_(torch.empty(1))._version)
w = leaf()
with torch.no_grad():
    w -= 0.1 * 1
    w.copy_(torch.ones(2))
    w[0] = 3
w.data = torch.ones(2) * 4
w.data.mul_(2)
print(w._version, w, w.data_ptr() == w.data.data_ptr(), w.data is w.data, w.is_leaf)

title("nodes")
y = w * 2
print(y.grad_fn is y.grad_fn, type(y.grad_fn).__name__, y.grad_fn.next_functions[0][0] is y.grad_fn.next_functions[0][0], y.grad_fn.next_functions[0][0].variable is w)
print(sorted(n for n in dir(y.grad_fn) if not n.startswith("__")), y.grad_fn.name())
y.grad_fn.metadata["mine"] = 1
print(y.grad_fn.metadata["mine"], type(y.grad_fn.metadata).__name__)
node = weakref.ref(y.grad_fn) if False else None
print(y._backward_hooks, w._backward_hooks, getattr(w, "_post_accumulate_grad_hooks", None), y.retains_grad, vars(y), vars(w), y.output_nr)
print(hasattr(w, "__dict__"), sorted(set(dir(w)) - set(dir(torch.Tensor))), sorted(w.__dict__))

title("lifetimes")
gc.collect()
before = alive()
w = leaf()
y = w * 2
z = y.exp()
refs = [weakref.ref(t) for t in (w, y, z)]
print(alive() - before, [sys.getrefcount(t) for t in (w, y, z)])
z.sum().backward()
grad = weakref.ref(w.grad)
del y
print([r() is not None for r in refs], alive() - before)
del z
print([r() is not None for r in refs], grad() is not None)
del w
print([r() is not None for r in refs], grad() is not None, alive() - before)


class Token:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("gone", self.name)


def tagged(t, name):
    t.token = Token(name)
    return t


w = tagged(leaf(), "w")
y = tagged(w * 2, "y")
y = tagged(y + 1, "y2")
print("rebound")
y.sum().backward()
print("backward done")
y = None
print("y is None")
tagged(w * 3, "temporary") + tagged(w * 4, "temporary 2")
print("statement over")
(tagged(w * 5, "inner") * tagged(w, "w again")).sum().backward()
print("second backward done")
w.grad = tagged(torch.ones(2), "assigned grad")
w.grad = tagged(torch.zeros(2), "assigned grad 2")
w.grad = None
print("grad is None")


def local():
    h = tagged(w * 2, "local")
    k = tagged(h.sin(), "local 2")
    return (h * k).sum()


loss = local()
print("returned")
loss.backward()
print("freed")
del loss
for i in range(2):
    h = tagged(w * i, f"loop {i}")
print("loop over")
del h
print([tagged(w * i, f"comprehension {i}").shape for i in range(2)])
try:
    tagged(w * 1, "in try") @ tagged(torch.ones(3, 3), "other")
except RuntimeError as error:
    print("handler", len(str(error)) > 0)
print("after handler")
model = nn.Linear(2, 1)
tagged(model.weight, "weight")
model(tagged(torch.ones(1, 2), "input")).sum().backward()
print("model ran")
reference = weakref.ref(model)
del model
print(reference())
optimizer = torch.optim.Adam([tagged(leaf(), "optimised")])
optimizer.param_groups[0]["params"][0].sum().backward()
optimizer.step()
reference = weakref.ref(optimizer)
del optimizer
gc.collect()
print("optimizer", reference())
with torch.no_grad():
    tagged(w * 2, "no grad")
    print("in no_grad")
assert tagged(w * 2, "asserted").sum() == w.sum() * 2
print("asserted")
match tagged(w + 1, "matched"):
    case t:
        print(t.shape)
del t
w.register_hook(lambda g: tagged(g * 2, "hooked"))
(w * 2).sum().backward()
print("hooked")
w = None
print("w is None")
gc.collect()

title("cycles")
w = leaf()
w.me = w
watch = weakref.ref(w)
del w
gc.collect()
print(watch())
print(len(gc.garbage))
w = leaf()
(w * w).sum().backward(create_graph=True)
watch = weakref.ref(w.grad)
w.grad = None
print(watch())

title("copies")
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
model(torch.ones(1, 2)).sum().backward()
copied = copy.deepcopy(model)
print([(p.grad, q.grad.tolist(), q._version, p._version) for p, q in zip(copied.parameters(), model.parameters())])
print({type(value).__name__ for value in vars(copied).values()}, sorted(vars(copied)))
print(model[0].weight is model[0].weight, model.state_dict()["0.weight"] is model[0].weight, model.state_dict()["0.weight"].data_ptr() == model[0].weight.data_ptr())
shared = nn.ModuleList([model[0], model[0]])
print(len(list(shared.parameters())), [name for name, _ in shared.named_parameters(remove_duplicate=False)])
print(len({p: 1 for p in model.parameters()}), model[0].weight in set(model.parameters()), hash(model[0].weight) == id(model[0].weight))
dictionary = {model: 1, model[0].weight: 2}
print(dictionary[model], dictionary[model[0].weight], sys.getrefcount(model) , [sys.getrefcount(p) for p in model.parameters()])
