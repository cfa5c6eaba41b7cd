"""A denoising diffusion model: noise at a random time step, predicted by a network that is told the time; EMA weights."""
import copy

import torch
import torch.nn as nn

torch.manual_seed(0)
STEPS = 20
beta = torch.linspace(1e-3, 0.2, STEPS)
alpha_bar = torch.cumprod(1 - beta, dim=0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 16)
        self.enter = nn.Linear(2, 16)
        self.net = nn.Sequential(nn.SiLU(), nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x, t):
        return self.net(self.enter(x) + self.time(t))


def ema_update(average, model, decay):
    with torch.no_grad():
        for a, m in zip(average.parameters(), model.parameters()):
            a.lerp_(m, 1 - decay)


model = Denoiser()
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
angle = torch.rand(128) * 2 * torch.pi
data = torch.stack([angle.cos(), angle.sin()], dim=1)
losses = []
for step in range(60):
    x0 = data[torch.randint(0, 128, (64,))]
    t = torch.randint(0, STEPS, (64,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t].unsqueeze(1)
    noisy = a.sqrt() * x0 + (1 - a).sqrt() * noise
    loss = nn.functional.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    ema_update(ema, model, 0.95)
    losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
