# rule: gradient-not-reset
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
fast = torch.optim.SGD(model[0].parameters(), lr=0.05)
x, y = torch.randn(20, 4), torch.randn(20, 1)
for step in range(6):
    fast.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()  # <- here
    fast.step()
    with torch.no_grad():
        for p in model[2].parameters():
            p -= 0.01 * p.grad
