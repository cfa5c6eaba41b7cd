# rule: leaf-written-in-place
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.weight[0] = 0.5  # <- here

    def forward(self, x):
        return x * self.weight


model = Scale()
model(torch.ones(2, 4)).sum().backward()
