# rule: vanishing-gradient
import torch
from torch import nn

torch.manual_seed(0)
layers = []
for _ in range(12):
    layers += [nn.Linear(8, 8), nn.Sigmoid()]  # <- here
model = nn.Sequential(*layers, nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(20, 8)
for _ in range(4):
    opt.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    opt.step()
