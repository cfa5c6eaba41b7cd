"""Sharpness-aware minimisation: two passes a step, the weights moved up and back between them."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
base = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
x = torch.randn(64, 4)
y = (x[:, 0] * x[:, 1] > 0).long()
losses = []
for step in range(40):
    loss = nn.functional.cross_entropy(model(x), y)
    base.zero_grad()
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    moves = []
    with torch.no_grad():
        for p in model.parameters():
            e = 0.05 * p.grad / (norm + 1e-12)
            p.add_(e)
            moves.append(e)
    base.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for p, e in zip(model.parameters(), moves):
            p.sub_(e)
    base.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
