# The one exception that ends a training program.
# transparency: -- module
# transparency: -- hook
# transparency: -- second
# transparency: -- warning
import sys
import warnings

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.inner = nn.ModuleList([nn.Linear(a, b), nn.Linear(b, a + 1)])

    def forward(self, x):
        for layer in self.inner:
            x = layer(x)
        return x


def loss_of(model, x):
    return (
        model(x).pow(2).mean()
        + sum(p.abs().sum() for p in model.parameters())
    )


def main(kind):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), *([Block(2, 4)] * (2 if kind == "module" else 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if kind == "hook":
        next(model.parameters()).register_hook(lambda g: g.reshape(-1) @ torch.ones(2, 2))
    if kind == "warning":
        warnings.simplefilter("error")
        nn.functional.mse_loss(model(torch.ones(1, 3)), torch.ones(1, 1))
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(model, torch.ones(1, 3))
        loss.backward()
        if kind == "second":
            loss.backward()
        optimizer.step()
        print(step, float(loss.detach()))


main(sys.argv[1])
