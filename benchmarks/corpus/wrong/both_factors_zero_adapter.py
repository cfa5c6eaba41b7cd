# rule: both-factors-zero
import torch
from torch import nn

torch.manual_seed(0)
base = nn.Linear(6, 4)
base.requires_grad_(False)
down, up = nn.Linear(6, 2, bias=False), nn.Linear(2, 4, bias=False)
for layer in (down, up):
    nn.init.zeros_(layer.weight)  # <- here
opt = torch.optim.SGD([*down.parameters(), *up.parameters()], lr=0.1)
x, y = torch.randn(30, 6), torch.randn(30, 4)
for _ in range(5):
    loss = nn.functional.mse_loss(base(x) + up(down(x)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
