"""Hyperparameters of a Gaussian process by its marginal likelihood: positive by softplus, a Cholesky factor with jitter."""
import math

import torch
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 5, 25)
y = torch.sin(x) + 0.1 * torch.randn(25)
raw = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.Adam([raw], lr=0.1)
losses = []
for step in range(30):
    length, scale, noise = F.softplus(raw).unbind()
    distance = (x[:, None] - x[None, :]) ** 2
    K = scale * torch.exp(-distance / (2 * length**2)) + (noise**2 + 1e-6) * torch.eye(25)
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y.unsqueeze(1), L)
    loss = 0.5 * (y @ alpha.squeeze(1)) + L.diagonal().log().sum() + 12.5 * math.log(2 * math.pi)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < losses[0] - 5
