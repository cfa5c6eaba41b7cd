# rule: straight-through-cancels
import torch
import torch.nn as nn


class Binary(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 5))

    def forward(self, x):
        hard = self.weight.sign()
        used = hard - self.weight + self.weight  # <- here
        return x @ used


torch.manual_seed(0)
layer, head = Binary(), nn.Linear(5, 1)
sgd = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
for _ in range(4):
    x = torch.randn(12, 3)
    sgd.zero_grad()
    (head(layer(x)) - x[:, :1]).pow(2).mean().backward()
    sgd.step()
