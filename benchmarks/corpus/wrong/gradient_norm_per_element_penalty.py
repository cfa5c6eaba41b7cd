# rule: gradient-norm-per-element
import torch
from torch import nn

torch.manual_seed(0)
D = nn.Sequential(nn.Conv2d(1, 4, 3), nn.SiLU(), nn.Flatten(), nn.Linear(4 * 16, 1))
opt = torch.optim.Adam(D.parameters(), lr=1e-3)
for _ in range(3):
    real, fake = torch.randn(8, 1, 6, 6) + 1, torch.randn(8, 1, 6, 6)
    t = torch.rand(8, 1, 1, 1)
    mixed = (t * real + (1 - t) * fake).requires_grad_()
    g, = torch.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
    penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()  # <- here
    loss = D(fake).mean() - D(real).mean() + 10 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
