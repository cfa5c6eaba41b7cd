"""Gradient checkpointing of deep blocks that hold no BatchNorm; dropout keeps its random state."""
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.net = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.05), nn.Linear(width, width))

    def forward(self, x):
        return x + self.net(self.norm(x))


class Deep(nn.Module):
    def __init__(self, width=16, depth=4):
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.leave(x)


torch.manual_seed(0)
x = torch.randn(48, 4)
y = torch.sin(x.sum(dim=1, keepdim=True))
model = Deep()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
