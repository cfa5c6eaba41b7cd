# rule: hidden-data-write
import torch
from torch import nn

torch.manual_seed(0)
a, b = nn.Linear(3, 3), nn.Linear(3, 1)
x = torch.randn(10, 3)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for _ in range(4):
    opt.zero_grad()
    loss = b(torch.relu(a(x))).pow(2).mean()
    b.weight.data.clamp_(-0.1, 0.1)  # <- here
    loss.backward()
    opt.step()
