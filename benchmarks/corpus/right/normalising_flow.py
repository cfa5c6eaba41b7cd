"""A normalising flow of affine couplings: exact likelihood from the base density and the log-determinants."""
import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        log_scale, shift = self.net(a).chunk(2, dim=1)
        log_scale = torch.tanh(log_scale)
        b = (b - shift) * torch.exp(-log_scale)
        z = torch.cat([b, a] if self.flip else [a, b], dim=1)
        return z, -log_scale.sum(dim=1)


class Flow(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(flip=i % 2 == 1) for i in range(depth)])

    def log_prob(self, x):
        total = torch.zeros(x.size(0))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        base = torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(dim=1)
        return base + total


torch.manual_seed(0)
x1 = torch.randn(128, 1) * 0.5 + 1
data = torch.cat([x1, x1**2 + 0.2 * torch.randn(128, 1)], dim=1)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
losses = []
for step in range(50):
    optimizer.zero_grad()
    loss = -flow.log_prob(data).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
