# rule: scheduler-before-optimizer
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
for epoch in range(4):
    sched.step()  # <- here
    opt.zero_grad()
    x = torch.randn(12, 3)
    (net(x) - x[:, :1]).pow(2).mean().backward()
    opt.step()
