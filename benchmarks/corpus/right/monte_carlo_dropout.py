"""Monte Carlo dropout: for prediction only the dropout modules are put back into training mode, on purpose."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.linspace(-2, 2, 64).unsqueeze(1)
y = torch.sin(x)
losses = []
for step in range(60):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

model.eval()
for module in model.modules():
    if isinstance(module, nn.Dropout):
        module.train()
with torch.no_grad():
    samples = torch.stack([model(x) for _ in range(10)])
print(losses[-1], samples.std(0).mean().item())
assert losses[-1] < 0.4 * losses[0]
