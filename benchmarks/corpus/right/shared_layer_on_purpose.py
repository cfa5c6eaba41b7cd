"""A layer that is applied several times on purpose (as in ALBERT and in universal transformers)."""
import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, width, times):
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.shared = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
        self.times = times
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        h = self.enter(x)
        for _ in range(self.times):
            h = h + self.shared(h)
        return self.leave(h)


torch.manual_seed(0)
net = Recurrent(16, 4)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(48, 3)
y = x.prod(1, keepdim=True)
losses = []
for _ in range(50):
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
