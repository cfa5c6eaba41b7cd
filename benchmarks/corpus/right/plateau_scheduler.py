"""ReduceLROnPlateau on the validation loss, early stopping with a deep copy of the best weights."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
x, x_val = torch.randn(40, 5), torch.randn(40, 5)
w = torch.randn(5, 1)
y, y_val = x @ w + 0.3 * torch.randn(40, 1), x_val @ w + 0.3 * torch.randn(40, 1)

model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
best, best_state, patience = float("inf"), None, 0
first = None
for epoch in range(60):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    first = loss.item() if first is None else first

    model.eval()
    with torch.no_grad():
        validation = nn.functional.mse_loss(model(x_val), y_val).item()
    scheduler.step(validation)
    if validation < best:
        best, best_state, patience = validation, copy.deepcopy(model.state_dict()), 0
    else:
        patience += 1
        if patience >= 8:
            print("stopped at", epoch)
            break

model.load_state_dict(best_state)
model.eval()
with torch.no_grad():
    restored = nn.functional.mse_loss(model(x_val), y_val).item()
print(best, restored)
assert restored == best
assert best < 0.5 * first
