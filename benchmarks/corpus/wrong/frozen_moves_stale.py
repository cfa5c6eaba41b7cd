# rule: frozen-moves
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 6)
        self.head = nn.Linear(6, 1)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
x, y = torch.randn(16, 3), torch.randn(16, 1)
for step in range(10):
    loss = (net(x) - y).square().mean()
    sgd.zero_grad(set_to_none=False)
    loss.backward()
    sgd.step()
    if step == 4:
        net.body.requires_grad_(False)  # <- here
