# rule: reset-before-step
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(10, 4), torch.randint(0, 2, (10,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    opt.step()  # <- here
    loss.backward()
