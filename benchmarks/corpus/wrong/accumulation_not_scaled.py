# rule: accumulation-not-scaled
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
accumulate = 8
for i in range(32):
    x = torch.randn(4, 4)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()  # <- here
    if (i + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
