"""WGAN with gradient penalty: several critic steps a generator step, the penalty by a double backward."""
import torch
import torch.autograd as autograd
import torch.nn as nn


class MLP(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 32), nn.Softplus(), nn.Linear(32, outputs))

    def forward(self, x):
        return self.net(x)


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    gradient, = autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True)
    return ((gradient.norm(2, dim=1) - 1) ** 2).mean()


def train(steps=50, n_critic=3, weight=1.0):
    G, D = MLP(3, 2), MLP(2, 1)
    optim_g = torch.optim.Adam(G.parameters(), lr=1e-2, betas=(0.0, 0.9))
    optim_d = torch.optim.Adam(D.parameters(), lr=1e-2, betas=(0.0, 0.9))
    distances = []
    for step in range(steps):
        for _ in range(n_critic):
            real = torch.randn(24, 2) * 0.2 + 1.5
            with torch.no_grad():
                fake = G(torch.randn(24, 3))
            loss = D(fake).mean() - D(real).mean() + weight * gradient_penalty(D, real, fake)
            optim_d.zero_grad()
            loss.backward()
            optim_d.step()
        for p in D.parameters():
            p.requires_grad_(False)
        optim_g.zero_grad()
        fake = G(torch.randn(24, 3))
        (-D(fake).mean()).backward()
        optim_g.step()
        for p in D.parameters():
            p.requires_grad_(True)
        distances.append((fake.detach().mean(0) - 1.5).norm().item())
    return distances


torch.manual_seed(0)
distances = train()
print(distances[0], distances[-1])
assert min(distances[-5:]) < 0.5 * distances[0]
