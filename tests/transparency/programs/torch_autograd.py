# Gradients by every way there is: functional transforms, custom functions, higher orders, checkpoints.
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts


def title(text):
    print("==", text)


def bits(t):
    return [float(v).hex() for v in t.detach().flatten().tolist()]


def leaf(*values, **kwargs):
    return torch.tensor(values, requires_grad=True, **kwargs)


torch.manual_seed(1)
title("func")


def f(x):
    y = x.sin() * x
    z = y + x[0] if x.dim() else y
    z = torch.where(z > 0, z, -z)
    return z.sum()


x = torch.tensor([0.5, -1.5, 2.0])
print(bits(grad(f)(x)), bits(grad(grad(lambda v: v**3))(torch.tensor(2.0))))
print(bits(vmap(f)(x.repeat(2, 1))), bits(vmap(grad(f))(torch.stack([x, x * 2]))), bits(jacrev(lambda v: v * v.sum())(x)), bits(jacfwd(torch.sin)(x)), bits(hessian(f)(x)))
print([bits(v) for v in vjp(f, x)[1](torch.tensor(2.0))], [bits(v) for v in jvp(f, (x,), (x,))], [bits(v) for v in grad_and_value(f)(x)])
out, linear = linearize(torch.sin, x)
print(bits(out), bits(linear(x)))


def inside(x):
    assert x.shape == (), x
    total = x
    for i in range(3):
        total = total * x + i
    values = [total, x]
    a, (b, *c) = total, values
    total += b
    if isinstance(x, torch.Tensor) and x.dim() == 0:
        total = total[None][0]
    return total, {"a": a}, f"{x.shape}"[0] and b


print([bits(v) if torch.is_tensor(v) else {k: bits(w) for k, w in v.items()} for v in vmap(inside)(x)])
print(vmap(lambda v: (v, torch.rand(2)), randomness="same")(x)[1].tolist(), vmap(lambda v: torch.rand(1) + v, randomness="different")(x).tolist())
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
parameters = dict(model.named_parameters())


def loss(parameters, x):
    out = functional_call(model, parameters, (x,))
    return out.square().mean()


print({k: bits(v.sum()) for k, v in grad(loss)(parameters, x).items()}, {k: tuple(v.shape) for k, v in vmap(grad(loss), (None, 0))(parameters, x.repeat(2, 1)).items()})
models = [nn.Linear(3, 1) for _ in range(2)]
stacked, buffers = stack_module_state(models)
print(bits(vmap(lambda p, b, v: functional_call(models[0], (p, b), (v,)), (0, 0, None))(stacked, buffers, x)))
print([bits(v) for v in torch.autograd.functional.hvp(f, x, x)], bits(torch.autograd.functional.jacobian(torch.exp, x, vectorize=True)))
w = leaf(1.0, 2.0)
print(torch.autograd.grad((w * w).sum(), w, grad_outputs=torch.tensor(3.0))[0].tolist(), torch.autograd.grad((w * w), w, torch.eye(2), is_grads_batched=True)[0].tolist())
with torch.autograd.forward_ad.dual_level():
    dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3))
    print(torch.autograd.forward_ad.unpack_dual(dual.exp() * 2).tangent.tolist())
print(torch._C._functorch.maybe_current_level() if hasattr(torch._C._functorch, "maybe_current_level") else None)

title("custom functions")


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        ctx.set_materialize_grads(False)
        print("forward", torch.is_grad_enabled(), x.requires_grad, x.grad_fn, ctx.needs_input_grad, type(ctx).__name__)
        y = x**3 * scale
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        print("backward", torch.is_grad_enabled(), g is None, x.requires_grad, ctx.needs_input_grad, x._version)
        if g is None:
            return None, None
        h = 3 * x**2
        h = h * g
        return h * ctx.scale, None


