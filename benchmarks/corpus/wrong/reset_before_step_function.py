# rule: reset-before-step
import torch
from torch import nn


def update(model, opt, loss):
    loss.backward()
    model.zero_grad(set_to_none=False)  # <- here
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()


torch.manual_seed(1)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(20, 3)
for _ in range(6):
    update(net, opt, (net(x) - x[:, :1]).pow(2).mean())
