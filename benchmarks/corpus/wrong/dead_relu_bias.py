# rule: dead-relu
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
nn.init.constant_(model[0].bias, -50.0)  # <- here
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(20, 4)
for _ in range(6):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
