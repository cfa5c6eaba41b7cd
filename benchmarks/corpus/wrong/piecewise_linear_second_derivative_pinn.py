# rule: piecewise-linear-second-derivative
import torch
from torch import nn

torch.manual_seed(0)
u = nn.Sequential(nn.Linear(1, 16), nn.LeakyReLU(), nn.Linear(16, 1))  # <- here
optimizer = torch.optim.Adam(u.parameters(), lr=1e-2)
x = torch.linspace(0, 1, 20).unsqueeze(1).requires_grad_(True)
for _ in range(5):
    y = u(x)
    dy, = torch.autograd.grad(y.sum(), x, create_graph=True)
    ddy, = torch.autograd.grad(dy.sum(), x, create_graph=True)
    loss = (ddy + 1).pow(2).mean() + y[0].pow(2).sum() + y[-1].pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
