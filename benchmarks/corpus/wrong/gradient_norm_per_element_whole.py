# rule: gradient-norm-per-element
import torch
import torch.nn as nn


def penalty(critic, x):
    x = x.clone().requires_grad_(True)
    out = critic(x)
    slope = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)[0]
    return (slope.norm(2) - 1) ** 2  # <- here


torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 12), nn.Softplus(), nn.Linear(12, 1))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(4):
    real, fake = torch.randn(16, 3) + 1, torch.randn(16, 3)
    loss = critic(fake).mean() - critic(real).mean() + penalty(critic, 0.5 * (real + fake))
    opt.zero_grad()
    loss.backward()
    opt.step()
