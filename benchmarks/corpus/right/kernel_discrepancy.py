"""A generator trained by maximum mean discrepancy: all pairs by broadcasting, on purpose."""
import torch
from torch import nn


def kernel(a, b):
    distances = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
    return torch.exp(-distances / 2).mean()


torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(generator.parameters(), lr=2e-2)
losses = []
for step in range(50):
    real = 0.5 * torch.randn(40, 2) + torch.tensor([1.0, 1.0])
    fake = generator(torch.randn(40, 2))
    loss = kernel(fake, fake) + kernel(real, real) - 2 * kernel(fake, real)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
