# rule: validation-in-training-mode
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(40, 3), torch.randn(40, 1)
x_val, y_val = torch.randn(20, 3) + 3, torch.randn(20, 1)
for epoch in range(4):
    model.train()
    for rows in torch.arange(40).split(20):
        opt.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        opt.step()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val)  # <- here
    print(epoch, val.item())
