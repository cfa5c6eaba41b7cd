"""Adversarial training with a delta that is a leaf: its buffer is reset in each inner step, the model's before its own."""
import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(48, 6)
y = (x[:, :3].sum(1) > 0).float()
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
criterion = nn.BCEWithLogitsLoss()
epsilon, alpha = 0.1, 0.04

losses = []
for step in range(30):
    delta = torch.zeros_like(x).uniform_(-epsilon, epsilon).requires_grad_()
    for _ in range(3):
        criterion(model(x + delta).squeeze(1), y).backward()
        with torch.no_grad():
            delta += alpha * delta.grad.sign()
            delta.clamp_(-epsilon, epsilon)
        delta.grad.zero_()
    optimizer.zero_grad()
    loss = criterion(model(x + delta.detach()).squeeze(1), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.8 * losses[0]
