# rule: view-instead-of-transpose
import torch
from torch import nn

torch.manual_seed(0)
conv, head = nn.Conv1d(4, 6, 3), nn.Linear(6, 1)
opt = torch.optim.SGD([*conv.parameters(), *head.parameters()], lr=0.05)
for _ in range(4):
    x = torch.randn(10, 4, 8)
    features = conv(x)
    sequence = features.view(10, 6, 6).view(6, 10, 6)  # <- here
    loss = (head(sequence).mean(0) - x.mean((1, 2)).unsqueeze(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
