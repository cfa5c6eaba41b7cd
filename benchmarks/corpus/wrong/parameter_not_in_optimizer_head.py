# rule: parameter-not-in-optimizer
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 10)
        self.head = nn.Linear(10, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.body.parameters(), lr=0.1)  # <- here
x, y = torch.randn(20, 4), torch.randint(0, 2, (20,))
for _ in range(5):
    net.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
