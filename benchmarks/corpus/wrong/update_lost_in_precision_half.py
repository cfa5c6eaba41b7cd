# rule: update-lost-in-precision
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1).to(torch.bfloat16)  # <- here
nn.init.ones_(model.weight)
nn.init.ones_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(32, 8, dtype=torch.bfloat16)
y = x.sum(1, keepdim=True) + 1.2
for _ in range(10):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
