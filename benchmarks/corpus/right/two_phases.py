"""Pretraining, then fine-tuning: the second phase has its own optimizer and a head of its own."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 6)
encoder = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
decoder = nn.Linear(16, 6)

optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for step in range(30):
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("reconstruction", loss.item())

head = nn.Linear(16, 2)
y = (x[:, 0] > 0).long()
optimizer = torch.optim.Adam([
    {"params": encoder.parameters(), "lr": 1e-3},
    {"params": head.parameters(), "lr": 2e-2},
])
losses = []
for step in range(30):
    loss = nn.functional.cross_entropy(head(encoder(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
