"""Adversarial training: the perturbation's gradient by autograd.grad, so that no buffer is touched."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
y = (x[:, 0] + x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def fgsm(inputs, targets, epsilon=0.1):
    delta = torch.zeros_like(inputs, requires_grad=True)
    loss = F.cross_entropy(model(inputs + delta), targets)
    gradient, = torch.autograd.grad(loss, delta)
    return (inputs + epsilon * gradient.sign()).detach()


losses = []
for epoch in range(12):
    for rows in torch.randperm(64).split(16):
        adversarial = fgsm(x[rows], y[rows])
        loss = 0.5 * F.cross_entropy(model(x[rows]), y[rows]) + 0.5 * F.cross_entropy(model(adversarial), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.8 * losses[0]
