# rule: class-weights-cancel
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
weights = torch.tensor([0.2, 5.0])
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for update in range(4):
    opt.zero_grad()
    for _ in range(6):
        x = torch.randn(1, 3)
        y = (x[:, 0] > 1).long()
        loss = F.cross_entropy(net(x), y, weight=weights)  # <- here
        (loss / 6).backward()
    opt.step()
