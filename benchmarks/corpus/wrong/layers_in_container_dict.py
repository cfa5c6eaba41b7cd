# rule: layers-in-container
import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(5, 12)
        self.heads = {"a": nn.Linear(12, 1), "b": nn.Linear(12, 1)}  # <- here

    def forward(self, x):
        h = torch.relu(self.trunk(x))
        return {name: head(h) for name, head in self.heads.items()}


torch.manual_seed(0)
net = MultiHead()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(20, 5)
for _ in range(4):
    out = net(x)
    loss = (out["a"] - x[:, :1]).pow(2).mean() + (out["b"] - x[:, 1:2]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
