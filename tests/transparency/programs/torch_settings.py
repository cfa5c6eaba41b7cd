# Modes and settings of torch, and what values look like under them.
import contextlib
import os
import sys
import warnings

os.environ["OMP_NUM_THREADS"] = "2"
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
print("before import:", [name for name in ("torch", "numpy") if name in sys.modules])
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

print("threads:", torch.get_num_threads(), torch.get_num_interop_threads() > 0)
print("numpy:", numpy.geterr(), numpy.get_printoptions(), numpy.random.get_state()[0])
print("torch:", torch.get_default_dtype(), torch.is_grad_enabled(), torch.initial_seed() >= 0, torch.are_deterministic_algorithms_enabled(), torch.is_warn_always_enabled(), torch.get_default_device(), torch.get_float32_matmul_precision())
print(torch.backends.mkldnn.enabled, torch.backends.cudnn.benchmark, torch.get_flush_denormal() if hasattr(torch, "get_flush_denormal") else None, torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
print(type(torch.Tensor.backward).__name__, torch.Tensor.backward.__qualname__, torch.Tensor.backward.__code__.co_firstlineno, torch.Tensor.backward.__code__.co_varnames, torch.Tensor.backward.__defaults__, torch.Tensor.backward.__annotations__ != {})
print(type(torch.Tensor.grad).__name__, type(torch.Tensor.data).__name__, type(torch.Tensor.requires_grad).__name__, type(torch.Tensor.zero_).__name__, type(torch.tensor).__name__, type(torch.Tensor.item).__name__)
print([type(f).__name__ for f in (torch.autograd.backward, torch.autograd.grad, nn.Module.__call__, nn.Module.train, nn.Module.zero_grad, torch.optim.SGD.step, torch.optim.Optimizer.zero_grad, torch.no_grad, torch.manual_seed, torch.optim.Optimizer.step)])
print([(f.__name__, f.__module__, hasattr(f, "__wrapped__"), f.__doc__ is not None) for f in (torch.autograd.backward, torch.autograd.grad, nn.Module.__call__, nn.Module.train, torch.optim.SGD.step, torch.optim.Optimizer.zero_grad, torch.manual_seed, nn.utils.clip_grad_norm_, torch.utils.checkpoint.checkpoint)])
print(nn.Module.__call__ is nn.Module._wrapped_call_impl, torch.nn.modules.Module is nn.Module, nn.Module.__call__.__qualname__, sorted(vars(torch.Tensor)) == sorted(set(vars(torch.Tensor))), len(vars(torch.Tensor)), len(vars(nn.Module)), len(vars(torch.optim.Optimizer)))


def state():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"), torch.is_anomaly_enabled()


w = torch.tensor([1.0, 2.0], requires_grad=True)
for context in (torch.no_grad, torch.enable_grad, torch.inference_mode, lambda: torch.set_grad_enabled(False), lambda: torch.autocast("cpu", dtype=torch.bfloat16), contextlib.nullcontext):
    with context() as entered:
        y = w * 2
        print(state(), y.requires_grad, y.is_inference(), y.dtype, entered is None, (torch.ones(2, 2) @ torch.ones(2, 2)).dtype, F.linear(w, torch.ones(1, 2)).dtype)
print(state())


@torch.no_grad()
def decorated(x):
    return x * 2


@torch.inference_mode()
def generator(x):
    for i in range(2):
        yield x * i, state()


print(decorated(w).requires_grad, decorated.__name__, decorated.__wrapped__.__code__.co_name, [(t.requires_grad, s) for t, s in generator(w)], state())
torch.set_grad_enabled(False)
print(state(), (w * 2).requires_grad)
torch.set_grad_enabled(True)
with torch.inference_mode():
    i = torch.ones(2)
for action in (lambda: i * w, lambda: i.add_(1), lambda: i.requires_grad_(), lambda: i.clone() * w, lambda: i.view(1, 2) * 2, lambda: i._version, lambda: w.data.is_inference()):
    try:
        print("fine", action() is not None)
    except RuntimeError as error:
        print(str(error).splitlines()[0][:70])

print("devices")
with torch.device("meta"):
    m = nn.Linear(1000, 1000)
    n = torch.ones(3, requires_grad=True)
    k = (m(torch.ones(2, 1000)) * 2).sum()
    k.backward()
    o = torch.tensor([1, 2])
    print(m.weight.device, n, k.shape, m.weight.grad.shape, o, o[0], n * 2 + 1, n.sum().requires_grad, m.weight.grad)
optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
optimizer.step()
optimizer.zero_grad()
torch.set_default_device("meta")
print(torch.zeros(2).device, torch.get_default_device(), torch.overrides._get_current_function_mode_stack() != [], torch.empty(2) + torch.ones(2))
torch.set_default_device(None)
print(torch.zeros(2).device, torch.overrides._get_current_function_mode_stack(), nn.Linear(1, 1, device="meta").to_empty(device="cpu").weight.shape)
torch.set_default_dtype(torch.float64)
print(torch.tensor(1.0).dtype, nn.Linear(1, 1).weight.dtype, torch.ones(1) * 2)
torch.set_default_dtype(torch.float32)
print("dtypes")
for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.cfloat, torch.int32, torch.bool, torch.uint8, torch.float8_e4m3fn):
    t = torch.tensor([0, 1, 1]).to(dtype)
    print(dtype, t, t.is_floating_point(), t.requires_grad, t.element_size())
    if dtype.is_floating_point or dtype.is_complex:
        try:
            t.requires_grad_()
            u = (t * 2 + t).abs().sum()
            u.backward()
            print(u, t.grad)
        except (RuntimeError, NotImplementedError) as error:
            print(str(error).splitlines()[0][:60])
c = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
d = (c * c.conj() + c.real * 1j + c.imag).abs().sum() + torch.view_as_real(c).sum()
d.backward()
print(c.grad, c.grad.real, c[None].H.is_conj(), c.conj().is_conj(), (-c.imag).is_neg(), c.detach()[None].T.conj().resolve_conj())
s = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), requires_grad=True)
e = torch.sparse.mm(s, torch.ones(2, 2)).sum()
e.backward()
print(s.grad, e, s.is_coalesced())
embedding = nn.Embedding(5, 2, sparse=True)
torch.manual_seed(0)
with torch.no_grad():
    embedding.weight.copy_(torch.arange(10.0).view(5, 2))
for opt in (torch.optim.SGD, torch.optim.SparseAdam, torch.optim.Adagrad):
    optimizer = opt(embedding.parameters(), lr=0.1)
    embedding(torch.tensor([1, 1, 3])).square().sum().backward()
    print(embedding.weight.grad.is_sparse, embedding.weight.grad.is_coalesced(), embedding.weight.grad._nnz(), embedding.weight.grad._values().tolist())
    optimizer.step()
    print(embedding.weight.tolist(), embedding.weight.grad.is_coalesced())
    optimizer.zero_grad(set_to_none=opt is torch.optim.SGD)
nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], requires_grad=True, layout=torch.jagged)
(nested * 2).values().sum().backward()
print(nested.grad.values() if nested.grad is not None else None, nested.shape[0])
q = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
print(q, q.int_repr(), q.dequantize())
z, empty = torch.zeros(0, 3, requires_grad=True), torch.tensor([])
(z * 2).sum().backward()
print(z.grad, empty, empty.sum(), torch.tensor(float("nan")), torch.tensor([float("inf"), -0.0]), torch.ones(1, 1, 1).squeeze())
torch.set_printoptions(precision=2, sci_mode=True)
print(torch.rand(2) * 0 + 0.123456, w)
torch.set_printoptions(profile="default")
print("deterministic")
torch.use_deterministic_algorithms(True, warn_only=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = torch.ones(3, requires_grad=True)
    x[torch.tensor([0, 0])].sum().backward()
    torch.empty(2)
    y = torch.zeros(2).index_add_(0, torch.tensor([0, 0]), torch.ones(2)).cumsum(0)
    F.interpolate(torch.ones(1, 1, 4, requires_grad=True), 2, mode="linear").sum().backward()
print([(str(c.message)[:50], c.lineno) for c in caught], torch.empty(2))
torch.use_deterministic_algorithms(False)
torch.set_num_threads(1)
print(torch.get_num_threads(), torch.__config__.parallel_info().splitlines()[1].strip())
torch.manual_seed(3)
generator = torch.Generator().manual_seed(5)
state_ = torch.get_rng_state()
print(torch.rand(1).item().hex(), torch.rand(1, generator=generator).item().hex(), torch.random.initial_seed())
with torch.random.fork_rng():
    torch.manual_seed(9)
    torch.rand(3)
torch.set_rng_state(state_)
print(torch.rand(1).item().hex(), torch.seed() != 3, torch.empty(2).normal_(generator=generator).tolist())
model = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2), nn.BatchNorm1d(2), nn.AlphaDropout(0.1))
flags = lambda: [m.training for m in model.modules()]  # noqa: E731
print(model.eval() is model, flags(), model.train() is model, flags(), model[1].requires_grad_(False) is model[1], [p.requires_grad for p in model.parameters()])
model[0].training = False
model.apply(lambda m: m.eval() if isinstance(m, nn.BatchNorm1d) else None)
print(flags(), model)
