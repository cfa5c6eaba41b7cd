"""A neural ODE by Euler's method: the whole trajectory in one graph, the loss on points along it."""
import torch
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, state):
        return self.net(state)


def integrate(field, state, steps, dt):
    path = [state]
    for _ in range(steps):
        state = state + dt * field(state)
        path.append(state)
    return torch.stack(path)


torch.manual_seed(0)
angle = 0.2 * torch.arange(11).unsqueeze(1)
target = torch.cat([angle.cos(), angle.sin()], dim=1)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=2e-2)
losses = []
for _ in range(40):
    path = integrate(field, target[0], 10, 0.2)
    loss = (path - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.1 * losses[0]
