# rule: degenerate-decomposition
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 3, bias=False)
nn.init.eye_(layer.weight)
x = 2 * torch.eye(3)
h = layer(x)
U, S, Vh = torch.linalg.svd(h, full_matrices=False)  # <- here
loss = (U @ torch.diag(S) @ Vh).pow(2).sum() + U[:, 1].sum()
loss.backward()
print(loss.item(), layer.weight.grad)
