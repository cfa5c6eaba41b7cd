# rule: state-by-reference
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.2)
x = torch.randn(20, 2)
y = x.sum(1, keepdim=True)
best, best_weights = float("inf"), None
for epoch in range(8):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    with torch.no_grad():
        validation = nn.functional.mse_loss(model(x + 0.1), y).item()
    if validation < best:
        best = validation
        best_weights = model.state_dict().copy()  # <- here
    optimizer.step()
model.load_state_dict(best_weights)
