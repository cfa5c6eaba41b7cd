# rule: infinite-slope
import torch
import torch.nn as nn

torch.manual_seed(0)
layer = nn.Linear(2, 6)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(10, 2)
    h = layer(x) ** 2 * (x[:, :1] > 0)
    loss = (h**0.5).mean()  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
