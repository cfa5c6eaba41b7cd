# Programs that read the program: scripting, tracing, symbolic tracing, compilation, export.
# transparency: -- script
# transparency: -- trace
# transparency: -- fx
# transparency: env=TORCH_LOGS_FORMAT=%(message)s -- compile
# transparency: slow env=TORCH_LOGS_FORMAT=%(message)s -- inductor
import sys
import traceback
import warnings

import torch
import torch.fx
import torch.nn as nn
import torch.nn.functional as F


class Gate(nn.Module):
    def __init__(self, size: int = 3):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.register_buffer("scale", torch.tensor(2.0))
        self.count: int = 0

    def forward(self, x: torch.Tensor, n: int = 2) -> torch.Tensor:
        y = self.linear(x) * self.scale
        for i in range(n):
            y = y + x[0] * i
        if n > 1:
            y = torch.relu(y)
        else:
            y = y - 1
        a, b = y.clone().chunk(2, 0)
        assert a.dim() == 2, "two dimensions"
        y = y.clone()
        y[0] = a[0] * 2
        return F.softmax(y, dim=-1) + b.sum()


def helper(x: torch.Tensor, k: float) -> torch.Tensor:
    x = x * k
    x += 1
    return x.sin()


def control(x):
    if x.sum() > 0:
        return x * 2
    return -x


def loss_of(model, x):
    out = model(x)
    return out.pow(2).mean()


torch.manual_seed(0)
x = torch.rand(2, 3)


def script():
    model = Gate()
    scripted = torch.jit.script(model)
    print(scripted.code, scripted.graph)
    print([float(v).hex() for v in scripted(x).flatten()], type(scripted).__name__)
    function = torch.jit.script(helper)
    print(function.code, function.graph, function(x, 2.0).sum().item().hex())
    loss = scripted(x).sum() + function(x, 1.0).sum()
    loss.backward()
    print([p.grad is not None for p in scripted.parameters()], model.linear.weight.grad is not None)

    @torch.jit.script
    def inner(x: torch.Tensor, names: list[str]) -> list[torch.Tensor]:
        out = []
        for name in names:
            out.append(x * len(name))
        return out

    print(inner.code, [t.sum().item() for t in inner(torch.ones(2), ["a", "bcd"])])
    try:
        torch.jit.script(lambda v: v.nothing_like_this())
    except Exception as error:
        print(type(error).__name__)

    def bad(x: torch.Tensor):
        y = x + 1
        return y.no_such_method(
            x
        )

    try:
        torch.jit.script(bad)
    except RuntimeError as error:
        print(error)
    try:
        function(torch.ones(1), "text")
    except RuntimeError as error:
        print(error)


def trace():
    model = Gate()
    traced = torch.jit.trace(model, (x,), check_trace=False)
    print(traced.code, traced.graph)
    print([float(v).hex() for v in traced(x).flatten()])
    function = torch.jit.trace(lambda v: helper(v, 3.0) + control(v), x)
    print(function.code, function.graph, function(-x).sum().item().hex())
    warned = torch.jit.trace(lambda v: v * float(v.sum()) + len(v) + v.shape[0] + torch.tensor(v.sum()), x, check_trace=False)
    print(warned.code)
    for row in torch.jit.trace(lambda v: tuple(r * 2 for r in v), x)(x):
        print(row.tolist() == (x[0] * 2).tolist())
    traced(x).sum().backward()
    print(model.linear.weight.grad.sum().item().hex())
    print(traced.inlined_graph)


