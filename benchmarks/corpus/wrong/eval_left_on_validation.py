# rule: eval-left-on
import torch
from torch import nn


def validate(model, x, y):
    model.eval()  # <- here
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(64, 4), torch.randn(64, 1)
model.train()
for epoch in range(4):
    for rows in torch.arange(64).split(16):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
    print(epoch, validate(model, x, y))
