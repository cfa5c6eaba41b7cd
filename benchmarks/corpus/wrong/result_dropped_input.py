# rule: result-dropped
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
noise = torch.randn(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x = noise * 5
    x.clamp(-1, 1)  # <- here
    loss = nn.functional.cross_entropy(model(x), torch.zeros(8, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
