# rule: optimizer-holds-old
import copy

import torch
import torch.nn as nn

torch.manual_seed(0)
template = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.Adam(template.parameters(), lr=1e-2)  # <- here
net = copy.deepcopy(template)
x = torch.randn(18, 3)
for step in range(5):
    loss = (net(x) - x[:, :1]).pow(2).mean()
    net.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
