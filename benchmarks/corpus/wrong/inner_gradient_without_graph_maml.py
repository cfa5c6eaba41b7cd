# rule: inner-gradient-without-graph
import torch
import torch.nn as nn
from torch.func import functional_call

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
meta = torch.optim.Adam(net.parameters(), lr=1e-2)
mse = nn.MSELoss()
for _ in range(4):
    meta.zero_grad()
    x = torch.randn(12, 1)
    y = 2 * x
    weights = dict(net.named_parameters())
    inner = mse(functional_call(net, weights, (x[:6],)), y[:6])
    grads = torch.autograd.grad(inner, list(weights.values()), retain_graph=True)  # <- here
    fast = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), grads)}
    outer = mse(functional_call(net, fast, (x[6:],)), y[6:])
    outer.backward()
    meta.step()
