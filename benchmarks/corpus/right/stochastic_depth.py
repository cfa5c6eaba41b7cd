"""Stochastic depth and layer scale: blocks are left out at random, each block's scale starts very small."""
import random

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.gamma = nn.Parameter(1e-2 * torch.ones(width))
        self.drop = drop

    def forward(self, x):
        if self.training and random.random() < self.drop:
            return x
        scale = 1 / (1 - self.drop) if self.training else 1.0
        return x + scale * self.gamma * self.mlp(self.norm(x))


random.seed(0)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), *[Block(16, 0.3) for _ in range(3)], nn.LayerNorm(16), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
x = torch.randn(64, 4)
y = torch.sin(2 * x[:, :1])
losses = []
net.train()
for _ in range(50):
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
