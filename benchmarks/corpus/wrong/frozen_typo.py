# rule: attribute-misspelt
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 2)
for p in body.parameters():
    p.require_grad = False  # <- here
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(20, 4), torch.randint(0, 2, (20,))
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(head(torch.relu(body(x))), y).backward()
    opt.step()
