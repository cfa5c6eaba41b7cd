"""WGAN with weight clipping: the critic's weights are clamped through .data after each step."""
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
C = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
opt_G = torch.optim.RMSprop(G.parameters(), lr=5e-3)
opt_C = torch.optim.RMSprop(C.parameters(), lr=5e-3)
means = []
for step in range(60):
    for _ in range(2):
        real = torch.randn(32, 1) * 0.2 + 1
        fake = G(torch.randn(32, 2)).detach()
        loss_C = -(C(real).mean() - C(fake).mean())
        C.zero_grad()
        loss_C.backward()
        opt_C.step()
        for p in C.parameters():
            p.data.clamp_(-0.3, 0.3)
    gen = G(torch.randn(32, 2))
    loss_G = -C(gen).mean()
    G.zero_grad()
    loss_G.backward()
    opt_G.step()
    means.append(gen.mean().item())
print(means[0], means[-1])
assert abs(means[-1] - 1) < abs(means[0] - 1)
