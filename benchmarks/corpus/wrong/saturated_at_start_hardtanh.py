# rule: saturated-at-start
import torch
from torch import nn

torch.manual_seed(0)
threshold = nn.Parameter(torch.tensor(4.0))  # <- here
linear = nn.Linear(3, 1)
opt = torch.optim.Adam([threshold, *linear.parameters()], lr=0.05)
x = torch.randn(20, 3)
for _ in range(5):
    scale = nn.functional.hardtanh(threshold)
    loss = (linear(x) * scale - x[:, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(threshold.item())
