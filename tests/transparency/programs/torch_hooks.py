# Hooks of every kind: who is called, in what order, with what; and that no one else's are there.
import gc
import sys

import torch
import torch.nn as nn
import torch.utils._python_dispatch

print("before import:", len(torch.nn.modules.module._global_forward_hooks))


def registries(*modules):
    names = [n for n in sorted(vars(torch.nn.modules.module)) if n.startswith("_global") and isinstance(getattr(torch.nn.modules.module, n), dict)]
    print("global:", {n: len(getattr(torch.nn.modules.module, n)) for n in names}, bool(torch.nn.modules.module._has_any_global_hook()), torch.nn.modules.module._global_is_full_backward_hook)
    print("modes:", torch.overrides._get_current_function_mode_stack(), torch.utils._python_dispatch._get_current_dispatch_mode_stack(), torch._C._len_torch_function_stack())
    print("saved:", torch._C._autograd._saved_tensors_hooks_is_enabled(), torch._C._autograd._top_saved_tensors_default_hooks(True), torch._C._is_torch_function_enabled())
    for module in modules:
        print({k: len(v) for k, v in vars(module).items() if k.endswith("hooks")}, sorted(vars(module)))
        print([(len(p._backward_hooks or ()), len(getattr(p, "_post_accumulate_grad_hooks", None) or ()), vars(p)) for p in module.parameters()])


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
registries(model, model[0])
order = []


def note(name, result=None):
    def hook(*args, **kwargs):
        def describe(a):
            if torch.is_tensor(a):
                return tuple(a.shape), round(float(a.detach().sum()), 4)
            if isinstance(a, (tuple, list)):
                return [describe(b) for b in a]
            return type(a).__name__

        order.append((name, describe(args), sorted(kwargs)))
        return result

    return hook


handles = []
for index, module in enumerate(model.modules()):
    handles += [
        module.register_forward_pre_hook(note(f"pre {index}")),
        module.register_forward_pre_hook(note(f"pre kwargs {index}"), with_kwargs=True),
        module.register_forward_hook(note(f"post {index}")),
        module.register_forward_hook(note(f"post always {index}"), always_call=True),
        module.register_full_backward_pre_hook(note(f"backward pre {index}")),
        module.register_full_backward_hook(note(f"backward {index}")),
        module.register_state_dict_post_hook(note(f"state {index}")),
    ]
handles += [
    torch.nn.modules.module.register_module_forward_hook(note("global forward")),
    torch.nn.modules.module.register_module_forward_pre_hook(note("global pre")),
    torch.nn.modules.module.register_module_full_backward_hook(note("global backward")),
    torch.nn.modules.module.register_module_module_registration_hook(note("global registration")),
    torch.nn.modules.module.register_module_parameter_registration_hook(lambda module, name, parameter: order.append(("global parameter", name, tuple(parameter.shape)))),
]
registries(model[0])
x = torch.ones(3, 2, requires_grad=True)
x.register_hook(note("x"))
x.register_post_accumulate_grad_hook(note("x accumulated"))
for name, parameter in model.named_parameters():
    parameter.register_hook(note(name))
    parameter.register_post_accumulate_grad_hook(note(name + " accumulated"))
y = model(x)
y.retain_grad()
y.register_hook(note("y"))
y.register_hook(note("y doubled", None))
y.grad_fn.register_hook(note("node"))
y.grad_fn.register_prehook(note("node pre"))
print(y.grad_fn.next_functions[0][0].name(), [n.name() if n else None for n, _ in y.grad_fn.next_functions])
y.sum().backward()
print(*order, sep="\n")
order.clear()
print(y.grad, x.grad)
nn.Linear(1, 1)
model.state_dict()
print(*order, sep="\n")
order.clear()
for handle in handles:
    handle.remove()
print("ids:", [handle.id - handles[0].id for handle in handles])
registries(model[0])

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print(sorted(vars(optimizer)), {k: len(v) for k, v in vars(optimizer).items() if k.endswith("hooks")}, optimizer)
handles = [
    optimizer.register_step_pre_hook(note("step pre")),
    optimizer.register_step_post_hook(note("step post")),
    optimizer.register_state_dict_post_hook(note("state post")),
    sys.modules['torch.optim.optimizer'].register_optimizer_step_pre_hook(note("global step pre")),
    sys.modules['torch.optim.optimizer'].register_optimizer_step_post_hook(note("global step post")),
]
optimizer.step()
optimizer.zero_grad()
optimizer.state_dict()
print(*order, sep="\n")
order.clear()
print([(type(m).step.__name__, hasattr(type(m).step, "__wrapped__"), getattr(type(m).step, "hooked", None)) for m in (optimizer,)])
print(type(optimizer.step).__name__, optimizer.zero_grad.__func__ is torch.optim.Optimizer.zero_grad, torch.optim.SGD.step.__qualname__)

