# rule: inner-gradient-without-graph
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 16), nn.Softplus(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(5):
    real, fake = torch.randn(16, 2) + 1, torch.randn(16, 2)
    mixed = (0.5 * real + 0.5 * fake).requires_grad_(True)
    gradient = torch.autograd.grad(critic(mixed).sum(), mixed)[0]  # <- here
    penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
