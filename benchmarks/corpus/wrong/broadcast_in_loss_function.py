# rule: broadcast-in-loss
import warnings

import torch
import torch.nn as nn

warnings.filterwarnings("ignore")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
criterion = nn.MSELoss()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(6):
    x = torch.randn(16, 3)
    target = x.sum(dim=1)
    opt.zero_grad()
    loss = criterion(net(x), target)  # <- here
    loss.backward()
    opt.step()