class Several(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, x + y, (x > y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y = inputs
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx, g, h, _):
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h

    @staticmethod
    def jvp(ctx, gx, gy, *_):
        x, y = ctx.saved_tensors
        return gx * y + x * gy, gx + gy, None


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


w = leaf(1.0, 2.0)
y = Cube.apply(w, 2.0)
print(y.grad_fn.name(), type(y.grad_fn).__name__, y.grad_fn.next_functions[0][0].name(), y.grad_fn.saved_tensors[0] is w)
y.sum().backward(create_graph=True)
print(bits(w.grad), w.grad.requires_grad)
(g,) = torch.autograd.grad(w.grad.sum(), w)
print(bits(g))
a, b = leaf(2.0), leaf(3.0)
p, q, r = Several.apply(a, b)
print(p.grad_fn is q.grad_fn, r.requires_grad, r.grad_fn, p.output_nr, q.output_nr)
(p + q).backward()
print(a.grad, b.grad, vmap(lambda u, v: Several.apply(u, v)[0])(x, x).tolist(), [v.tolist() for v in jvp(lambda u, v: Several.apply(u, v)[:2], (x, x), (x, x))[1]])
c = a * 1
version = c._version
d = InPlace.apply(c)
print(d is c, c._version - version, c.grad_fn.name())
d.sum().backward()
class Straight(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


print(a.grad, gradcheck(Straight.apply, torch.ones(1, dtype=torch.double, requires_grad=True), raise_exception=False), gradcheck(lambda t: Cube.apply(t, 1.5), torch.ones(2, dtype=torch.double, requires_grad=True)), gradgradcheck(torch.sin, torch.ones(1, dtype=torch.double, requires_grad=True)))


print(torch.autograd.grad(Straight.apply(leaf(0.3, 0.7)).sum() + (s := leaf(1.0)).sum(), s)[0], (s.detach() + (s - s.detach())).grad_fn.name())

title("higher orders")
w = leaf(0.5)
y = w.exp() * w
orders = []
for _ in range(4):
    (y,) = torch.autograd.grad(y.sum(), w, create_graph=True)
    orders.append(bits(y)[0])
print(orders, w.grad)
net = nn.Linear(2, 1)
x = torch.ones(3, 2, requires_grad=True)
(gx,) = torch.autograd.grad(net(x).tanh().sum(), x, create_graph=True)
penalty = ((gx.norm(dim=1) - 1) ** 2).mean()
penalty.backward()
print(bits(net.weight.grad), net.bias.grad, x.grad is not None)
u, v = leaf(1.0), leaf(2.0)
print(torch.autograd.grad(u * 2, [u, v], allow_unused=True), torch.autograd.grad(u * 2, [u, v], allow_unused=True, materialize_grads=True))
z = u * v
z.retain_grad()
h = z * z
h.backward(retain_graph=True, inputs=[z, u])
print(z.grad, u.grad, v.grad)
h.backward()
print(z.grad, u.grad, v.grad)
torch.autograd.backward([u * 2, v * 3], [torch.ones(1), torch.ones(1) * 2])
print(u.grad, v.grad)
inner = [leaf(1.0)]
for step in range(3):
    loss_ = (inner[-1] * u - v).square().sum()
    (g,) = torch.autograd.grad(loss_, inner[-1], create_graph=True)
    inner.append(inner[-1] - 0.1 * g)
inner[-1].sum().backward()
print(bits(u.grad), bits(v.grad), inner[0].grad)

title("checkpoints")
torch.manual_seed(0)
block = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
counts = []
block[0].register_forward_hook(lambda m, a, o: counts.append((torch.is_grad_enabled(), o.requires_grad)))
x = torch.randn(3, 2, requires_grad=True)
for kwargs in ({"use_reentrant": True}, {"use_reentrant": False}, {"use_reentrant": False, "preserve_rng_state": False}, {"use_reentrant": False, "determinism_check": "none", "early_stop": False}):
    block.zero_grad()
    x.grad = None
    y = checkpoint(block, x, **kwargs)
    y = y * 2
    loss_ = y.sum()
    loss_.backward()
    print(kwargs, counts, bits(x.grad)[:2], bits(block[0].weight.grad)[:2], block[2].num_batches_tracked.item(), torch.rand(1).item().hex())
    counts.clear()
checkpoint_sequential(block, 2, x, use_reentrant=False).sum().backward()
print(counts, bits(x.grad)[:1])
nested = checkpoint(lambda t: checkpoint(torch.sin, t * 2, use_reentrant=False) + t, x, use_reentrant=False)
nested.sum().backward()
print(bits(x.grad)[:2], type(nested.grad_fn).__name__)
checkpoint(lambda t: torch.mm(t, t.T).sin(), x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts([torch.ops.aten.mm.default])).sum().backward()
print(bits(x.grad)[:2])

title("in-place and views")
w = leaf(1.0, 2.0, 3.0, 4.0)
y = w * 1
v = y.view(2, 2)[0]
v.mul_(3)
y[2:] += w[:2]
y[0] = w.sum()
print(y.grad_fn.name(), v.grad_fn.name(), y._version, v._version)
y.sum().backward()
print(w.grad)
buffer = torch.zeros(2, 2)
buffer[0] = w[:2]
buffer[1] = 5
print(buffer.requires_grad, buffer.grad_fn.name())
buffer.sum().backward()
print(w.grad, torch.autograd.grad(torch.cat([w, w]).index_select(0, torch.tensor([0, 5])).sum(), w)[0], torch.autograd.grad(F.pad(w, (1, 1)).cumsum(0).max(), w)[0])
t = torch.stack([w.detach() * i for i in range(2)]).requires_grad_()
top, bottom = t
(top * bottom).sum().backward()
print(t.grad, top.grad_fn.name(), top.output_nr, bottom.output_nr)
out = torch.einsum("ij,kj->ik", t, t).trace() + torch.linalg.norm(t) + t.kthvalue(1).values.sum()
out.backward()
print(bits(t.grad), out.grad_fn.name())
print(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), sys.getrecursionlimit(), torch.is_anomaly_enabled(), torch._C._autograd._saved_tensors_hooks_is_enabled())
