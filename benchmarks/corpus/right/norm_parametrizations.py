"""Spectral norm on the critic's layers and weight norm on the encoder, by torch.nn.utils.parametrizations."""
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

torch.manual_seed(0)
encoder = nn.Sequential(weight_norm(nn.Linear(4, 16)), nn.ReLU(), weight_norm(nn.Linear(16, 8)))
critic = nn.Sequential(spectral_norm(nn.Linear(8, 16)), nn.LeakyReLU(0.1), spectral_norm(nn.Linear(16, 1)))
optimizer = torch.optim.Adam([*encoder.parameters(), *critic.parameters()], lr=1e-2)
x = torch.randn(64, 4)
y = torch.tanh(x[:, :1])
losses = []
for step in range(40):
    loss = nn.functional.mse_loss(critic(encoder(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.3 * losses[0]
