# rule: class-weights-cancel
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 10.0]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(12, 4), torch.randint(0, 2, (12,))
for epoch in range(3):
    for i in range(12):
        optimizer.zero_grad()
        loss = criterion(model(x[i : i + 1]), y[i : i + 1])  # <- here
        loss.backward()
        optimizer.step()
