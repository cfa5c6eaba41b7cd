"""A rate set by hand in the parameter groups, L1 on the weights, a metric by argmax, losses kept as numbers."""
import math

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.5)
x = torch.randn(90, 6)
y = x[:, :3].argmax(1)
losses, accuracies = [], []
for step in range(50):
    for group in opt.param_groups:
        group["lr"] = 0.5 * (1 + math.cos(math.pi * step / 50)) / 2
    logits = net(x)
    l1 = sum(p.abs().sum() for p in net.parameters())
    loss = nn.functional.cross_entropy(logits, y) + 1e-4 * l1
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.detach())
    accuracies.append((logits.argmax(1) == y).float().mean().item())
losses = torch.stack(losses)
print(losses[0].item(), losses[-1].item(), accuracies[-1])
assert losses[-1] < 0.5 * losses[0]
