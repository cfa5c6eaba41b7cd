# rule: symmetric-start
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
for p in model.parameters():
    nn.init.constant_(p, 0.1)  # <- here
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(20, 3)
for _ in range(6):
    opt.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1] * x[:, 1:2]).backward()
    opt.step()
