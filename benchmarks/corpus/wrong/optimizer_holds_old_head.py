# rule: optimizer-holds-old
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
model[2] = nn.Linear(8, 2)
x, y = torch.randn(20, 4), torch.randint(0, 2, (20,))
for _ in range(4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
