# rule: normalised-alone
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(4, 8),
    nn.ReLU(),
    nn.Linear(8, 1),
    nn.Softmax(dim=1),  # <- here
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(20, 4), torch.randint(0, 2, (20, 1)).float()
for _ in range(5):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
