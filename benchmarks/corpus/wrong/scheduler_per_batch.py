# rule: scheduler-rate
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
x, y = torch.randn(64, 4), torch.randn(64, 1)
for epoch in range(2):
    for rows in torch.arange(64).split(8):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
        scheduler.step()  # <- here
