# rule: update-lost-in-precision
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.full((4,), 8.0))

    def forward(self, x):
        return x * self.gain


torch.manual_seed(0)
net = Scale().bfloat16()  # <- here
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.randn(20, 4).bfloat16()
for _ in range(8):
    opt.zero_grad()
    loss = (net(x) - 4 * x).pow(2).mean()
    loss.backward()
    opt.step()
