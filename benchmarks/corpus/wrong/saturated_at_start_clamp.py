# rule: saturated-at-start
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(1.5))  # <- here
        self.linear = nn.Linear(3, 1)

    def forward(self, x):
        return self.alpha.clamp(0.0, 1.0) * self.linear(x)


torch.manual_seed(0)
net = Gate()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(16, 3)
for _ in range(6):
    opt.zero_grad()
    nn.functional.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
print(net.alpha.item())
