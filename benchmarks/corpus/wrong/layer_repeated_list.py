# rule: layer-repeated
import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.hidden = nn.Sequential(*([nn.Linear(width, width), nn.ReLU()] * depth))  # <- here
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        return self.leave(self.hidden(torch.relu(self.enter(x))))


torch.manual_seed(0)
net = MLP(8, 3)
opt = torch.optim.Adam(net.parameters())
x = torch.randn(20, 3)
for _ in range(4):
    opt.zero_grad()
    nn.functional.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
