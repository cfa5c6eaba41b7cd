"""Alternating optimisation of a mask and weights by two optimizers; each resets what it owns before its own backward."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(60, 10)
y = x[:, :2] @ torch.tensor([[2.0], [-1.0]])
weights = nn.Linear(10, 1)
architecture = nn.Parameter(torch.zeros(10))
w_optimizer = torch.optim.SGD(weights.parameters(), lr=0.1)
a_optimizer = torch.optim.Adam([architecture], lr=5e-2)


def objective(rows):
    return nn.functional.mse_loss(weights(x[rows] * torch.sigmoid(architecture)), y[rows])


losses = []
for step in range(40):
    train, valid = torch.arange(0, 40), torch.arange(40, 60)
    a_optimizer.zero_grad()
    (objective(valid) + 1e-3 * torch.sigmoid(architecture).sum()).backward()
    a_optimizer.step()
    w_optimizer.zero_grad()
    loss = objective(train)
    loss.backward()
    w_optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.1 * losses[0]
