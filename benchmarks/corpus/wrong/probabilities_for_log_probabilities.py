# rule: not-log-probabilities
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Linear(5, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(30, 5), torch.randint(0, 3, (30,))
for _ in range(6):
    loss = F.nll_loss(F.softmax(net(x), dim=1), y)  # <- here
    opt.zero_grad()
    loss.backward()
    opt.step()
