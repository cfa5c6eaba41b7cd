# rule: attribute-misspelt
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model[0].requires_grad = False  # <- here
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(16, 4)
for _ in range(4):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
