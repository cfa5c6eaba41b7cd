"""The R1 penalty: the discriminator's gradient at real data, penalised by a double backward every few steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
D = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
G = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 2))
d_optim = torch.optim.Adam(D.parameters(), lr=5e-3)
g_optim = torch.optim.Adam(G.parameters(), lr=5e-3)

d_losses, g_means = [], []
for step in range(60):
    real = torch.randn(32, 2) * 0.3 + 2.0
    D.requires_grad_(True)
    fake = G(torch.randn(32, 2)).detach()
    d_loss = F.softplus(D(fake)).mean() + F.softplus(-D(real)).mean()
    d_optim.zero_grad()
    d_loss.backward()
    d_optim.step()
    if step % 4 == 0:
        real.requires_grad_(True)
        score = D(real)
        grad_real, = torch.autograd.grad(score.sum(), real, create_graph=True)
        penalty = grad_real.pow(2).reshape(32, -1).sum(1).mean()
        d_optim.zero_grad()
        (0.5 * 1.0 * penalty * 4).backward()
        d_optim.step()
    D.requires_grad_(False)
    sample = G(torch.randn(32, 2))
    g_loss = F.softplus(-D(sample)).mean()
    g_optim.zero_grad()
    g_loss.backward()
    g_optim.step()
    g_means.append((sample.detach().mean(0) - 2.0).norm().item())
print(g_means[0], g_means[-1])
assert min(g_means[-10:]) < 0.8 * g_means[0]
