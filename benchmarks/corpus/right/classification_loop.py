"""A classifier on points of three clusters: one global loop, the whole data set in each step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
centres = torch.tensor([[2.0, 0.0], [-2.0, 1.0], [0.0, -2.0]])
y = torch.arange(3).repeat(30)
x = centres[y] + 0.5 * torch.randn(90, 2)

model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

first = None
for step in range(60):
    optimizer.zero_grad()
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    loss.backward()
    optimizer.step()
    if first is None:
        first = loss.item()
    if step % 20 == 0:
        accuracy = (logits.argmax(dim=1) == y).float().mean()
        print(step, loss.item(), accuracy.item())

assert loss.item() < 0.3 * first
