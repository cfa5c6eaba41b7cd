# rule: piecewise-linear-second-derivative
import torch
import torch.nn as nn
import torch.nn.functional as F


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 12)
        self.b = nn.Linear(12, 1)

    def forward(self, q):
        return self.b(F.relu(self.a(q)))  # <- here


torch.manual_seed(0)
V = Potential()
opt = torch.optim.SGD(V.parameters(), lr=0.01)
for _ in range(4):
    q = torch.randn(15, 2, requires_grad=True)
    force = torch.autograd.grad(V(q).sum(), q, create_graph=True)[0]
    laplacian = sum(torch.autograd.grad(force[:, i].sum(), q, create_graph=True)[0][:, i] for i in range(2))
    loss = (laplacian - 1.0).pow(2).mean() + (force + q).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
