# rule: both-factors-zero
import torch
from torch import nn


class Factorised(nn.Module):
    def __init__(self, n, m, rank):
        super().__init__()
        self.base = nn.Linear(n, m)
        self.base.requires_grad_(False)
        self.U = nn.Parameter(torch.zeros(m, rank))  # <- here
        self.V = nn.Parameter(torch.zeros(rank, n))

    def forward(self, x):
        return self.base(x) + x @ (self.U @ self.V).T


torch.manual_seed(0)
net = Factorised(5, 3, 2)
opt = torch.optim.Adam([net.U, net.V], lr=1e-2)
x, y = torch.randn(30, 5), torch.randn(30, 3)
for _ in range(5):
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
