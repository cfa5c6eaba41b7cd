"""An energy-based model: Langevin samples made by autograd.grad on the input, contrastive divergence on the weights."""
import torch
import torch.nn as nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-2)


def langevin(x, steps=5, size=0.1):
    energy.requires_grad_(False)
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        slope, = torch.autograd.grad(energy(x).sum(), x)
        x = (x - size * slope + 0.02 * torch.randn_like(x)).detach().requires_grad_(True)
    energy.requires_grad_(True)
    return x.detach()


gaps = []
for step in range(30):
    real = torch.randn(32, 2) * 0.2 + torch.tensor([1.0, -1.0])
    fake = langevin(torch.randn(32, 2))
    up, down = energy(real), energy(fake)
    loss = (up - down).mean() + 0.1 * (up**2 + down**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gaps.append(loss.item())
print(gaps[0], gaps[-1])
assert min(gaps[-10:]) < gaps[0]
