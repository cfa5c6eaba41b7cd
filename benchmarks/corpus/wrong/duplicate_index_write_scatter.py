# rule: duplicate-index-write
import torch
from torch import nn

torch.manual_seed(0)
edges = torch.tensor([[0, 1, 2, 3, 0], [1, 1, 2, 2, 2]])
transform = nn.Linear(3, 3)
opt = torch.optim.SGD(transform.parameters(), lr=0.1)
x = torch.randn(4, 3)
for _ in range(4):
    messages = transform(x[edges[0]])
    nodes = torch.zeros(4, 3)
    nodes[edges[1]] += messages  # <- here
    loss = (nodes - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
