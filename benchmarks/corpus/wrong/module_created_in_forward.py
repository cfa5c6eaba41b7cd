# rule: layer-made-in-forward
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)

    def forward(self, x):
        x = torch.relu(self.first(x))
        last = nn.Linear(8, 2)  # <- here
        return last(x)


torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
