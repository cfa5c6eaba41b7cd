# rule: unselected-branch
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 4)
x = torch.randn(5, 3)
counts = torch.tensor([[1.0, 2.0, 0.0, 3.0]]).expand(5, 4)
z = net(x)
share = z / (counts * z.detach().abs().sign())  # <- here
loss = share.masked_fill(counts == 0, 0.0).pow(2).sum()
loss.backward()
print(loss.item(), net.weight.grad)
