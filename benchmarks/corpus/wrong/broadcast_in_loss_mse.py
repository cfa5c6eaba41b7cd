# rule: broadcast-in-loss
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(30, 4)
y = x[:, 0] * 2
for _ in range(10):
    prediction = model(x)
    loss = ((prediction - y) ** 2).mean()  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
