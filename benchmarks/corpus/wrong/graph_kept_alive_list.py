# rule: graph-kept-alive
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []
for step in range(30):
    x = torch.randn(8, 5)
    loss = (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss)  # <- here
print(sum(history).item() / len(history))
