# rule: first-not-finite
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(10, 4) * 100
y = torch.randint(0, 3, (10,))
for _ in range(3):
    probabilities = torch.softmax(model(x) * 5, dim=1)
    loss = -torch.log(probabilities)[torch.arange(10), y].mean()  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
