# rule: term-without-gradient
import torch
from torch import nn


def count_penalty(x):
    return (x > 0.5).sum().float() / x.numel()  # <- here


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 10), nn.Sigmoid(), nn.Linear(10, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
data = torch.randn(25, 4)
for _ in range(5):
    hidden = net[1](net[0](data))
    loss = nn.functional.mse_loss(net[2](hidden), data[:, :1]) + 0.3 * count_penalty(hidden)
    opt.zero_grad()
    loss.backward()
    opt.step()
