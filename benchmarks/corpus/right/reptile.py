"""Reptile: inner training on a copy of the weights, the outer ones moved towards the result; first order, no graph."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))


def task():
    phase = torch.rand(()) * 0.6
    x = torch.rand(24, 1) * 4 - 2
    return x, torch.sin(x + phase)


first_losses = []
for iteration in range(15):
    x, y = task()
    before = copy.deepcopy(model.state_dict())
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    for inner_step in range(5):
        loss = nn.functional.mse_loss(model(x), y)
        inner.zero_grad()
        loss.backward()
        inner.step()
        if inner_step == 0:
            first_losses.append(loss.item())
    after = model.state_dict()
    model.load_state_dict({name: before[name] + 0.5 * (after[name] - before[name]) for name in before})
print(first_losses[0], first_losses[-1])
assert first_losses[-1] < 0.6 * first_losses[0]
