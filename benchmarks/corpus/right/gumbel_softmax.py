"""Discrete choices by the straight-through Gumbel softmax, the temperature annealed."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder = nn.Linear(6, 4)
codebook = nn.Parameter(torch.randn(4, 6))
optimizer = torch.optim.Adam([*encoder.parameters(), codebook], lr=3e-2)
prototypes = torch.randn(4, 6) * 2
losses = []
for step in range(60):
    x = prototypes[torch.randint(0, 4, (48,))] + 0.1 * torch.randn(48, 6)
    tau = max(0.5, 1.5 * 0.98**step)
    choice = F.gumbel_softmax(encoder(x), tau=tau, hard=True)
    reconstruction = choice @ codebook
    loss = F.mse_loss(reconstruction, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