def fx():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.w = model, nn.Parameter(torch.ones(3))

        def forward(self, x, k=2):
            y = self.inner(x) + self.w
            y = y * k - y[0] / 2
            a, b = y.unbind(0)
            z = torch.cat([a, b], dim=0).relu().view(2, -1)
            z = helper(z, 2.0)
            return {"z": z, "t": z.T, "s": z.shape[0] + 1, "first": z.grad}

    traced = torch.fx.symbolic_trace(Root())
    print(traced.code, traced.graph)
    print([(n.op, n.name, str(n.target).partition(" at ")[0], n.stack_trace) for n in traced.graph.nodes])
    try:
        torch.fx.symbolic_trace(control)
    except torch.fx.proxy.TraceError:
        traceback.print_exc(file=sys.stdout)
    try:
        torch.fx.symbolic_trace(lambda v: [r for r in v])
    except torch.fx.proxy.TraceError:
        traceback.print_exc(file=sys.stdout)
    tracer = torch.fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(Root())
    print([n.stack_trace for n in graph.nodes])
    print(torch.fx.Interpreter(traced).run(x)["z"].sum().item().hex())
    from torch.fx.experimental.proxy_tensor import make_fx

    print(make_fx(lambda v: helper(v, 2.0) * v[0] + (v > 0).sum())(x).code)
    print(make_fx(torch.func.grad(lambda v: helper(v, 2.0).sum()))(x).code)
    exported = torch.export.export(Gate(), (x,))
    print(exported.graph_module.code, exported.graph_signature)


def compiled(backend):
    graphs = []

    def note(module, inputs):
        graphs.append((module.code, len(inputs)))
        return module.forward

    chosen = note if backend == "eager" else backend
    function = torch.compile(helper, backend=chosen)
    print([function(x, k).sum().item().hex() for k in (1.0, 2.0, 1.0)])
    print(*graphs, sep="\n")
    graphs.clear()
    torch._dynamo.reset()
    model = Gate()
    fast = torch.compile(model, backend=chosen, fullgraph=True)
    w = x.clone().requires_grad_()
    loss = loss_of(fast, w)
    loss.backward()
    print([float(v).hex() for v in w.grad.flatten()[:3]], [p.grad.sum().item().hex() for p in model.parameters()])
    print(*graphs, sep="\n")
    graphs.clear()
    torch._dynamo.reset()

    @torch.compile(backend=chosen)
    def broken(v):
        v = v * 2
        print("a break in the graph")
        v = control(v)
        torch._dynamo.graph_break()
        values = [v + i for i in range(2)]
        a, *b = values
        with torch.no_grad():
            c = a.exp()
        return a + b[0] + c.detach(), {"c": c}

    print(broken(x)[0].sum().item().hex(), broken(-x)[0].sum().item().hex())
    print(*graphs, sep="\n")
    print({k: dict(v) for k, v in torch._dynamo.utils.counters.items() if k in ("stats", "graph_break", "frames", "unimplemented")})
    graphs.clear()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    explained = torch._dynamo.explain(broken.__wrapped__ if hasattr(broken, "__wrapped__") else broken)(x)
    print(explained.graph_count, explained.graph_break_count, explained.op_count)
    torch._dynamo.reset()

    def step(model, optimizer, batch):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    fast = torch.compile(net, backend="eager" if backend == "eager" else backend)
    print([step(fast, optimizer, x).item().hex() for _ in range(3)], [p.sum().item().hex() for p in net.parameters()], sorted(fast.state_dict()))
    print(type(fast).__name__, fast.training, fast.eval() is fast, net.training)

    class Failing(nn.Module):
        def forward(self, v):
            return v @ torch.ones(
                5, 5)

    try:
        torch.compile(Failing(), backend="eager")(x)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
        print([f.name for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__])
    try:
        torch.compile(lambda v: v.item() + 1 if v.sum() > 0 else v, backend="eager", fullgraph=True)(x)
    except Exception as error:
        print(type(error).__name__, [line for line in str(error).splitlines() if __file__ in line])


with warnings.catch_warnings():
    if sys.argv[1] == "script":
        warnings.simplefilter("ignore", DeprecationWarning)
    {"script": script, "trace": trace, "fx": fx, "compile": lambda: compiled("eager"), "inductor": lambda: compiled("inductor")}[sys.argv[1]]()
print(torch.rand(1).item().hex())