print("values replaced by hooks")
w = torch.tensor([1.0, 2.0], requires_grad=True)
handle = w.register_hook(lambda g: g * 10)
(w * 2).sum().backward()
handle.remove()
(w * 2).sum().backward()
print(w.grad)
v = w * 2
handles = [v.register_hook(lambda g: g * 2), v.register_hook(lambda g: g + 1), v.register_hook(lambda g: None)]
v.sum().backward()
print(w.grad, len(v._backward_hooks))
linear = nn.Linear(2, 2)
linear.register_forward_hook(lambda m, args, out: out * 2)
linear.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
linear.register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
linear(x).sum().backward()
print(x.grad, linear.weight.grad)
multi = []
a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
c, d = a.exp(), b.sin()
torch.autograd.graph.register_multi_grad_hook((c, d), lambda grads: multi.append([None if g is None else g.item() for g in grads]))
torch.autograd.graph.register_multi_grad_hook((c, d), lambda grad: multi.append(grad.item()), mode="any")
(c + d).sum().backward(retain_graph=True)
c.sum().backward(retain_graph=True)
print(multi)
edge = torch.autograd.graph.get_gradient_edge(c)
print(edge.node is c.grad_fn, edge.output_nr, torch.autograd.grad(edge, a, torch.ones(1)))
packed = []
with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(("pack", tuple(t.shape), t._version)) or t.clone(), lambda t: packed.append(("unpack", tuple(t.shape))) or t):
    e = (a * b).exp().sum()
    print(packed)
e.backward()
print(packed, e.grad_fn.next_functions[0][0])
with torch.autograd.graph.save_on_cpu():
    (a * b).sum().backward()
with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    try:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            a * b
    except RuntimeError as error:
        print(error)
f = a * b
f.grad_fn._raw_saved_self.register_hooks(lambda t: packed.append("raw pack") or t, lambda t: packed.append("raw unpack") or t)
f.sum().backward()
print(packed[-2:], f.grad_fn.name())
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    g = a.clone()
    h = g * g
    g += 1
    h.sum().backward()
print(a.grad)


class Container(nn.Module):
    """Overrides what a recorder would want to know of."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Dropout(0.5)
        self.calls = []

    def __call__(self, *args, **kwargs):
        self.calls.append("call")
        return super().__call__(*args, **kwargs)

    def train(self, mode=True):
        self.calls.append(f"train {mode}")
        return super().train(mode)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def __getattr__(self, name):
        if name == "virtual":
            return self.calls
        return super().__getattr__(name)

    def named_modules(self, *args, **kwargs):
        self.calls.append("named_modules")
        return super().named_modules(*args, **kwargs)

    def named_parameters(self, *args, **kwargs):
        self.calls.append("named_parameters")
        return super().named_parameters(*args, **kwargs)

    def parameters(self, recurse=True):
        self.calls.append("parameters")
        return super().parameters(recurse)

    def children(self):
        self.calls.append("children")
        return super().children()

    def extra_repr(self):
        self.calls.append("extra_repr")
        return ""

    def forward(self, x):
        return self.inner(x)


c = Container()
c.train().eval()
c(torch.ones(1))
outer = nn.Sequential(c, nn.Linear(1, 1))
outer.eval()
outer(torch.ones(1, requires_grad=True)).sum().backward()
torch.optim.SGD(outer.parameters(), lr=0.1).step()
outer.zero_grad()
print(c.virtual, c.training, outer.training)


class LazyDict(dict):
    def __getitem__(self, key):
        reads.append(key)
        return super().__getitem__(key)

    def __iter__(self):
        reads.append("iter")
        return super().__iter__()


reads = []
batch = LazyDict(x=torch.ones(1), y=torch.zeros(1))
out = batch["x"] + batch["y"]
batch["z"] = out
print(reads)
gc.collect()
registries(model[0])
