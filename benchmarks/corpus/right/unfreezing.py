"""Gradual unfreezing: the backbone joins later by add_param_group with a smaller learning rate."""
import torch
import torch.nn as nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
head = nn.Linear(16, 1)
backbone.requires_grad_(False)

x = torch.randn(64, 6)
y = torch.tanh(x[:, :1] * 2) + x[:, 1:2]

optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
losses = []
for epoch in range(40):
    if epoch == 15:
        backbone.requires_grad_(True)
        optimizer.add_param_group({"params": backbone.parameters(), "lr": 3e-3})
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(backbone(x)), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[14], losses[-1])
assert losses[-1] < 0.5 * losses[0]
