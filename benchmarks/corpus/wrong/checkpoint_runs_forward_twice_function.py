# rule: checkpoint-runs-forward-twice
import torch
import torch.nn as nn
import torch.utils.checkpoint as cp

torch.manual_seed(0)
conv, norm, head = nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.Linear(4, 1)
opt = torch.optim.Adam([*conv.parameters(), *norm.parameters(), *head.parameters()])


def features(x):
    return torch.relu(norm(conv(x)))


for _ in range(3):
    x = torch.randn(8, 2, 12, requires_grad=True)
    hidden = cp.checkpoint(features, x, use_reentrant=True)  # <- here
    loss = head(hidden.mean(-1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
