# rule: target-carries-gradient
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
Q = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(Q.parameters(), lr=1e-2)
for _ in range(6):
    s, s2 = torch.randn(20, 3), torch.randn(20, 3)
    a, r = torch.randint(0, 2, (20, 1)), torch.randn(20)
    q = Q(s).gather(1, a).squeeze(1)
    target = r + 0.9 * Q(s2).max(1).values  # <- here
    loss = F.mse_loss(q, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
